#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "aggregates.hpp"
#include "catch.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::aggregate_of;

namespace {

void calls(int n) {
  for (int i = 0; i < n; ++i) LOTUS_SCOPE_AGGREGATED("Token");
}

std::uintmax_t ring_file_bytes(const support::temp_directory& run) {
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) == 0) return entry.file_size();
  }
  return 0;
}

/// Returns the self time of an operation: its duration minus the aggregated calls that the side log
/// shows inside it.
std::int64_t self_of(const support::temp_directory& run, const std::string& name) {
  std::int64_t self_ns = 0;
  for (const auto& l : support::read_logs(run.path())) {
    if (l.name != name) continue;
    self_ns += l.duration_ns;
    for (const auto& a : support::read_side_log(run.path(), "aggregated")) {
      if (a.time_ns >= l.start_ns && a.time_ns + a.a <= l.end_ns()) self_ns -= a.a;
    }
  }
  return self_ns;
}

std::uint64_t add_calls(int n, std::uint64_t (*ticks)(int)) {
  const auto tag = lotus::detail::operation_tag("Given");
  std::uint64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t outer = lotus::detail::begin_aggregated();
    lotus::detail::aggregate(1000, 1000 + ticks(i), tag, outer);
    sum += ticks(i);
  }
  return sum;
}

}  // namespace

TEST_CASE("the middle of a bucket is within 0.8 % of every value in the bucket") {
  using lotus::detail::bucket_begin;
  using lotus::detail::bucket_of;
  using lotus::detail::bucket_width;
  std::mt19937_64 random{1};
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t ticks = random() >> (random() % 64);
    const std::uint32_t bucket = bucket_of(ticks);
    const std::uint64_t begin = bucket_begin(bucket);
    REQUIRE(bucket < lotus::detail::octaves * lotus::detail::octave_buckets);
    REQUIRE(begin <= ticks);
    REQUIRE(ticks - begin < bucket_width(bucket));
    const double middle =
        static_cast<double>(begin) + static_cast<double>(bucket_width(bucket) - 1) / 2;
    REQUIRE(std::abs(middle - static_cast<double>(ticks)) <=
            0.008 * static_cast<double>(ticks) + 0.001);
  }
}

TEST_CASE("aggregated calls are counted and summed, and write no records") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  calls(100'000);
  const std::string name = "Late";
  for (int i = 0; i < 7; ++i) LOTUS_SCOPE_AGGREGATED(name);
  lotus::stop();
  calls(10);  // calls after stop() are not recorded
  const auto token = aggregate_of(run.path(), "SToken");
  CHECK(token.count == 100'000);
  CHECK(token.total_ns > 0);
  CHECK(token.self_ns == token.total_ns);
  CHECK(aggregate_of(run.path(), "SLate").count == 7);
  CHECK(support::read_logs(run.path()).empty());
}

TEST_CASE("sums of aggregated calls are exact to the tick") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const std::uint64_t ticks = add_calls(50'000, [](int i) { return std::uint64_t{1} << (i % 50); });
  const double rate = lotus::detail::session::instance().records().clock().with_map(
      [](const lotus::detail::clock_map& map) {
        return static_cast<double>(map.current().rate) / 4294967296.0;
      });
  lotus::stop();
  const auto given = aggregate_of(run.path(), "SGiven");
  CHECK(given.count == 50'000);
  CHECK(given.buckets.size() == 50);
  for (const auto& [bucket, n] : given.buckets) CHECK(n == 1000);
  const double ns = static_cast<double>(ticks) * rate;
  CHECK(std::abs(static_cast<double>(given.total_ns) - ns) < ns / 100);
}

TEST_CASE("a call with a negative duration counts as 0") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  add_calls(100, [](int i) { return i % 3 == 0 ? ~std::uint64_t{6} : 5; });
  lotus::stop();
  const auto given = aggregate_of(run.path(), "SGiven");
  CHECK(given.count == 100);
  CHECK(given.buckets.size() == 2);
  CHECK(given.buckets.at(0) == 34);
}

TEST_CASE("the memory for aggregated calls does not grow with their number") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const auto all_durations = [](int i) { return std::uint64_t{1} << (i % 64); };
  add_calls(64, all_durations);
  const std::uintmax_t before = ring_file_bytes(run);
  REQUIRE(before > 0);
  add_calls(300'000, all_durations);
  CHECK(ring_file_bytes(run) == before);
  lotus::stop();
  CHECK(aggregate_of(run.path(), "SGiven").count == 300'064);
}

TEST_CASE("a new thread continues the sums of a thread that ended") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  std::uintmax_t after_some = 0;
  for (int i = 0; i < 200; ++i) {
    std::thread([] { calls(100); }).join();
    if (i == 40) after_some = ring_file_bytes(run);
  }
  CHECK(ring_file_bytes(run) == after_some);
  lotus::stop();
  CHECK(aggregate_of(run.path(), "SToken").count == 20'000);
}

TEST_CASE("simultaneous threads have separate sums") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { calls(200'000); });
  for (std::thread& t : threads) t.join();
  lotus::stop();
  CHECK(support::read_aggregates(run.path()).size() == 4);
  CHECK(aggregate_of(run.path(), "SToken").count == 800'000);
}

namespace {

void recurse(int depth) {
  LOTUS_SCOPE_AGGREGATED("Deep");
  if (depth > 1) recurse(depth - 1);
}

void spin_us(int us) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < until) {
  }
}

}  // namespace

TEST_CASE("self times of nested calls do not count any time twice") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 20; ++i) {
    LOTUS_SCOPE_AGGREGATED("Outer");
    spin_us(20);
    recurse(5);
    LOTUS_SCOPE_AGGREGATED("Inner");
    spin_us(50);
  }
  try {
    LOTUS_SCOPE_AGGREGATED("Throws");
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
  }
  lotus::stop();
  const auto outer = aggregate_of(run.path(), "SOuter");
  const auto inner = aggregate_of(run.path(), "SInner");
  const auto deep = aggregate_of(run.path(), "SDeep");
  CHECK(outer.count == 20);
  CHECK(deep.count == 100);
  CHECK(aggregate_of(run.path(), "SThrows").count == 1);
  CHECK(inner.self_ns == inner.total_ns);
  CHECK(deep.self_ns < deep.total_ns);
  const std::uint64_t selves = outer.self_ns + inner.self_ns + deep.self_ns;
  CHECK(selves <= outer.total_ns);
  CHECK(selves + 200 >= outer.total_ns);  // 200 ns more, because each self time is rounded down
}

