// Tests that the data loader of lotus/torch.hpp returns the same batches as libtorch's own loader,
// and that its records are correct.
#include "lotus/torch.hpp"

#include <torch/data.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "torch_samples.hpp"

namespace {

using samples::all_batches;
using samples::batches_of;
using samples::check_batches;
using samples::example;
using samples::named;
using samples::numbers;
using samples::recorded_run;
using samples::same_bits;
using samples::sort_by_first_target;
using samples::this_thread_id;
using samples::traced_pipeline;
using support::log_line;
using torch::data::samplers::RandomSampler;
using torch::data::samplers::SequentialSampler;
using torch::data::transforms::Normalize;
using torch::data::transforms::Stack;
using namespace std::chrono_literals;

auto pipeline(std::size_t count) {
  return numbers{count}.map(Normalize<>{{0.5}, {0.25}}).map(Stack<>{});
}

}  // namespace

TEST_CASE("batches equal those of the stock loader bit for bit") {
  const std::size_t workers = GENERATE(0U, 1U, 3U);
  const bool ordered = GENERATE(true, false);
  const bool drop_last = GENERATE(true, false);
  const bool traced = GENERATE(true, false);
  const auto options =
      batches_of(6, workers).enforce_ordering(ordered).drop_last(drop_last).max_jobs(workers * 3);
  const recorded_run run;

  torch::manual_seed(7);
  const auto stock = torch::data::make_data_loader<RandomSampler>(pipeline(20), options);
  auto expected = all_batches(*stock, 3);
  torch::manual_seed(7);
  std::vector<example> batches;
  if (traced) {
    batches = all_batches(
        *lotus::torch::make_data_loader<RandomSampler>(traced_pipeline(numbers{20}), options), 3);
  } else {
    batches = all_batches(*lotus::torch::make_data_loader<RandomSampler>(pipeline(20), options), 3);
  }
  if (!ordered && workers > 1) {
    sort_by_first_target(expected);
    sort_by_first_target(batches);
  }
  REQUIRE(expected.size() == (drop_last ? 9 : 12));
  CHECK(same_bits(batches, expected));
}

TEST_CASE("workers log the batches they build and the consumer those it receives, in each epoch") {
  const std::size_t workers = GENERATE(1U, 3U);
  const bool ordered = GENERATE(true, false);
  const recorded_run run;
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      traced_pipeline(numbers{20, [](std::size_t) { std::this_thread::sleep_for(300us); }}),
      batches_of(6, workers).enforce_ordering(ordered));
  CHECK(all_batches(*loader, 3).size() == 12);
  loader->join();
  const auto lines = run.lines();

  check_batches(lines, 4, 3);
  CHECK(named(lines, "SLoader").size() == 60);
  CHECK(named(lines, "SNormalize").size() == 60);
  CHECK(named(lines, "SCollation").size() == 12);
  for (const log_line& line : lines) {
    if (line.role == "worker") CHECK(line.tid != this_thread_id());
  }
  // A batch must be delivered after it was built, and all waits must be shorter than the run.
  for (int i = 0; i < 4; ++i) {
    const auto made = named(lines, "SBatchPreprocessed_" + std::to_string(i));
    const auto queued = named(lines, "SBatchQueued_" + std::to_string(i));
    const auto consumed = named(lines, "SBatchConsumed_" + std::to_string(i));
    std::vector<std::int64_t> ends;
    ends.reserve(made.size());
    for (const log_line& line : made) ends.push_back(line.end_ns());
    std::sort(ends.begin(), ends.end());
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(queued[k].start_ns < ends[k]);
      CHECK(ends[k] <= consumed[k].start_ns);
    }
  }
}

TEST_CASE("without workers, the consumer's wait is the preprocessing") {
  const recorded_run run;
  const auto loader =
      lotus::torch::make_data_loader<SequentialSampler>(traced_pipeline(numbers{7}), 3);
  CHECK(all_batches(*loader, 2).size() == 6);
  const auto lines = run.lines();
  check_batches(lines, 3, 2);
  CHECK(named(lines, "SLoader").size() == 14);
  for (int i = 0; i < 3; ++i) {
    const auto made = named(lines, "SBatchPreprocessed_" + std::to_string(i));
    const auto wait = named(lines, "SBatchWait_" + std::to_string(i));
    const auto consumed = named(lines, "SBatchConsumed_" + std::to_string(i));
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(made[k].tid == this_thread_id());
      CHECK(wait[k].start_ns <= made[k].start_ns);
      CHECK(made[k].end_ns() <= wait[k].end_ns());
      CHECK(wait[k].duration_ns - made[k].duration_ns < 50'000'000);
      CHECK(wait[k].end_ns() <= consumed[k].start_ns);
    }
  }
}

TEST_CASE("a batch that arrives early is marked, or comes next if order does not matter") {
  const bool ordered = GENERATE(true, false);
  const recorded_run run;
  // The worker that builds batch 0 waits until batch 2 begins. The other worker begins batch 2
  // after it has delivered batch 1, so batch 1 arrives before batch 0.
  std::atomic<bool> second_taken{false};
  const auto hold_back = [&](std::size_t index) {
    if (index == 4) second_taken = true;
    while (index == 0 && !second_taken) std::this_thread::sleep_for(100us);
    if (index == 0) std::this_thread::sleep_for(5ms);
  };
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      traced_pipeline(numbers{6, hold_back}), batches_of(2, 2).enforce_ordering(ordered));
  const auto batches = all_batches(*loader);
  loader->join();
  const auto lines = run.lines();
  check_batches(lines, 3, 1);
  const log_line first = named(lines, "SBatchWait_0").at(0);
  const log_line second = named(lines, "SBatchWait_1").at(0);
  if (ordered) {
    CHECK(batches.at(0).target[0].item<std::int64_t>() == 0);
    CHECK_FALSE(samples::is_marker(first));
    CHECK(samples::is_marker(second));
    CHECK(first.start_ns <= second.start_ns);
    CHECK(second.start_ns <= first.end_ns());
    CHECK(named(lines, "SBatchConsumed_0").at(0).start_ns >= first.end_ns());
    CHECK(named(lines, "SBatchConsumed_1").at(0).start_ns >=
          named(lines, "SBatchConsumed_0").at(0).start_ns);
  } else {
    CHECK(batches.at(0).target[0].item<std::int64_t>() == 2);
    for (const log_line& line : lines) CHECK_FALSE(samples::is_marker(line));
    CHECK(named(lines, "SBatchConsumed_1").at(0).start_ns <
          named(lines, "SBatchConsumed_0").at(0).start_ns);
    CHECK(second.end_ns() <= first.start_ns);
  }
}

TEST_CASE("a dropped last batch is not logged") {
  const std::size_t workers = GENERATE(0U, 2U);
  const recorded_run run;
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      traced_pipeline(numbers{20}), batches_of(6, workers).drop_last(true));
  CHECK(all_batches(*loader, 2).size() == 6);
  loader->join();
  check_batches(run.lines(), 3, 2);
}
