// Compares simulated threads that share CPUs with results calculated by hand. A turn is the time
// slice for which a thread keeps a CPU.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "findings/gains.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/clocks.hpp"
#include "replay/plan.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/speed_law.hpp"

using namespace lotus::tool;

namespace {

constexpr double ms = 1e6;

struct burst {
  double at_ms;
  double cpu_ms;
};

/// Simulates bursts of CPU work; burst i runs on thread i. Returns when each burst ends, in ms.
std::vector<double> ends(const speed_law& law, const std::vector<burst>& bursts) {
  replay_clocks clocks(law);
  std::vector<double> end_ms(bursts.size());
  std::vector<int> began(bursts.size());
  for (std::uint32_t t = 0; t < bursts.size(); ++t) clocks.at(bursts[t].at_ms * ms, t);
  while (const auto next = clocks.next()) {
    const std::uint32_t t = *next;
    if (std::exchange(began[t], 1) != 0) {
      end_ms[t] = clocks.now_ns() / ms;
    } else {
      clocks.run(bursts[t].cpu_ms * ms, t);
    }
  }
  return end_ms;
}

speed_law law_of(double cpus, double turn_ms) {
  speed_law law;
  law.cpus = cpus;
  law.turn_ns = turn_ms * ms;
  return law;
}

void check_ends(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("thread " << i);
    CHECK(found[i] == Approx(expected[i]));
  }
}

}  // namespace

TEST_CASE("without turns, the threads of a CPU run at the same time at a lower speed") {
  check_ends(ends(law_of(1, 0), {{0, 10}, {0, 2}}), {12, 4});
  // At first, the third thread shares a CPU with the first one. When the second thread ends, its
  // CPU takes over the third thread immediately, with half of that thread's work left.
  check_ends(ends(law_of(2, 0), {{0, 10}, {0, 2}, {0, 3}}), {11, 2, 4});
}

TEST_CASE("a thread that wakes while all CPUs are busy waits for the one on which it ran last") {
  const speed_law law = law_of(2, 4);
  replay_clocks clocks(law);
  // Thread 0 computes for 100 ms. Three threads sleep for 1.2 ms and compute for 1 ms, together, so
  // that all of them need the other CPU, to which they must first be moved.
  clocks.at(0, 0);
  for (const std::uint32_t t : {1U, 2U, 3U}) clocks.at(0.5 * ms, t);
  std::vector<bool> computes(4);
  while (const auto next = clocks.next()) {
    const std::uint32_t t = *next;
    computes[t] = !computes[t];
    if (computes[t]) {
      clocks.run((t == 0 ? 100 : 1) * ms, t);
    } else if (t == 0) {
      break;
    } else {
      clocks.at(clocks.now_ns() + 1.2 * ms, t);
    }
  }
  CHECK(clocks.now_ns() / ms < 110);
}

TEST_CASE("the threads of a CPU take turns, and a waking thread is next") {
  check_ends(ends(law_of(1, 4), {{0, 10}, {0, 2}}), {12, 6});
  // The third thread wakes during a time slice of the second one. It runs before the first thread,
  // which has already had a time slice.
  check_ends(ends(law_of(1, 4), {{0, 10}, {0, 6}, {5, 1}}), {17, 15, 9});
}

TEST_CASE("a thread that runs alone gets turn after turn") {
  // The second thread wakes during the third time slice of the first one, which ends at 12 ms.
  check_ends(ends(law_of(1, 4), {{0, 20}, {9, 1}}), {21, 13});
}

TEST_CASE("an idle CPU takes over a waiting thread after half a turn") {
  // The third thread waits for the CPU of the first one. The CPU of the second thread is idle from
  // 2 to 4.25 ms, which is half a time slice, and then takes over the third thread.
  check_ends(ends(law_of(2, 4.5), {{0, 10}, {0, 2}, {0, 3}}), {10, 2, 7.25});
  // Here the third thread gets a time slice at 4 ms, before the idle CPU has waited for half a time
  // slice. So the idle CPU does not take the thread over.
  check_ends(ends(law_of(2, 4), {{0, 10}, {0, 3.5}, {0, 1}}), {11, 3.5, 5});
}

TEST_CASE("with a CPU for each thread, turns have no effect") {
  check_ends(ends(law_of(0, 4), {{0, 10}, {0, 2}, {1, 3}}), {10, 2, 4});
  check_ends(ends(law_of(3, 4), {{0, 10}, {0, 2}, {1, 3}}), {10, 2, 4});
}

namespace {

/// Returns a pipeline with two workers and a consumer, which all compute, on two CPUs.
recorded_pipeline crowded() {
  constexpr std::uint32_t batches = 200;
  recorded_pipeline p;
  p.stages.emplace_back();
  p.stages.front().name = "preprocess";
  p.stages.front().threads = 2;
  p.in_flight = 4;
  p.in_flight_held = true;
  p.round_robin = true;
  p.cpu_known = true;
  p.cpus = 2;
  planned_epoch epoch;
  epoch.end_unit = batches;
  epoch.threads_ready_ns = {0, 0};
  for (std::uint32_t b = 0; b < batches; ++b) {
    planned_unit unit;
    unit.end_stage = 1;
    unit.first_work = b;
    p.units.push_back(unit);
    p.works.push_back({(5 + b * 7 % 5) * ms, 0, 0, 1});
    p.steps.push_back({3 * ms, 0, 0, 1});
    p.takes_ns.push_back(0);
    epoch.deliveries.push_back(b);
  }
  p.epochs.push_back(epoch);
  return p;
}

double replayed_per_s(const recorded_pipeline& p, const run_data& run, double turn_ms) {
  speed_law law = estimate_speed({&p}, 2).law;
  law.turn_ns = turn_ms * ms;
  return replay(plan_of(p, run.names, law, {})).per_s();
}

}  // namespace

