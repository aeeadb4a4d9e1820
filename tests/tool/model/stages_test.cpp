// Stages against simulated chains whose truth is known.
#include "model/pipeline/stages.hpp"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <vector>

#include "catch.hpp"
#include "simulated_pipeline.hpp"

using namespace lotus::tool;
using lotus::tool_test::simulated_pipeline;
using lotus::tool_test::simulated_stage;
using lotus::tool_test::stage_truth;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Every stage of a chain beside its truth. Returns how many leave open whether they were starved
/// or blocked.
int check_chain(const std::vector<simulated_stage>& chain, std::int64_t step_ns, unsigned seed) {
  const simulated_pipeline truth(chain, step_ns, 400, seed);
  const run_data run = truth.run();
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == chain.size());
  int left_open = 0;
  for (std::size_t s = 0; s < chain.size(); ++s) {
    const stage_truth& true_stage = truth.truth[s];
    const stage_figures& f = stages[s];
    CAPTURE(seed, s, chain[s].slots, chain[s].room, f.slots);
    CHECK(f.name == std::to_string(s));
    const double true_capacity = static_cast<double>(chain[s].slots) * 1e9 *
                                 static_cast<double>(true_stage.served) / true_stage.service_ns;
    REQUIRE(f.capacity_per_s.has_value());
    CHECK(*f.capacity_per_s == Approx(true_capacity).epsilon(0.03));
    CHECK(f.shares.busy == Approx(true_stage.share(true_stage.busy_ns)).margin(0.02));
    REQUIRE(f.shares.starved.has_value() == f.shares.blocked.has_value());
    if (!f.shares.starved) {
      ++left_open;
      continue;
    }
    CHECK(*f.shares.starved == Approx(true_stage.share(true_stage.starved_ns)).margin(0.02));
    CHECK(*f.shares.blocked == Approx(true_stage.share(true_stage.blocked_ns)).margin(0.02));
  }
  for (const batch& b : run.batches.all()) {
    const auto i = static_cast<std::size_t>(b.index);
    const std::optional<time_span> made = run.batches.made(b);
    REQUIRE(made.has_value());
    REQUIRE(made->duration_ns() == truth.latency_ns[i]);
    REQUIRE(run.batches.service_ns(b) == truth.service_ns[i]);
    REQUIRE(run.batches.queueing_ns(b) == truth.latency_ns[i] - truth.service_ns[i]);
  }
  return left_open;
}

}  // namespace

TEST_CASE("stages of random chains: capacity, busy, starved, blocked, latency") {
  int left_open = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](std::size_t low, std::size_t high) {
      return std::uniform_int_distribution<std::size_t>(low, high)(random);
    };
    std::vector<simulated_stage> chain(between(2, 4));
    for (simulated_stage& stage : chain) {
      stage.slots = between(1, 4);
      stage.service_ns = static_cast<std::int64_t>(between(1, 20)) * ms;
      stage.spread = static_cast<double>(between(0, 6)) / 10;
      stage.room = between(1, 5);
    }
    left_open += check_chain(chain, static_cast<std::int64_t>(between(1, 10)) * ms, seed);
  }
  CHECK(left_open <= 6);  // of about 180
}

TEST_CASE("a thread for every item: slots are those that lived at once") {
  std::vector<simulated_stage> chain(3);
  for (std::size_t s = 0; s < chain.size(); ++s) {
    chain[s] = {s + 2, static_cast<std::int64_t>(5 * (s + 1)) * ms, 0.3, 3, true};
  }
  check_chain(chain, 2 * ms, 1);
}

TEST_CASE("stages that share their threads have one capacity together") {
  // Four threads take an item each through 5 ms and 15 ms: 4 / 20 ms.
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
  // The first never runs on two threads at once here, so it may be serial: 1 / 5 ms.
  CHECK(*stages[0].capacity_per_s == Approx(200));
  CHECK(*stages[1].capacity_per_s == Approx(200));
  CHECK(stages[0].shares.busy + stages[1].shares.busy == Approx(1).margin(0.02));
}

TEST_CASE("a serial stage in a pool has its own bound") {
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

TEST_CASE("a stage of items: its capacity in items and in batches") {
  run_data run;
  run.names.id("SDecode");
  run.names.id("SCollate");
  std::vector<stage_span> spans;
  std::vector<batch_taking> takings;
  for (std::int64_t i = 0; i < 160; ++i) {
    const auto thread = static_cast<std::uint32_t>(i % 2);
    spans.push_back({10 * ms * (i / 2), 10 * ms, i, 0, file_id(thread)});
    takings.push_back({10 * ms * (i / 2) + 11 * ms, i / 8, i});
    if (i % 8 == 7) spans.push_back({10 * ms * (i / 2) + 11 * ms, 4 * ms, i / 8, 1, file_id(5)});
  }
  run.batches = run_batches({}, spans, takings);
  REQUIRE(run.batches.all().size() == 20);
  const std::vector<stage_figures> stages = measure_stages(run);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].of_items);
  CHECK(*stages[0].capacity_per_s == Approx(200));
  CHECK(*stages[0].batches_per_s == Approx(25));
  CHECK_FALSE(stages[1].of_items);
  CHECK(*stages[1].batches_per_s == Approx(250));
}
