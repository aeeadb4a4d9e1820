// Simulates items that become batches in another order than the one in which they are begun.
#include <cstdint>

#include "catch.hpp"
#include "replay/plan.hpp"

using namespace lotus::tool;

TEST_CASE("a simulation with a full queue of items of incomplete batches continues") {
  constexpr double ms = 1e6;
  // The first batch consists of items 0 and 2, the second one of items 1 and 3. The queue holds
  // only two items, so items 0 and 1 fill it before either batch is complete.
  replay_plan plan;
  plan.stages.resize(2);
  plan.stages.front().max_ahead = 2;
  planned_epoch epoch;
  epoch.first_batch = 4;
  epoch.end_unit = 6;
  epoch.threads_ready_ns = {0, 0};
  epoch.deliveries = {4, 5};
  for (std::uint32_t item = 0; item < 4; ++item) {
    planned_unit unit;
    unit.end_stage = 1;
    unit.first_work = item;
    unit.batch = 4 + item % 2;
    plan.units.push_back(unit);
  }
  for (std::uint32_t batch = 0; batch < 2; ++batch) {
    planned_unit unit;
    unit.first_stage = 1;
    unit.end_stage = 2;
    unit.first_work = 4 + batch;
    unit.items = 2;
    plan.units.push_back(unit);
  }
  for (int i = 0; i < 6; ++i) plan.works.push_back({ms, 0, 0, 0});
  plan.uses.resize(6);
  plan.epochs.push_back(epoch);
  const replay_result found = replay(plan);
  CHECK(found.batches == 2);
  // Items end after 1 to 4 ms. The first batch is complete after 3 ms, the second one after 4 ms,
  // and building a batch takes another millisecond.
  CHECK(found.whole_ns == Approx(5 * ms));
}