TEST_CASE("turns are fitted if the simulation is too fast without them") {
  const run_data none;
  recorded_pipeline p = crowded();
  p.achieved_per_s = replayed_per_s(p, none, 4);
  const what_if asked(none, p, nullptr, std::nullopt);
  CHECK(asked.replayed() > 1.05 * p.achieved_per_s);
  CHECK(asked.fitted() == Approx(p.achieved_per_s).epsilon(0.03));
  // The 200 batches may be simulated several times, but run_ns() must be the time of one run.
  CHECK(asked.run_ns() == Approx(200 * 1e9 / p.achieved_per_s));
  CHECK(asked.law().law.turn_ns >= 2 * ms);

  p.achieved_per_s = replayed_per_s(p, none, 0);
  const what_if plain(none, p, nullptr, std::nullopt);
  CHECK(plain.law().law.turn_ns == 0);
  CHECK(plain.fitted() == Approx(p.achieved_per_s));
}

TEST_CASE("a simulation error is corrected fully near the recorded run, and by half far from it") {
  const run_data none;
  recorded_pipeline p = crowded();
  // Even without time slices the simulation is slower than the run, so no time slice is fitted.
  p.achieved_per_s = 1.1 * replayed_per_s(p, none, 0);
  const what_if asked(none, p, nullptr, std::nullopt);
  const double error = asked.fitted() / p.achieved_per_s;
  CHECK(error == Approx(1 / 1.1));
  CHECK(asked.guess({}).per_s == Approx(p.achieved_per_s));
  pipeline_change fewer;
  fewer.workers = 1;
  const double replayed = replay(plan_of(p, none.names, asked.law().law, fewer)).per_s();
  REQUIRE(replayed < 0.75 * asked.fitted());
  const double taken_out = std::log(replayed / asked.guess(fewer).per_s) / std::log(error);
  CHECK(taken_out > 0.5);
  CHECK(taken_out < 0.65);
}

TEST_CASE("stages that share threads have the workers of their pool") {
  recorded_pipeline p;
  p.pools = {4, 2};
  const auto add = [&p](std::size_t threads, std::optional<std::size_t> pool) {
    p.stages.emplace_back();
    p.stages.back().name = "stage " + std::to_string(p.stages.size());
    p.stages.back().threads = threads;
    p.stages.back().pool = pool;
  };
  add(1, 0);             // a stage in order, on one thread of pool 0
  add(4, 0);             // a stage on all four threads of pool 0
  add(2, 1);             // a stage of another pool
  add(3, std::nullopt);  // a stage with threads of its own
  const auto with = [&p](const pipeline_change& change) {
    std::vector<std::size_t> threads;
    for (std::size_t s = 0; s < p.stages.size(); ++s) threads.push_back(threads_with(change, p, s));
    return threads;
  };
  pipeline_change change;
  CHECK(with(change) == std::vector<std::size_t>{1, 4, 2, 3});
  change.workers = 8;
  CHECK(with(change) == std::vector<std::size_t>{1, 8, 2, 3});
  change.workers = 2;
  CHECK(with(change) == std::vector<std::size_t>{1, 2, 2, 3});
  change.threads["stage 4"] = 5;
  CHECK(with(change) == std::vector<std::size_t>{1, 2, 2, 5});
}

TEST_CASE("faster work is not suggested if the consumer is too slow to gain 5 %") {
  const run_data none;
  recorded_pipeline p = crowded();
  p.achieved_per_s = replayed_per_s(p, none, 0);
  const what_if asked(none, p, nullptr, std::nullopt);
  const auto suggests_faster_work = [&](double consumer) {
    const suggested_changes found =
        suggest(asked, none, verdict::balanced, consumer * p.achieved_per_s, {});
    const auto is_faster = [](const suggestion& one) { return !one.change.faster.empty(); };
    return std::any_of(found.suggestions.begin(), found.suggestions.end(), is_faster) ||
           std::any_of(found.possible.begin(), found.possible.end(), is_faster);
  };
  CHECK(suggests_faster_work(1.06));
  CHECK_FALSE(suggests_faster_work(1.04));
}

TEST_CASE("other programs count if they used at least a tenth of the CPUs") {
  const run_data none;
  recorded_pipeline p = crowded();
  p.achieved_per_s = replayed_per_s(p, none, 0);
  p.others_cpus = 0.15;
  CHECK(what_if(none, p, nullptr, std::nullopt).fewest_cpus() == 0);
  p.others_cpus = 0.25;
  CHECK(what_if(none, p, nullptr, std::nullopt).fewest_cpus() == Approx(1.75));
}
