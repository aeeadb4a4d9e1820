// Tests facts and claims that the rules use: changes in a series of times, whose numbers vary in an
// order that looks random, the locks of operations, and other programs.
#include "findings/facts/changes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "catch.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "tool/diagnose/logged_facts.hpp"
#include "waits/join/blocked_on.hpp"

using lotus::tool::find_change;
using lotus::tool::time_change;
using shape = time_change::shape;

namespace {

/// Returns 200 times around `usual(i)`, with deviations of up to 20 %.
std::vector<double> series(const std::function<double(std::size_t)>& usual) {
  std::vector<double> times;
  for (std::size_t i = 0; i < 200; ++i) {
    times.push_back(usual(i) * (0.8 + 0.4 * static_cast<double>(i * 7919 % 101) / 100));
  }
  return times;
}

}  // namespace

TEST_CASE("times that change by less than a factor of two, or few times, have no change") {
  CHECK_FALSE(find_change(series([](std::size_t) { return 10; })));
  CHECK_FALSE(find_change(series([](std::size_t i) { return i < 100 ? 10 : 15; })));
  CHECK_FALSE(find_change(std::vector<double>(23, 1)));
  CHECK_FALSE(find_change({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
  // One slow element is an accident, and rare ones that take little of the time do not matter.
  CHECK_FALSE(find_change(series([](std::size_t i) { return i == 77 ? 1000 : 10; })));
  CHECK_FALSE(find_change(series([](std::size_t i) { return i % 60 == 5 ? 70 : 10; })));
  // A few elements at the beginning or the end are no part of their own.
  CHECK_FALSE(find_change(series([](std::size_t i) { return i < 4 ? 100 : 10; })));
  CHECK_FALSE(find_change(series([](std::size_t i) { return i >= 196 ? 100 : 10; })));
  // Neither is an element rare if every fourth is one.
  CHECK_FALSE(find_change(series([](std::size_t i) { return i % 4 == 1 ? 100 : 10; })));
}

TEST_CASE("times that jump at one element are a step there") {
  for (const double after : {30.0, 3.0}) {
    CAPTURE(after);
    const auto found = find_change(series([=](std::size_t i) { return i < 60 ? 10 : after; }));
    REQUIRE(found);
    CHECK(found->is == shape::step);
    CHECK(found->at == 60);
    CHECK(found->before_ns == Approx(10).epsilon(0.05));
    CHECK(found->after_ns == Approx(after).epsilon(0.05));
  }
}

TEST_CASE("24 times are enough for a step") {
  std::vector<double> times(24, 1);
  std::fill(times.begin() + 12, times.end(), 9);
  const auto found = find_change(times);
  REQUIRE(found);
  CHECK(found->is == shape::step);
  CHECK(found->at == 12);
}

TEST_CASE("times that grow or shrink all the time are a trend from the first to the last") {
  for (const bool grows : {true, false}) {
    CAPTURE(grows);
    const auto found = find_change(series([=](std::size_t i) {
      const double share = static_cast<double>(i) / 200;
      return 10 + 80 * (grows ? share : 1 - share);
    }));
    REQUIRE(found);
    CHECK(found->is == shape::trend);
    // The medians of the first and the last eighth.
    CHECK(found->before_ns == Approx(grows ? 15 : 85).epsilon(0.1));
    CHECK(found->after_ns == Approx(grows ? 85 : 15).epsilon(0.1));
  }
}

TEST_CASE("growth beside noise is a trend, and a rise and fall no step") {
  // Other programs make half of the run slower.
  const auto grows = find_change(series([](std::size_t i) {
    return (0.3e6 + 4e6 * static_cast<double>(i) / 200) * (i < 100 ? 1 : 1.6);
  }));
  REQUIRE(grows);
  CHECK(grows->is == shape::trend);
  const auto rises = find_change(series([](std::size_t i) {
    const double share = static_cast<double>(i) / 200;
    return 1e6 + 6e6 * std::sin(3.14159 * share * share);
  }));
  CHECK_FALSE(rises);
}

TEST_CASE("a step near the end is found where it is") {
  const auto found = find_change(series([](std::size_t i) { return i < 175 ? 3e6 : 1e6; }));
  REQUIRE(found);
  CHECK(found->is == shape::step);
  CHECK(found->at == 175);
}

TEST_CASE("slow elements at equal distances are counted, with their distance and share") {
  const auto found = find_change(series([](std::size_t i) {
    return i % 16 == 3 ? (i == 83 ? 10 : 200) : i == 84 ? 200 : 10;  // one is late
  }));
  REQUIRE(found);
  CHECK(found->is == shape::now_again);
  CHECK(found->rare == 13);
  CHECK(found->every == 16);
  CHECK(found->before_ns == Approx(10).epsilon(0.05));
  CHECK(found->after_ns == Approx(200).epsilon(0.15));
  CHECK(found->rare_share == Approx(13 * 200.0 / (13 * 200 + 187 * 10)).epsilon(0.05));
  const auto irregular = find_change(series([](std::size_t i) {
    return i == 3 || i == 20 || i == 21 || i == 90 || i == 140 || i == 199 ? 300 : 10;
  }));
  REQUIRE(irregular);
  CHECK(irregular->is == shape::now_again);
  CHECK(irregular->rare == 6);
  CHECK(irregular->every == 0);
}

TEST_CASE("an operation waits for a lock if half of its samples show it, and at least five") {
  lotus::tool::run_blocked_on joined;
  lotus::tool::blocked_on lock;
  lock.reason = lotus::detail::wait_reason::lock;
  const auto waits_for_lock = [&](double share, std::uint64_t samples) {
    lock.share = share;
    lock.samples = samples;
    joined.ops["SLoad"].by = {lock};
    return lotus::tool::lock_of(joined, "Load") != nullptr;
  };
  CHECK(waits_for_lock(0.5, 5));
  CHECK_FALSE(waits_for_lock(0.49, 5));
  CHECK_FALSE(waits_for_lock(0.5, 4));
  CHECK(lotus::tool::lock_of(joined, "Crop") == nullptr);
}

TEST_CASE("an idle machine does not help if other programs used less than a tenth of the CPUs") {
  lotus::tool::diagnosis d{};
  d.cpus = 4;
  const lotus::tool::claims claims(d);
  CHECK_FALSE(claims.forbids_idle_machine());
  d.others_cpus = 0.39;
  CHECK(claims.forbids_idle_machine());
  d.others_cpus = 0.4;
  CHECK_FALSE(claims.forbids_idle_machine());
}

TEST_CASE("a step that waits for the workers' CPUs forbids that the consumer is the bottleneck") {
  using lotus::tool::verdict;
  lotus::tool::diagnosis d{};
  d.waits.waits = 1;
  const lotus::tool::claims claims(d);
  CHECK_FALSE(claims.forbids(verdict::consumer_bound));
  d.findings.emplace_back("step-waits-for-cpu", lotus::tool::phrase{}, lotus::tool::phrase{}, 1.0,
                          verdict::preprocessing_bound, lotus::tool::forbids_balanced);
  CHECK(claims.forbids(verdict::consumer_bound));
  CHECK(claims.forbids(verdict::balanced));
  CHECK_FALSE(claims.forbids(verdict::preprocessing_bound));
}

TEST_CASE("the mean of rare long times fits their share of the time") {
  const auto found = find_change(series([](std::size_t i) {
    return i % 29 == 5 ? 100 : i % 29 == 11 ? 400 : 10;
  }));
  REQUIRE(found);
  CHECK(found->is == shape::now_again);
  const double all_ns = static_cast<double>(found->rare) * found->rare_mean_ns / found->rare_share;
  CHECK(all_ns > 0.8 * (7 * 500 + 186 * 10));
  CHECK(all_ns < 1.2 * (7 * 500 + 186 * 10));
}

TEST_CASE("fewer calls for a batch are told from shorter ones") {
  using namespace lotus::tool_test;
  for (const bool fewer : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 200; ++i) {
      // From 10 calls of 1 ms to one of them, or to 10 of 0.1 ms.
      const std::int64_t tenths = std::max<std::int64_t>(1, 10 - i / 20);
      const std::int64_t calls = fewer ? tenths : 10;
      const std::int64_t each = fewer ? ms : tenths * ms / 10;
      const std::int64_t start = now + 10'000;
      for (std::int64_t k = 0; k < calls; ++k) {
        logs.op(1, "Lookup", start + k * (each + 1000) + 1000, each);
      }
      const std::int64_t took = calls * (each + 1000) + 2000;
      logs.made(1, i, start, took);
      now = received_when(logs, i, now, start + took + 10'000) + ms / 10;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "changes-over-time"), "Lookup takes less and less time"));
    CHECK(contains(found(a, "changes-over-time"), "there are fewer") == fewer);
  }
}

TEST_CASE("a rate limit shows in batches without operations, too") {
  using namespace lotus::tool_test;
  for (const bool limited : {true, false}) {
    planted_logs logs(8);
    std::mt19937 random(7);
    std::int64_t now = 0;
    std::int64_t served = 0;
    std::int64_t free_ns[3] = {};
    std::size_t last = 0;
    for (std::int64_t i = 0; i < 240; ++i) {
      // One thread is often served several times; or every fifth batch takes longer by chance.
      const std::size_t thread = !limited            ? static_cast<std::size_t>(i % 3)
                                 : random() % 10 < 6 ? last
                                                     : random() % 3;
      last = thread;
      const auto own = static_cast<std::int64_t>(random() % 5 == 0 ? random() % 100 : 14);
      const std::int64_t start = free_ns[thread] + 20'000;
      const std::int64_t end =
          limited ? served + 14 * ms + static_cast<std::int64_t>(random() % 100'000)
                  : start + own * ms + 100'000;
      served = end;
      free_ns[thread] = end;
      logs.made(1 + static_cast<int>(thread), i, start, end - start);
      logs.off_cpu(1 + static_cast<int>(thread), end - 1000, end - start - 50'000, 0);
      now = received_when(logs, i, now, end + 10'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "batches end at a steady 71") == limited);
  }
}
