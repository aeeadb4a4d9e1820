#include "lotus/base/clock.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "catch.hpp"

using lotus::detail::clock_anchor;
using lotus::detail::clock_map;
using lotus::detail::sleep_watch;

namespace {

/// A machine whose counter, monotonic clock and wall clock the test controls.
class simulated_machine {
 public:
  explicit simulated_machine(double ticks_per_ns) : ticks_per_ns_{ticks_per_ns} {}

  void run_ns(double ns) {
    true_ns_ += ns;
    ticks_ += ns * ticks_per_ns_;
  }
  /// Simulates that the machine is suspended for `ns`. If `counter_stands`, the counter stops
  /// during the suspension, as on some machines; otherwise it continues, as on others.
  void sleep_ns(double ns, bool counter_stands) {
    true_ns_ += ns;
    asleep_ns_ += ns;
    if (!counter_stands) ticks_ += ns * ticks_per_ns_;
  }
  std::int64_t boottime_ns() const { return static_cast<std::int64_t>(true_ns_); }
  std::int64_t monotonic_ns() const { return static_cast<std::int64_t>(true_ns_ - asleep_ns_); }
  void step_wall_clock_ns(double ns) { wall_offset_ns_ += ns; }
  void drift_ppm(double ppm) { ticks_per_ns_ *= 1 + ppm * 1e-6; }

  std::uint64_t ticks() const { return 1'000'000 + static_cast<std::uint64_t>(ticks_); }
  std::int64_t wall_ns() const {
    return 1'700'000'000'000'000'000 + static_cast<std::int64_t>(true_ns_ + wall_offset_ns_);
  }
  /// Returns clock readings as the library gets them: each is wrong by up to 25 ns.
  clock_anchor anchor() {
    std::uniform_int_distribution<std::int64_t> error_ns{-25, 25};
    return {ticks(), monotonic_ns() + error_ns(random_), wall_ns() + error_ns(random_)};
  }

 private:
  double ticks_per_ns_;
  double true_ns_ = 0;
  double asleep_ns_ = 0;
  double ticks_ = 0;
  double wall_offset_ns_ = 0;
  std::mt19937_64 random_{20};
};

std::unique_ptr<clock_map> started(simulated_machine& machine) {
  auto map = std::make_unique<clock_map>();
  const clock_anchor first = machine.anchor();
  machine.run_ns(1e6);
  map->begin(first, machine.anchor());
  // Soon after its start, a session reads the clocks at these intervals, to learn the rate of the
  // counter.
  for (const double ns : {5e6, 20e6, 80e6}) {
    machine.run_ns(ns);
    REQUIRE(map->tie(machine.anchor()) == 0);
  }
  return map;
}

}  // namespace

TEST_CASE("converted times stay within a microsecond of the wall clock for an hour") {
  const double ticks_per_ns = GENERATE(2.6, 0.0245, 1.0);
  simulated_machine machine{ticks_per_ns};
  const auto map = started(machine);
  std::int64_t worst_ns = 0;
  for (int i = 0; i < 36'000; ++i) {
    // The rate of the counter changes slowly, as on a real machine while the clock's crystal gets
    // warmer.
    machine.drift_ppm(i % 1000 == 0 ? 0.02 : 0);
    machine.run_ns(50e6);
    const std::int64_t before_ns = map->current().to_ns(machine.ticks()) - machine.wall_ns();
    machine.run_ns(50e6);
    map->tie(machine.anchor());
    const std::int64_t after_ns = map->current().to_ns(machine.ticks()) - machine.wall_ns();
    worst_ns = std::max({worst_ns, std::abs(before_ns), std::abs(after_ns)});
  }
  CAPTURE(ticks_per_ns, worst_ns);
  CHECK(worst_ns < 1000);
}

TEST_CASE("ticks convert to the same time before and after later clock comparisons") {
  simulated_machine machine{2.6};
  const auto map = started(machine);
  struct given_time {
    std::uint64_t ticks;
    std::int64_t ns;
  };
  std::vector<given_time> given;
  for (int i = 0; i < 20'000; ++i) {
    machine.run_ns(100e6);
    if (i % 100 == 0) {
      given.push_back({machine.ticks(), map->current().to_ns(machine.ticks())});
    }
    map->tie(machine.anchor());
  }
  for (const given_time& g : given) {
    const std::int64_t again_ns = map->at(g.ticks).to_ns(g.ticks);
    CHECK(std::abs(again_ns - g.ns) < 1000);
  }
}

TEST_CASE("adjacent clock segments meet, so that times never run backward") {
  simulated_machine machine{2.6};
  const auto map = started(machine);
  for (int i = 0; i < 5'000; ++i) {
    machine.run_ns(90e6);
    const auto before = map->current();
    map->tie(machine.anchor());
    const auto after = map->current();
    REQUIRE(before.to_ns(after.start_ticks) == after.start_ns);
  }
}

TEST_CASE("setting the wall clock back by an hour changes no durations and no order") {
  simulated_machine machine{2.6};
  const auto map = started(machine);
  machine.run_ns(1e9);
  map->tie(machine.anchor());
  const std::uint64_t begin = machine.ticks();
  const std::int64_t start_ns = map->current().to_ns(begin);
  machine.step_wall_clock_ns(-3600e9);
  machine.run_ns(2e9);
  CHECK(map->tie(machine.anchor()) == Approx(-3600e9).margin(1e3));
  const std::uint64_t end = machine.ticks();
  CHECK(map->current().to_ns(end) - start_ns == Approx(2e9).margin(1e3));
  // The jump of the wall clock must be reported only once, and not again at each later reading of
  // the clocks.
  machine.run_ns(1e9);
  CHECK(map->tie(machine.anchor()) == 0);
  CHECK(map->current().to_ns(machine.ticks()) - start_ns == Approx(3e9).margin(1e3));
}

