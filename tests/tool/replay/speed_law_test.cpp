#include "replay/speed_law.hpp"

#include <cstdint>
#include <random>

#include "catch.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

using namespace lotus::tool;

namespace {

/// Estimates the speed law, which says how much busy CPUs slow down a thread, from simulated work.
/// Each unit takes 3 to 13 ms, while one other CPU is busy for half of the time on average.
/// @param slowing  relative slowdown of the work while the other CPU is busy.
/// @param beside_long_ones  how much longer the other CPU is busy during long work.
estimated_law estimated(double slowing, double beside_long_ones) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  recorded_pipeline p;
  p.stages.emplace_back();
  for (std::uint32_t i = 0; i < 2000; ++i) {
    planned_unit unit;
    unit.end_stage = 1;
    unit.first_work = i;
    p.units.push_back(unit);
    const double length = uniform(random);
    const double at_first = uniform(random);
    const double others = 0.5 * at_first + 0.25 * uniform(random) + beside_long_ones * length;
    measured_work w;
    w.cpu_ns = (3 + 10 * length) * 1e6 * (1 + slowing * others);
    w.others_busy = others;
    w.others_at_first = at_first;
    p.works.push_back(w);
  }
  return estimate_speed({&p}, 2);
}

}  // namespace

TEST_CASE("longer work, which overlaps with more other work, is not mistaken for slowed work") {
  const double alone = estimated(0, 0).law.slowing;
  const double crowded = estimated(0, 0.3).law.slowing;
  CHECK(alone < 0.1);
  CHECK(crowded < 0.1);
  CHECK(crowded == Approx(alone).margin(0.03));
}

TEST_CASE("slowing by other threads is detected") {
  for (const double beside_long_ones : {0.0, 0.3}) {
    const estimated_law found = estimated(0.4, beside_long_ones);
    CHECK(found.levels_seen);
    // The result is below the true 0.4, because it is combined with a typical value.
    CHECK(found.law.slowing > 0.25);
    CHECK(found.law.slowing < 0.5);
  }
}

TEST_CASE("slowing is not estimated if the number of busy threads never differs") {
  recorded_pipeline p;
  p.stages.emplace_back();
  for (std::uint32_t i = 0; i < 100; ++i) {
    planned_unit unit;
    unit.end_stage = 1;
    unit.first_work = i;
    p.units.push_back(unit);
    p.works.push_back({5e6, 0, 0, 0.5, 0.5});
  }
  CHECK_FALSE(estimate_speed({&p}, 2).levels_seen);
  CHECK(estimate_speed({&p}, 1).law.slowing == 0);
}

TEST_CASE(
    "more CPUs than recorded are believed if much work shows them, not if many short ones do") {
  const auto cpus_of = [](double crowded_ns) {
    recorded_pipeline p;
    for (int i = 0; i < 100; ++i) {
      p.works.push_back({30e6, 0, 2e6, 1.1, 1.1});
      p.works.push_back({crowded_ns, 0, 0, 2.9, 2.9});
    }
    return estimate_speed({&p}, 2).law.cpus;
  };
  CHECK(cpus_of(0.1e6) == 2);
  CHECK(cpus_of(30e6) == 4);
}
