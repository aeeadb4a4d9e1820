// Tests traced() of lotus/torch.hpp: the names of transforms, and how often each is logged.
#include <torch/data.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lotus/torch.hpp"
#include "torch_samples.hpp"

namespace {

using lotus::torch::traced;
using samples::example;
using samples::named;
using samples::numbers;
using samples::recorded_run;
using torch::data::datasets::BatchDataset;
using torch::data::datasets::Dataset;
using torch::data::transforms::BatchTransform;
using torch::data::transforms::Collate;
using torch::data::transforms::Lambda;
using torch::data::transforms::Normalize;
using torch::data::transforms::Stack;
using torch::data::transforms::TensorLambda;
using torch::data::transforms::TensorTransform;
using torch::data::transforms::Transform;

const std::vector<std::size_t> three_indices{4, 1, 2};

template <class T>
struct AddScalar : TensorTransform<> {
  explicit AddScalar(T value) : scalar{value} {}
  torch::Tensor operator()(torch::Tensor input) override { return input.add(scalar); }
  T scalar;
};

namespace vision {
struct HorizontalFlip : TensorTransform<> {
  torch::Tensor operator()(torch::Tensor input) override { return input.flip({2}); }
};
}  // namespace vision

/// A transform of single samples that also has its own, faster implementation for batches.
struct FastNegate : Transform<example, example> {
  example apply(example sample) override { return {-sample.data, sample.target}; }
  std::vector<example> apply_batch(std::vector<example> batch) override {
    ++batches;
    for (auto& sample : batch) sample.data = -sample.data;
    return batch;
  }
  int batches = 0;
};

/// A transform of batches whose result is a batch of samples again.
struct Shuffle : BatchTransform<std::vector<example>, std::vector<example>> {
  std::vector<example> apply_batch(std::vector<example> batch) override {
    std::swap(batch.front(), batch.back());
    return batch;
  }
};

struct Failing : TensorTransform<> {
  torch::Tensor operator()(torch::Tensor) override { throw std::runtime_error("cannot"); }
};

struct batched_numbers : Dataset<batched_numbers> {
  example get(std::size_t) override { throw std::logic_error("get_batch() is asked"); }
  std::vector<example> get_batch(torch::ArrayRef<std::size_t> indices) override {
    std::vector<example> batch;
    for (const std::size_t i : indices) batch.push_back(samples::numbered_example(i));
    return batch;
  }
  samples::optional_size size() const override { return 9; }
};

struct only_batches : BatchDataset<only_batches> {
  std::vector<example> get_batch(torch::ArrayRef<std::size_t> indices) override {
    return batched_numbers{}.get_batch(indices);
  }
  samples::optional_size size() const override { return 9; }
};

/// A sample that cannot be copied, so that the test does not compile if the pipeline copies
/// samples.
using unique_sample = std::unique_ptr<int>;

struct unique_numbers : Dataset<unique_numbers, unique_sample> {
  unique_sample get(std::size_t index) override {
    return std::make_unique<int>(static_cast<int>(index));
  }
  samples::optional_size size() const override { return 9; }
};

struct Increment : Transform<unique_sample, unique_sample> {
  unique_sample apply(unique_sample sample) override {
    ++*sample;
    return sample;
  }
};

/// A transform that checks that it has the only reference to its input, and stores the address of
/// the input's data.
struct Inspect : TensorTransform<> {
  explicit Inspect(std::vector<const void*>& seen) : places{&seen} {}
  torch::Tensor operator()(torch::Tensor input) override {
    CHECK(input.use_count() == 1);
    places->push_back(input.data_ptr());
    return input;
  }
  std::vector<const void*>* places;
};

}  // namespace

