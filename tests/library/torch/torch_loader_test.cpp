// Tests the data loader of lotus/torch.hpp in special cases: timeouts, exceptions, samplers,
// stateful datasets.
#include <torch/data.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lotus/torch.hpp"
#include "torch_samples.hpp"

namespace {

using lotus::torch::traced;
using samples::all_batches;
using samples::batches_of;
using samples::check_batches;
using samples::count_kind;
using samples::example;
using samples::named;
using samples::numbers;
using samples::recorded_run;
using samples::same_bits;
using samples::sort_by_first_target;
using samples::stream;
using samples::traced_pipeline;
using torch::data::samplers::SequentialSampler;
using torch::data::transforms::Stack;
using namespace std::chrono_literals;

/// A dataset of chunks of five samples.
class chunks : public torch::data::datasets::ChunkDataReader<example> {
 public:
  using BatchType = std::vector<example>;

  BatchType read_chunk(std::size_t chunk) override {
    BatchType read;
    for (std::size_t i = 0; i < 5; ++i) read.push_back(samples::numbered_example(chunk * 5 + i));
    return read;
  }
  std::size_t chunk_count() override { return 4; }
  void reset() override {}
};
using chunk_dataset =
    torch::data::datasets::ChunkDataset<chunks, SequentialSampler, SequentialSampler>;

auto shared_chunks() {
  return torch::data::datasets::make_shared_dataset<chunk_dataset>(
      chunks{}, SequentialSampler{0}, SequentialSampler{0},
      torch::data::datasets::ChunkDatasetOptions{1, 4});
}

/// A dataset whose get_batch() gets the number of samples instead of their indices.
class zeros : public torch::data::datasets::StreamDataset<zeros, std::vector<torch::Tensor>> {
 public:
  std::vector<torch::Tensor> get_batch(std::size_t size) override {
    return std::vector<torch::Tensor>(size, torch::zeros({2}));
  }
  samples::optional_size size() const override { return {}; }
};

}  // namespace

TEST_CASE("the wait for a batch continues after a timeout") {
  const recorded_run run;
  std::atomic<bool> released{false};
  const auto block = [&](std::size_t index) {
    while (index == 2 && !released) std::this_thread::sleep_for(100us);
  };
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      traced_pipeline(numbers{4, block}), batches_of(2, 1).timeout(250ms));
  auto at = loader->begin();
  REQUIRE((*at).target[0].item<std::int64_t>() == 0);
  CHECK_THROWS_AS(++at, c10::Error);
  released = true;
  // Tries again after each timeout until the batch arrives, as is usual with libtorch's own loader.
  for (bool arrived = false; !arrived;) {
    try {
      ++at;
      arrived = true;
    } catch (const c10::Error&) {
    }
  }
  CHECK((*at).target[0].item<std::int64_t>() == 2);
  ++at;
  CHECK(at == loader->end());
  loader->join();
  const auto lines = run.lines();
  check_batches(lines, 2, 1);
  CHECK(named(lines, "SBatchWait_1").at(0).duration_ns >= 250'000'000);
}

TEST_CASE("a worker's exception reaches the caller, its batch is logged and the epoch goes on") {
  const std::size_t workers = GENERATE(0U, 1U, 2U);
  const recorded_run run;
  std::atomic<bool> broken{true};
  const auto fail = [&](std::size_t index) {
    if (index == 3 && broken.exchange(false)) throw std::runtime_error("sample 3 is broken");
  };
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      traced_pipeline(numbers{8, fail}), batches_of(2, workers));
  auto at = loader->begin();
  CHECK((*at).target[0].item<std::int64_t>() == 0);
  if (workers == 0) {
    CHECK_THROWS_WITH(++at, "sample 3 is broken");
  } else {
    CHECK_THROWS_AS(++at, torch::data::WorkerException);
  }
  std::vector<std::int64_t> rest;
  for (++at; at != loader->end(); ++at) rest.push_back((*at).target[0].item<std::int64_t>());
  CHECK(rest == std::vector<std::int64_t>{4, 6});
  CHECK(all_batches(*loader).size() == 4);
  loader->join();
  const auto lines = run.lines();
  check_batches(lines, 4, 2);
  // The 16 records include the one of sample 3, whose loading threw an exception.
  CHECK(named(lines, "SLoader").size() == 16);
  // The transform did not run for the two samples of the batch that failed.
  CHECK(named(lines, "SNormalize").size() == 14);
}

