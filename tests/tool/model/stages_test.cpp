// Compares measurements of stages with the true values of simulated chains of stages.
#include "model/pipeline/stages.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "model/run_data.hpp"
#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::durations;
using lotus::tool_test::generator;
using lotus::tool_test::planted;
using lotus::tool_test::stage_chain;
using lotus::tool_test::stage_truth;
using lotus::tool_test::temp_dir;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Draws durations uniformly between 1 - spread and 1 + spread times `ns`.
durations even(std::int64_t ns, double spread) {
  return [ns, spread](generator& random) {
    std::uniform_real_distribution<double> factor(1 - spread, 1 + spread);
    return static_cast<std::int64_t>(static_cast<double>(ns) * (spread > 0 ? factor(random) : 1));
  };
}

/// Compares every stage of a chain with its true values. Returns the number of stages for which the
/// tool could not decide whether they were starved or blocked.
int check_chain(stage_chain chain, unsigned seed) {
  chain.batches = 400;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) chain.stages[s].name = std::to_string(s);
  planted truth;
  generator random(seed);
  simulate(chain, truth, random);
  const temp_dir dir;
  truth.logs.write(dir);
  diagnostic_log silent = diagnostic_log::silenced();
  const std::vector<run_files> runs = find_runs(dir.path(), default_prefix, silent);
  REQUIRE(runs.size() == 1);
  const run_data run = read_run(runs[0], {}, silent);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == chain.stages.size());
  int left_open = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const stage_truth& true_stage = truth.stages[s];
    const stage_figures& f = stages[s];
    CAPTURE(seed, s, chain.stages[s].threads, chain.stages[s].bound, f.slots);
    CHECK(f.name == std::to_string(s));
    REQUIRE(f.capacity_per_s.has_value());
    CHECK(*f.capacity_per_s == Approx(true_stage.capacity_per_s).epsilon(0.03));
    CHECK(f.shares.busy == Approx(true_stage.busy).margin(0.02));
    REQUIRE(f.shares.starved.has_value() == f.shares.blocked.has_value());
    if (!f.shares.starved) {
      ++left_open;
      continue;
    }
    CHECK(*f.shares.starved == Approx(true_stage.starved).margin(0.02));
    CHECK(*f.shares.blocked == Approx(true_stage.blocked).margin(0.02));
  }
  for (const batch& b : run.batches.all()) {
    const lotus::tool_test::batch_truth& true_batch = truth.batches.at(b.index);
    const std::optional<time_span> made = run.batches.made(b);
    REQUIRE(made.has_value());
    REQUIRE(made->duration_ns() == true_batch.latency_ns);
    REQUIRE(run.batches.service_ns(b) == true_batch.service_ns);
    REQUIRE(run.batches.queueing_ns(b) == true_batch.latency_ns - true_batch.service_ns);
  }
  return left_open;
}

}  // namespace

TEST_CASE("the figures of stages are right for random chains") {
  int left_open = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    stage_chain chain;
    chain.stages.resize(static_cast<std::size_t>(between(2, 4)));
    for (auto& stage : chain.stages) {
      stage.threads = between(1, 4);
      const std::int64_t service_ns = between(1, 20) * ms;
      stage.service = even(service_ns, between(0, 6) / 10.0);
      stage.bound = between(1, 5);
    }
    chain.step = even(between(1, 10) * ms, 0);
    left_open += check_chain(chain, seed);
  }
  CHECK(left_open <= 6);  // there are about 180 stages
}

TEST_CASE("with a thread per item, a stage has as many slots as threads at one time") {
  stage_chain chain;
  chain.stages.resize(3);
  for (int s = 0; s < 3; ++s) {
    auto& stage = chain.stages[static_cast<std::size_t>(s)];
    stage.threads = s + 2;
    stage.service = even(5 * (s + 1) * ms, 0.3);
    stage.bound = 3;
    stage.new_thread_each = true;
  }
  chain.step = even(2 * ms, 0);
  check_chain(chain, 1);
}

TEST_CASE("threads that go on with the logs of ended ones do not count as living in between") {
  // 80 threads run one after another. The last 8 threads continue the logs of the first 8.
  run_data run;
  run.names.id("SParse");
  std::vector<stage_span> spans;
  for (std::uint32_t i = 0; i < 80; ++i) {
    spans.push_back({20 * ms * i, 15 * ms, i, 0, file_id(i % 72)});
  }
  run.batches = run_batches({}, spans);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == 1);
  CHECK(stages[0].slots == 1);
}

TEST_CASE("stages that share threads have one common capacity") {
  // Four threads spend 5 ms (A) and 15 ms (B) on each item, so they process four items in 20 ms.
  run_data run;
  run.names.id("SA");
  run.names.id("SB");
  std::vector<stage_span> spans;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t at = 5 * ms * (i % 4) + 20 * ms * (i / 4);
    const auto thread = static_cast<std::uint32_t>(i % 4);
    spans.push_back({at, 5 * ms, i, 0, file_id(thread)});
    spans.push_back({at + 5 * ms, 15 * ms, i, 1, file_id(thread)});
  }
  run.batches = run_batches({}, spans);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].pool.has_value());
  CHECK(stages[0].pool == stages[1].pool);
  // In this run, the first stage never runs on two threads at the same time, so it may be serial.
  // Then its capacity is one item per 5 ms.
  CHECK(*stages[0].capacity_per_s == Approx(200));
  CHECK(*stages[1].capacity_per_s == Approx(200));
  CHECK(stages[0].shares.busy + stages[1].shares.busy == Approx(1).margin(0.02));
}

TEST_CASE("a serial stage in a pool has a capacity of its own") {
  run_data run;
  run.names.id("SA");
  run.names.id("SSerial");
  std::vector<stage_span> spans;
  for (std::int64_t i = 0; i < 200; ++i) {
    spans.push_back({10 * ms * i, 5 * ms, i, 0, file_id((i + 1) % 4)});
    spans.push_back({10 * ms * i + 10 * ms, 10 * ms, i, 1, file_id(i % 4)});
  }
  run.batches = run_batches({}, spans);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == 2);
  CHECK(stages[1].pool.has_value());
  CHECK(stages[1].slots == 1);
  CHECK(*stages[1].capacity_per_s == Approx(100));
}

TEST_CASE("a stage of items has a capacity in items and in batches") {
  run_data run;
  run.names.id("SDecode");
  run.names.id("SCollate");
  std::vector<stage_span> spans;
  std::vector<batch_inclusion> inclusions;
  for (std::int64_t i = 0; i < 160; ++i) {
    const auto thread = static_cast<std::uint32_t>(i % 2);
    spans.push_back({10 * ms * (i / 2), 10 * ms, i, 0, file_id(thread)});
    inclusions.push_back({10 * ms * (i / 2) + 11 * ms, i / 8, i});
    if (i % 8 == 7) spans.push_back({10 * ms * (i / 2) + 11 * ms, 4 * ms, i / 8, 1, file_id(5)});
  }
  run.batches = run_batches({}, spans, inclusions);
  REQUIRE(run.batches.all().size() == 20);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].of_items);
  CHECK(*stages[0].capacity_per_s == Approx(200));
  CHECK(*stages[0].batches_per_s == Approx(25));
  CHECK_FALSE(stages[1].of_items);
  CHECK(*stages[1].batches_per_s == Approx(250));
}
