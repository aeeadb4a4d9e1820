// Tests what is said of work beside that on batches, of several consumers, and of the CPUs and the
// calls behind a time.
#include <algorithm>
#include <cstdint>
#include <string>

#include "catch.hpp"
#include "tool/diagnose/logged_facts.hpp"

using namespace lotus::tool_test;

TEST_CASE("what workers do between batches is told, and a verdict is given") {
  for (const bool archives : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t free_ns[2] = {};
    for (std::int64_t i = 0; i < 200; ++i) {
      const int turn = static_cast<int>(i % 2);
      const std::int64_t start = free_ns[turn] + (i == 1 ? 3 * ms : 10'000);
      slept(logs, 1 + turn, i, start, 4 * ms);
      free_ns[turn] = start + 4 * ms + 20'000;
      if (archives) {
        logs.op(1 + turn, "Archive", free_ns[turn], 6 * ms);
        logs.off_cpu(1 + turn, free_ns[turn] + 6 * ms, 6 * ms - 50'000, 0);
        free_ns[turn] += 6 * ms;
      }
      now = received_when(logs, i, now, start + 4 * ms + 10'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(contains(a.text(), "spend 59 % of their time in Archive, 6.000 ms per call") == archives);
  }
}

TEST_CASE("two consumers of one loader are no two loaders") {
  for (const bool one_loader : {true, false}) {
    planted_logs logs(8);
    std::int64_t now[2] = {};
    std::int64_t free_ns[4] = {};
    for (std::int64_t i = 0; i < 200; ++i) {
      const int consumer = static_cast<int>(i % 2);
      // Otherwise, each consumer has two workers of its own.
      const int worker =
          one_loader ? static_cast<int>(i % 3) : 2 * consumer + static_cast<int>(i / 2 % 2);
      slept(logs, 1 + worker, i, free_ns[worker], 6 * ms);
      free_ns[worker] += 6 * ms + 20'000;
      const std::int64_t at = std::max(now[consumer] + 2000, free_ns[worker]);
      logs.waited(6 + consumer, i, now[consumer], at - now[consumer]);
      logs.off_cpu(6 + consumer, at - 1000, at - now[consumer] - 2000, 0);
      logs.used(6 + consumer, i, at);
      now[consumer] = at + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "The batches are received by 2 threads") == one_loader);
    CHECK(contains(a.text(), "No verdict: several loaders are recorded as one") == !one_loader);
    if (one_loader) CHECK(a.verdict() == "preprocessing-bound");
  }
}

TEST_CASE("a consumer that waits for a CPU while batches are ready is told") {
  for (const bool queues : {true, false}) {
    planted_logs logs(2);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 200; ++i) {
      slept(logs, 1, i, now - (i == 0 ? 0 : 3 * ms), 2 * ms);
      const std::int64_t at = now + ms + (i == 0 ? 2 * ms : 0);
      logs.waited(0, i, now, at - now);
      logs.off_cpu(0, at - 1000, at - now - 4000, queues ? ms - 10'000 : 0);
      logs.used(0, i, at);
      now = at + 4 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "wait-for-cpu").empty() == !queues);
  }
}

TEST_CASE("a start-up that happens once is no limit of a run of long steps") {
  for (const bool each_epoch : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (int epoch = 0; epoch < 4; ++epoch) {
      const std::int64_t start = epoch == 0 || each_epoch ? 200 * ms : 0;
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t ready = now + (i == 0 ? start : 0);
        slept(logs, 1 + static_cast<int>(i % 2), i, ready - (i == 0 ? 0 : 2 * ms), 2 * ms);
        now = received_when(logs, i, now, ready + (i == 0 ? 2 * ms : 0) + 10'000) + 3 * ms;
      }
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == (each_epoch ? "start-up-bound" : "consumer-bound"));
  }
}

TEST_CASE("fewer calls for a batch are told from shorter ones") {
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