TEST_CASE("requests after the end of a stateful dataset are not logged") {
  const std::size_t workers = GENERATE(0U, 1U, 3U);
  const bool ordered = GENERATE(true, false);
  const recorded_run run;
  using lotus::torch::traced;
  const auto options = batches_of(4, workers).enforce_ordering(ordered);
  const auto loader =
      lotus::torch::make_data_loader(traced(stream{10}).map(traced(Stack<>{})), options);
  const auto stock = torch::data::make_data_loader(stream{10}.map(Stack<>{}), options);
  auto batches = all_batches(*loader, 3);
  auto expected = all_batches(*stock, 3);
  if (workers > 1) {
    sort_by_first_target(batches);
    sort_by_first_target(expected);
  }
  CHECK(same_bits(batches, expected));
  loader->join();
  const auto lines = run.lines();
  for (const char* kind : {"SBatchPreprocessed_", "SBatchQueued_", "SBatchWait_", "SBatchConsumed_",
                           "SLoader", "SCollation"}) {
    CHECK(count_kind(lines, kind) == 9);
  }
  // With several workers, the last batch numbers may have gaps.
  if (workers < 2) check_batches(lines, 3, 3);
}

TEST_CASE("a chunk dataset yields the same batches as with the stock loader") {
  const std::size_t workers = GENERATE(0U, 1U, 2U);
  const recorded_run run;
  const auto stock =
      torch::data::make_data_loader(shared_chunks().map(Stack<>{}), batches_of(4, workers));
  auto expected = all_batches(*stock, 2);
  const auto loader = lotus::torch::make_data_loader(traced(shared_chunks()).map(traced(Stack<>{})),
                                                     batches_of(4, workers));
  auto batches = all_batches(*loader, 2);
  if (workers > 1) {
    sort_by_first_target(expected);
    sort_by_first_target(batches);
  }
  REQUIRE(expected.size() == 10);
  CHECK(same_bits(batches, expected));
  loader->join();
  const auto lines = run.lines();
  for (const char* kind : {"SBatchPreprocessed_", "SBatchQueued_", "SBatchWait_", "SBatchConsumed_",
                           "SLoader", "SCollation"}) {
    CHECK(count_kind(lines, kind) == 10);
  }
}

TEST_CASE("make_data_loader accepts all arguments of the stock function") {
  using torch::data::samplers::StreamSampler;
  const recorded_run run;
  SECTION("with a sampler") {
    const auto loader = lotus::torch::make_data_loader(numbers{5}.map(Stack<>{}),
                                                       SequentialSampler{3}, batches_of(2, 0));
    CHECK(all_batches(*loader).size() == 2);
  }
  SECTION("with a sampler that gives no indices") {
    const auto loader =
        lotus::torch::make_data_loader(traced(zeros{}), StreamSampler{5}, batches_of(2, 1));
    std::vector<std::size_t> sizes;
    for (auto& batch : *loader) sizes.push_back(batch.size());
    CHECK(sizes == std::vector<std::size_t>{2, 2, 1});
    loader->join();
    const auto lines = run.lines();
    check_batches(lines, 3, 1);
    CHECK(named(lines, "SLoader").size() == 3);
  }
  SECTION("default sampler and default options") {
    const auto loader = lotus::torch::make_data_loader(numbers{5}.map(Stack<>{}));
    CHECK(all_batches(*loader).size() == 5);
    using stock_type = std::decay_t<decltype(*loader)>;
    CHECK(std::is_same_v<stock_type::BatchType, example>);
  }
  SECTION("stateful dataset with default options") {
    const auto loader = lotus::torch::make_data_loader(stream{3}.map(Stack<>{}));
    CHECK(all_batches(*loader).size() == 3);
  }
  SECTION("a dataset that does not know its size needs a sampler") {
    CHECK_THROWS_AS(lotus::torch::make_data_loader<StreamSampler>(zeros{}), c10::Error);
  }
  SECTION("only one iteration at a time, as with the stock loader") {
    const auto loader = lotus::torch::make_data_loader(numbers{9}.map(Stack<>{}), batches_of(2, 1));
    auto at = loader->begin();
    CHECK((*at).data.size(0) == 2);
    CHECK_THROWS_AS(loader->begin(), c10::Error);
  }
}

TEST_CASE("a loader logs nothing without recording, even if recording begins meanwhile") {
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(traced_pipeline(numbers{8}),
                                                                        batches_of(2, 1));
  CHECK(all_batches(*loader).size() == 4);
  auto at = loader->begin();
  CHECK((*at).data.size(0) == 2);
  const recorded_run run;
  REQUIRE(run.started());
  while (++at != loader->end()) {
  }
  loader->join();
  const auto lines = run.lines();
  CHECK(count_kind(lines, "SBatchConsumed_") == 3);
  CHECK(named(lines, "SBatchConsumed_0").empty());
}
