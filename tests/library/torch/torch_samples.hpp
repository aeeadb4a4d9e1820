// Provides small datasets, and checks the logged batches that are built from them.
#ifndef LOTUS_TESTS_TORCH_SAMPLES_HPP
#define LOTUS_TESTS_TORCH_SAMPLES_HPP

#include <torch/data.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <lotus/torch.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace samples {

using example = ::torch::data::Example<>;
using lotus::torch::detail::optional_size;

inline example numbered_example(std::size_t i) {
  const auto number = static_cast<std::int64_t>(i);
  return {::torch::arange(number, number + 6, ::torch::kFloat32).reshape({1, 2, 3}) / 7,
          ::torch::tensor(number)};
}

/// A dataset of `count` samples; each sample is its index. Calls before(index) for each sample.
class numbers : public ::torch::data::datasets::Dataset<numbers> {
 public:
  explicit numbers(std::size_t count, std::function<void(std::size_t)> before = nullptr)
      : count_{count}, before_{std::move(before)} {}

  example get(std::size_t index) override {
    if (before_) before_(index);
    return numbered_example(index);
  }
  optional_size size() const override { return count_; }

 private:
  std::size_t count_;
  std::function<void(std::size_t)> before_;
};

/// A dataset that several workers can share. Each call returns a batch; an epoch has `count`
/// samples.
class stream
    : public ::torch::data::datasets::StatefulDataset<stream, std::vector<example>, std::size_t> {
 public:
  explicit stream(std::size_t count) : state_{std::make_shared<state>()} { state_->count = count; }

  BatchType get_batch(std::size_t batch_size) override {
    const std::lock_guard<std::mutex> lock{state_->guard};
    if (state_->next >= state_->count) return {};
    std::vector<example> batch;
    while (batch.size() < batch_size && state_->next < state_->count) {
      batch.push_back(numbered_example(state_->next++));
    }
    return batch;
  }
  optional_size size() const override { return {}; }
  void reset() override {
    const std::lock_guard<std::mutex> lock{state_->guard};
    state_->next = 0;
  }
  void save(::torch::serialize::OutputArchive&) const override {}
  void load(::torch::serialize::InputArchive&) override {}

 private:
  struct state {
    std::mutex guard;
    std::size_t count = 0;
    std::size_t next = 0;
  };
  std::shared_ptr<state> state_;
};

/// Records from its construction until lines() is called.
class recorded_run {
 public:
  recorded_run() { started_ = lotus::start(directory_.prefix()); }
  ~recorded_run() { lotus::stop(); }
  recorded_run(const recorded_run&) = delete;
  recorded_run& operator=(const recorded_run&) = delete;

  bool started() const { return started_; }
  /// @param loader  name of the loader's folder in the run's folder; empty for the run's folder.
  std::vector<support::log_line> lines(const char* loader = "") const {
    lotus::stop();
    return support::read_logs(directory_.path() / loader);
  }
  const support::fs::path& path() const { return directory_.path(); }

 private:
  support::temp_directory directory_;
  bool started_ = false;
};

inline std::uint32_t this_thread_id() {
  return static_cast<std::uint32_t>(gettid());
}

inline std::vector<support::log_line> named(const std::vector<support::log_line>& lines,
                                            const std::string& name) {
  std::vector<support::log_line> found;
  for (const auto& line : lines) {
    if (line.name == name) found.push_back(line);
  }
  return found;
}

/// Returns the number of lines whose name is `kind` followed by a batch number.
inline std::size_t count_kind(const std::vector<support::log_line>& lines,
                              const std::string& kind) {
  std::size_t count = 0;
  for (const auto& line : lines) {
    if (line.name.rfind(kind, 0) == 0) ++count;
  }
  return count;
}

inline bool is_marker(const support::log_line& line) {
  return line.name.rfind("SBatchWait_", 0) == 0 && line.duration_ns == 1000;
}

inline ::torch::data::DataLoaderOptions batches_of(std::size_t size, std::size_t workers) {
  return ::torch::data::DataLoaderOptions{}.batch_size(size).workers(workers);
}

template <class Loader>
std::vector<example> all_batches(Loader& loader, int epochs = 1) {
  std::vector<example> batches;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto& batch : loader) batches.push_back(batch);
  }
  return batches;
}

inline bool same_bits(const ::torch::Tensor& a, const ::torch::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && ::torch::equal(a, b);
}

inline bool same_bits(const std::vector<example>& a, const std::vector<example>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return same_bits(x.data, y.data) && same_bits(x.target, y.target);
  });
}

inline void sort_by_first_target(std::vector<example>& batches) {
  std::stable_sort(batches.begin(), batches.end(), [](const auto& a, const auto& b) {
    return a.target[0].template item<std::int64_t>() < b.target[0].template item<std::int64_t>();
  });
}

inline auto traced_pipeline(numbers dataset) {
  using lotus::torch::traced;
  return traced(std::move(dataset))
      .map(traced(::torch::data::transforms::Normalize<>{{0.5}, {0.25}}))
      .map(traced(::torch::data::transforms::Stack<>{}));
}

/// Checks that each batch of each epoch has one line of each kind, and that their times fit
/// together.
inline void check_batches(const std::vector<support::log_line>& lines, std::size_t batches,
                          std::size_t epochs) {
  for (const char* kind :
       {"SBatchPreprocessed_", "SBatchQueued_", "SBatchWait_", "SBatchConsumed_"}) {
    CHECK(count_kind(lines, kind) == batches * epochs);
  }
  for (std::size_t i = 0; i < batches; ++i) {
    const std::string number = std::to_string(i);
    const auto made = named(lines, "SBatchPreprocessed_" + number);
    const auto queued = named(lines, "SBatchQueued_" + number);
    const auto wait = named(lines, "SBatchWait_" + number);
    const auto consumed = named(lines, "SBatchConsumed_" + number);
    REQUIRE(made.size() == epochs);
    REQUIRE(queued.size() == epochs);
    REQUIRE(wait.size() == epochs);
    REQUIRE(consumed.size() == epochs);
    for (std::size_t k = 0; k < epochs; ++k) {
      CHECK(made[k].role == "worker");
      CHECK(queued[k].role == "main");
      CHECK(wait[k].role == "main");
      CHECK(consumed[k].role == "main");
      CHECK(queued[k].tid == this_thread_id());
      CHECK(wait[k].tid == this_thread_id());
      CHECK(consumed[k].tid == this_thread_id());
    }
  }
}

}  // namespace samples

#endif  // LOTUS_TESTS_TORCH_SAMPLES_HPP