TEST_CASE("self times of nested calls and recorded operations exclude each other's time") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 10; ++i) {
    LOTUS_SCOPE("Recorded");
    spin_us(100);
    for (int j = 0; j < 10; ++j) {
      LOTUS_SCOPE_AGGREGATED("Call");
      spin_us(20);
    }
    LOTUS_SCOPE("Within");
    LOTUS_SCOPE_AGGREGATED("Call");
    spin_us(30);
  }
  {
    LOTUS_SCOPE_AGGREGATED("Around");
    LOTUS_SCOPE("Recorded in it");
    spin_us(10);
  }
  lotus::stop();
  const auto call = aggregate_of(run.path(), "SCall");
  CHECK(call.count == 110);
  std::uint64_t reported = 0;
  for (const auto& a : support::read_side_log(run.path(), "aggregated")) {
    CHECK(a.name == "SCall");
    reported += static_cast<std::uint64_t>(a.a);
  }
  // The library converts the times in the side log with the clock rate that it knew when it wrote
  // each line, but the sums with the rate at the end. So the two may differ slightly.
  const std::uint64_t slack_ns = 100 + call.self_ns / 1000;
  CHECK(reported <= call.self_ns + slack_ns);
  CHECK(reported + slack_ns >= call.self_ns);
  const auto around = aggregate_of(run.path(), "SAround");
  CHECK(around.count == 1);
  CHECK(around.self_ns == 0);
  CHECK(self_of(run, "SWithin") >= 0);
  CHECK(self_of(run, "SRecorded") >= 0);
  CHECK(support::read_side_log(run.path(), "aggregated").size() == 20);
}

TEST_CASE("the sums of a loader's calls are in its directory") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  calls(3);
  {
    LOTUS_LOADER("val");
    calls(5);
  }
  calls(4);
  lotus::stop();
  CHECK(aggregate_of(run.path(), "SToken").count == 7);
  CHECK(aggregate_of(run.path() / "val", "SToken").count == 5);
}

TEST_CASE("a new recording adds to the sums of the recording before it") {
  const support::temp_directory run;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(lotus::start(run.prefix()));
    calls(100);
    lotus::stop();
  }
  CHECK(aggregate_of(run.path(), "SToken").count == 300);
}

TEST_CASE("names beyond the limit share one sum that is called (unnamed)") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 5000; ++i) LOTUS_SCOPE_AGGREGATED("Name " + std::to_string(i));
  lotus::stop();
  std::uint64_t sum = 0;
  for (const auto& a : support::read_aggregates(run.path())) sum += a.count;
  CHECK(sum == 5000);
  CHECK(aggregate_of(run.path(), "S(unnamed)").count > 800);
}
