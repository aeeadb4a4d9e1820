#include "replay/speed_law.hpp"

#include <cstdint>
#include <random>

#include "catch.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

using namespace lotus::tool;

namespace {

/// Works of 3 to 13 ms beside one other CPU, which is busy for half of the time of each in the
/// mean, and longer beside those that are long.
/// @param slowing  how much longer a work takes while the other CPU is busy.
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

TEST_CASE("who works longer, and so beside more others, is not taken for slowed by them") {
  const double alone = estimated(0, 0).law.slowing;
  const double beside = estimated(0, 0.3).law.slowing;
  CHECK(alone < 0.1);
  CHECK(beside < 0.1);
  CHECK(beside == Approx(alone).margin(0.03));
}

TEST_CASE("what others slow is seen") {
  for (const double beside_long_ones : {0.0, 0.3}) {
    const estimated_law found = estimated(0.4, beside_long_ones);
    CHECK(found.levels_seen);
    CHECK(found.law.slowing > 0.25);  // weighed with what is usual
    CHECK(found.law.slowing < 0.5);
  }
}

TEST_CASE("without any difference in how busy others were nothing is seen") {
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