TEST_CASE("traced names are short type names, and each sample or batch is logged once") {
  const recorded_run run;
  auto dataset = traced(numbers{9})
                     .map(traced(Normalize<>{{0.5}, {0.25}}))
                     .map(traced(AddScalar<double>{1.5}))
                     .map(traced(vision::HorizontalFlip{}))
                     .map(traced(TensorLambda<>{[](torch::Tensor t) { return t; }}))
                     .map(traced("Clamp", Lambda<example>{[](example e) { return e; }}))
                     .map(traced(Shuffle{}))
                     .map(traced(Stack<>{}));
  CHECK(dataset.get_batch(three_indices).data.size(0) == 3);
  CHECK(dataset.size() == 9U);
  const auto lines = run.lines();
  for (const char* name :
       {"SLoader", "SNormalize", "SAddScalar", "SHorizontalFlip", "STensorLambda", "SClamp"}) {
    INFO(name);
    CHECK(named(lines, name).size() == 3);
  }
  CHECK(named(lines, "SShuffle").size() == 1);
  CHECK(named(lines, "SCollation").size() == 1);
  CHECK(lines.size() == 6 * 3 + 2);
}

TEST_CASE("transforms, collations and datasets can have names of their own") {
  const recorded_run run;
  const std::string name = "Read" + std::to_string(7);
  auto dataset =
      traced(name, numbers{9})
          .map(traced("Join",
                      Collate<int, std::vector<example>>{[](const std::vector<example>& batch) {
                        return static_cast<int>(batch.size());
                      }}));
  CHECK(dataset.get_batch(three_indices) == 3);
  const auto lines = run.lines();
  CHECK(named(lines, "SRead7").size() == 3);
  CHECK(named(lines, "SJoin").size() == 1);
  CHECK(lines.size() == 4);
}

TEST_CASE("tracing does not change results") {
  auto plain = numbers{9}.map(Normalize<>{{0.5}, {0.25}}).map(FastNegate{}).map(Stack<>{});
  auto logged = traced(numbers{9})
                    .map(traced(Normalize<>{{0.5}, {0.25}}))
                    .map(traced(FastNegate{}))
                    .map(traced(Stack<>{}));
  const example a = plain.get_batch(three_indices);
  const example b = logged.get_batch(three_indices);
  CHECK(samples::same_bits(a.data, b.data));
  CHECK(samples::same_bits(a.target, b.target));
}

TEST_CASE("a dataset's own batch function is used, and logged once per batch") {
  const recorded_run run;
  auto transform = traced(FastNegate{});
  std::vector<example> batch = traced(batched_numbers{}).get_batch(three_indices);
  batch = transform.apply_batch(std::move(batch));
  CHECK(batch.size() == 3);
  CHECK(transform.apply(samples::numbered_example(1)).data.sum().item<float>() < 0);
  CHECK(traced("Shard", only_batches{}).get_batch(three_indices).size() == 3);
  CHECK(traced(only_batches{}).size() == 9U);
  const auto lines = run.lines();
  CHECK(named(lines, "SFastNegate").size() == 2);  // called once for a batch and once for a sample
  CHECK(named(lines, "SLoader").size() == 1);
  CHECK(named(lines, "SShard").size() == 1);
}

TEST_CASE("tracing moves samples and never copies them") {
  auto dataset = traced(unique_numbers{}).map(traced(Increment{}));
  CHECK(*dataset.get_batch(three_indices).at(0) == 5);

  std::vector<const void*> before;
  std::vector<const void*> after;
  traced(numbers{9})
      .map(traced(Inspect{before}))
      .map(traced(Inspect{after}))
      .get_batch(three_indices);
  CHECK(before.size() == 3);
  CHECK(before == after);
}

TEST_CASE("traced operations pass exceptions on, and are logged up to them") {
  const recorded_run run;
  auto dataset = traced(numbers{9}).map(traced(Failing{}));
  CHECK_THROWS_WITH(dataset.get_batch(three_indices), "cannot");
  const auto lines = run.lines();
  CHECK(named(lines, "SLoader").size() == 3);
  CHECK(named(lines, "SFailing").size() == 1);
}

TEST_CASE("traced accepts lvalues, and gives access to what it wraps") {
  numbers dataset{9};
  auto logged = traced(dataset);
  CHECK(logged.dataset().size() == 9U);
  CHECK(logged.size() == dataset.size());
  const Normalize<> normalize{{0.5}, {0.25}};
  CHECK(traced(normalize).apply(samples::numbered_example(1)).data.size(0) == 1);
}