TEST_CASE("times follow a wall clock that is set forward, and no duration contains the step") {
  simulated_machine machine{2.6};
  const auto map = started(machine);
  const std::uint64_t begin = machine.ticks();
  machine.step_wall_clock_ns(1800e9);
  machine.run_ns(1e9);
  CHECK(map->tie(machine.anchor()) == Approx(1800e9).margin(1e3));
  machine.run_ns(1e9);
  const std::uint64_t end = machine.ticks();
  CHECK(map->current().to_ns(end) == Approx(machine.wall_ns()).margin(1e3));
  const auto b = map->at(begin);
  const auto e = map->at(end);
  CHECK((e.to_ns(end) - e.jumped_ns) - (b.to_ns(begin) - b.jumped_ns) == Approx(2e9).margin(1e3));
}

TEST_CASE("any number of clock steps fits into the map") {
  simulated_machine machine{2.6};
  const auto map = started(machine);
  for (int i = 0; i < 3'000; ++i) {
    machine.step_wall_clock_ns(5e6);
    machine.run_ns(100e6);
    map->tie(machine.anchor());
    REQUIRE(map->valid());
  }
  CHECK(map->current().to_ns(machine.ticks()) == Approx(machine.wall_ns()).margin(1e3));
}

TEST_CASE("times and rate are right from the first clock comparison after the machine slept") {
  const bool counter_stands = GENERATE(true, false);
  simulated_machine machine{2.6};
  sleep_watch watch;
  watch.slept_ns(machine.boottime_ns(), machine.monotonic_ns());
  const auto map = started(machine);
  const auto tie = [&] {
    const std::int64_t slept_ns = watch.slept_ns(machine.boottime_ns(), machine.monotonic_ns());
    return map->tie(machine.anchor(), slept_ns);
  };
  for (int i = 0; i < 50; ++i) {
    machine.run_ns(90e6);
    REQUIRE(tie() == 0);
  }
  const std::uint64_t begin = machine.ticks();
  const std::int64_t begin_ns = map->current().to_ns(begin);
  machine.run_ns(40e6);
  machine.sleep_ns(3600e9, counter_stands);
  machine.run_ns(50e6);
  CAPTURE(counter_stands);
  // The wall clock did not jump, so no jump must be reported.
  CHECK(tie() == 0);
  for (int i = 0; i < 20; ++i) {
    machine.run_ns(45e6);
    const std::uint64_t middle = machine.ticks();
    CHECK(std::abs(map->current().to_ns(middle) - machine.wall_ns()) < 1000);
    machine.run_ns(45e6);
    const std::uint64_t end = machine.ticks();
    CHECK(map->current().to_ns(end) - map->current().to_ns(middle) == Approx(45e6).margin(100));
    REQUIRE(tie() == 0);
  }
  // Times before the suspension must still be converted as before, and a span that contains the
  // suspension must be as long as the counter shows.
  CHECK(map->at(begin).to_ns(begin) == begin_ns);
  const std::uint64_t end = machine.ticks();
  const auto e = map->at(end);
  const double counted_ns = 90e6 + 20 * 90e6 + (counter_stands ? 0 : 3600e9);
  CHECK(e.to_ns(end) - e.jumped_ns - begin_ns == Approx(counted_ns).margin(20e6));
}

TEST_CASE("a clock step during sleep is reported without the time of the sleep") {
  const double step_ns = GENERATE(1800e9, -1800e9);
  const bool counter_stands = GENERATE(true, false);
  simulated_machine machine{2.6};
  const auto map = started(machine);
  machine.run_ns(90e6);
  map->tie(machine.anchor());
  machine.sleep_ns(3600e9, counter_stands);
  machine.step_wall_clock_ns(step_ns);
  machine.run_ns(50e6);
  CAPTURE(step_ns, counter_stands);
  CHECK(map->tie(machine.anchor(), 3'600'000'000'000) == Approx(step_ns).margin(5e6));
}

TEST_CASE("a sleep is noticed once, and a delay between two clock readings is not a sleep") {
  sleep_watch watch;
  watch.slept_ns(1'000'000'000, 900'000'000);
  CHECK(watch.slept_ns(2'000'000'000, 1'900'000'100) == 0);
  CHECK(watch.slept_ns(3'000'000'000, 2'950'000'000) == 0);
  CHECK(watch.slept_ns(4'000'000'000, 3'900'000'000) == 0);
  CHECK(watch.slept_ns(9'000'000'000, 5'900'000'000) == 3'000'000'000);
  CHECK(watch.slept_ns(9'100'000'000, 6'000'000'000) == 0);
}

TEST_CASE("an invariant hardware counter runs evenly across cores") {
  if (!lotus::detail::hardware_ticks_invariant()) {
    lotus_test::skip("this processor's counter is not invariant");
    return;
  }
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t here = lotus::detail::hardware_ticks();
    std::uint64_t there = 0;
    std::thread{[&] { there = lotus::detail::hardware_ticks(); }}.join();
    const std::uint64_t back = lotus::detail::hardware_ticks();
    REQUIRE(here <= there);
    REQUIRE(there <= back);
  }
}
