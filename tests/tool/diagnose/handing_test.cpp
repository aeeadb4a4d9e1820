// Tests what is said of batches between the threads that build them and those that take them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/logged_facts.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns `usual` ns with a deviation of up to one `part`th of it.
std::int64_t about(std::int64_t usual, std::int64_t i, std::int64_t part = 100) {
  return usual + usual * (i * 7919 % 101 - 50) / (50 * part);
}

/// Three stages of 2, 2 and 1 threads that sleep, with queues of four batches between them.
void log_stages(planted_logs& logs, std::int64_t feed_ns, std::int64_t last_ns, std::int64_t part) {
  constexpr std::size_t queue = 4;
  std::vector<std::int64_t> pushed[2];
  std::vector<std::int64_t> taken[3];
  const auto at = [](const std::vector<std::int64_t>& times, std::int64_t i, std::size_t before) {
    const auto n = i - static_cast<std::int64_t>(before);
    return n < 0 ? 0 : times[static_cast<std::size_t>(n)];
  };
  const auto logged = [&](int thread, const char* name, std::int64_t i, std::int64_t start,
                          std::int64_t ns) {
    logs.stage(thread, name, i, start, ns);
    logs.off_cpu(thread, start + ns - 1000, ns - 20'000, 0);
  };
  std::int64_t ended = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const int turn = static_cast<int>(i % 2);
    std::int64_t ready = 0;
    for (int s = 0; s < 2; ++s) {
      const std::int64_t start = std::max(ready, at(pushed[s], i, 2)) + 5000;
      const std::int64_t ns = about(feed_ns, 3 * i + s, part);
      logged(1 + 2 * s + turn, s == 0 ? "Sample" : "Gather", i, start, ns);
      taken[s].push_back(start);
      // The next stage takes a batch out of the queue when it begins to work on it.
      const std::int64_t room = i < 4    ? 0
                                : s == 0 ? at(taken[1], i, queue)
                                         : at(taken[2], i, queue);
      pushed[s].push_back(std::max(start + ns, room) + 3000);
      ready = pushed[s].back();
    }
    const std::int64_t start = std::max(ready, ended) + 4000;
    const std::int64_t ns = about(last_ns, i, part);
    logged(5, "Train", i, start, ns);
    taken[2].push_back(start);
    ended = start + ns;
  }
}

}  // namespace

TEST_CASE("stages that a later one paces do not wait for each other") {
  // A call of an earlier stage takes about as long as one of the last: calls end one after another.
  for (const std::int64_t part : {100, 25, 400}) {
    for (const std::int64_t feed_us : {2400, 2600, 2800}) {
      planted_logs logs(8);
      log_stages(logs, feed_us * 1000, 2320 * 1000, part);
      const answer a = diagnose(logs);
      INFO(a.text());
      CHECK(a.verdict() == "stage-bound");
      CHECK(contains(a.text(), "Stage Train is the bottleneck"));
    }
  }
}

TEST_CASE("what a thread does before it passes its batch on is not called a slow way") {
  for (const bool keeps : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t free_ns[2] = {};
    for (std::int64_t i = 0; i < 120; ++i) {
      const int thread = static_cast<int>(i % 2);
      const std::int64_t start = free_ns[thread];
      slept(logs, 1 + thread, i, start, 4 * ms);
      // Otherwise it is as long on its way, but the thread builds the next batch meanwhile.
      const std::int64_t passed = start + 14 * ms;
      if (keeps) {
        logs.wait_sample(1 + thread, start + 9 * ms, "sleep", 10 * ms);
        logs.off_cpu(1 + thread, passed - 1000, 10 * ms - 10'000, 0);
      }
      free_ns[thread] = (keeps ? passed : start + 7 * ms) + 3000;
      now = received_when(logs, i, now, passed) + 2 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    const std::string text = found(a, "slow-hand-over") + found(a, "wait-of-fixed-time");
    CHECK(contains(text, "were for batches that were ready"));
    CHECK(contains(text, "before they pass one on, they sleep, for about") == keeps);
  }
}

TEST_CASE("a thread for each batch means a number of batches in flight, not of workers") {
  planted_logs logs(8);
  std::vector<std::int64_t> ready;
  std::int64_t now = 0;
  int begun = 0;
  for (std::int64_t i = 0; i < 80; ++i) {
    for (; begun < i + 2 && begun < 80; ++begun) {
      slept(logs, 1 + begun, begun, now + 20'000, 18 * ms);
      ready.push_back(now + 20'000 + 18 * ms);
    }
    now = received_when(logs, i, now + 50'000, ready[static_cast<std::size_t>(i)]) + 3 * ms;
  }
  const answer a = diagnose(logs);
  const std::string text = a.text();
  INFO(text);
  CHECK(contains(text, "a thread for each, 2 at once"));
  CHECK(contains(text, " batches in flight instead of 2"));
  CHECK_FALSE(contains(text, " workers"));
}

TEST_CASE("work in a wait is no spinning, also if the thread waits for a CPU") {
  planted_logs logs(2);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    // Each worker needs less time than the consumer, so batches are ready long before.
    const std::int64_t start = i < 6 ? i / 3 * 4 * ms : now - 20 * ms;
    slept(logs, 1 + static_cast<int>(i % 3), i, start, 3 * ms);
    if (i == 0) now = 4 * ms;
    const std::int64_t at = now + 2 * ms;
    logs.waited(0, i, now, 2 * ms);
    logs.op(0, "Normalize", now + 1000, 2 * ms - 2000);
    logs.off_cpu(0, at - 100'000, 800'000, 800'000);
    logs.used(0, i, at);
    logs.off_cpu(0, at + 5 * ms - 1000, 5 * ms - 100'000, 300'000);
    now = at + 5 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(found(a, "wait-spins").empty());
  CHECK(contains(found(a, "wait-contains-work"), "the wait contains work, mostly Normalize."));
  CHECK(a.verdict() == "hand-over-bound");
}

TEST_CASE("an operation around a whole wait is no work in it") {
  planted_logs logs(8);
  std::int64_t now = 0;
  std::int64_t free_ns = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    // Something passes the batch on 5 ms after it was ready.
    slept(logs, 1, i, free_ns, 2 * ms);
    const std::int64_t passed = free_ns + 7 * ms;
    free_ns += 2 * ms + 3000;
    if (i % 4 == 3) free_ns = passed;
    const std::int64_t from = now;
    now = received_when(logs, i, now, passed);
    logs.op(0, "Pop", from + 1000, now - from - 2000);
    if (i % 2 == 0) logs.wait_sample(0, now - ms, "lock", 10 * ms);
    now += ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(found(a, "wait-contains-work").empty());
}

TEST_CASE("page faults of a few long calls are no allocations of each batch") {
  for (const std::int64_t rare : {std::int64_t{6}, std::int64_t{120}}) {
    planted_logs logs(4);
    std::int64_t now = 0;
    std::int64_t cpu_ns = 0;
    for (std::int64_t i = 0; i < 120; ++i) {
      const std::int64_t ns = i < rare ? 17 * ms : ms;
      made_as_one(logs, 1, i, now, ns);
      cpu_ns += ns;
      received(logs, i, now, now + ns + 20'000);
      now += ns + ms;
    }
    const std::int64_t system_ns = rare * 15 * ms;
    logs.cpu_time(0, 0, 0);
    logs.info("limits 0 0 0 0");
    logs.cpu_time(now, cpu_ns, 0);
    logs.info("limits 0 0 " + std::to_string(system_ns) + ' ' + std::to_string(system_ns / 2000));
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "kernel-time"), "page faults per batch") == (rare == 120));
  }
}

TEST_CASE("a slow thread with as many batches as the others is no matter of their order") {
  for (const bool always_busy : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::vector<std::int64_t> received_at;
    std::int64_t free_ns[3] = {};
    for (std::int64_t i = 0; i < 150; ++i) {
      // Each thread has every third batch, and room for four that wait. Otherwise, the slow one
      // begins only when its batch before was received.
      const auto thread = static_cast<std::size_t>(i % 3);
      const std::int64_t room = i < 12 ? 0 : received_at[static_cast<std::size_t>(i - 12)];
      const std::int64_t own = i < 3 ? 0 : received_at[static_cast<std::size_t>(i - 3)] + 6 * ms;
      const bool is_slow = thread == 2;
      const std::int64_t start =
          std::max(free_ns[thread], is_slow && !always_busy ? own : room) + 10'000;
      const std::int64_t took = about((is_slow ? 13 : 5) * ms, i);
      slept(logs, 1 + static_cast<int>(thread), i, start, took);
      free_ns[thread] = start + took;
      received_at.push_back(received_when(logs, i, now, start + took + 10'000));
      now = received_at.back() + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "slow-worker"), "Worker 103 needs 13."));
    CHECK(suggests(a, "unordered") == false);
    CHECK((a.verdict() == "order-bound") == !always_busy);
  }
}

TEST_CASE("work between epochs that takes more time than all waits makes the consumer the limit") {
  struct pauses {
    std::int64_t ns;
    const char* loader;  // "" if the pauses are an operation
  };
  for (const pauses& each : {pauses{90 * ms, ""}, pauses{20 * ms, ""}, pauses{90 * ms, "val"}}) {
    const bool is_known = std::string(each.loader).empty();
    planted_logs logs(8);
    logs.loader(each.loader);
    std::int64_t now = 0;
    for (int epoch = 0; epoch < 8; ++epoch) {
      for (std::int64_t i = 0; i < 30; ++i) {
        // The first three are built at once, the others while the consumer works.
        slept(logs, 1 + static_cast<int>(i % 3), i, now - (i == 0 ? 0 : 5 * ms), 5 * ms - ms / 10);
        const std::int64_t at = now + (i == 0 ? 5 * ms : 0) + 20'000;
        received(logs, i, now, at);
        now = at + 2 * ms;
      }
      if (is_known) logs.op(0, "LoadIndex", now + 1000, each.ns - 2000);
      now += each.ns;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "consumer-bound");
    const std::string why = a.whole["screen"]["why"].text();
    CHECK(contains(why, "Why: between the last batch of an epoch") ==
          (is_known && each.ns > 50 * ms));
    CHECK(contains(why, "takes most of the epochs") == (each.ns <= 50 * ms || !is_known));
    CHECK(contains(found(a, "pauses-between-epochs"),
                   is_known ? "something else (mostly LoadIndex) for"
                            : "perhaps with batches of another loader"));
  }
}

TEST_CASE("how long threads sleep between batches is measured, not counted in samples") {
  planted_logs logs(8);
  std::int64_t now = 0;
  std::int64_t free_ns[2] = {};
  for (std::int64_t i = 0; i < 200; ++i) {
    const auto thread = static_cast<std::size_t>(i % 2);
    const std::int64_t start = free_ns[thread] + 6 * ms;
    logs.off_cpu(1 + static_cast<int>(thread), start - 1000, 6 * ms - 10'000, 0);
    if (i % 10 == 3)
      logs.wait_sample(1 + static_cast<int>(thread), start - 3 * ms, "sleep", 25 * ms);
    slept(logs, 1 + static_cast<int>(thread), i, start, 3 * ms);
    free_ns[thread] = start + 3 * ms;
    now = received_when(logs, i, now, free_ns[thread] + 10'000) + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  // 200 times 5.99 ms; the samples stand for 500 ms.
  CHECK(contains(a.text(), "slept for about 1.1"));
}

TEST_CASE(
    "a buffer that is filled before items are taken at random is told, other collectors not") {
  const char* const collectors[] = {"shuffle buffer", "slow collector", "sorts by length",
                                    "in order of numbers"};
  for (const std::string collector : collectors) {
    const bool slow = collector == "slow collector";
    const std::size_t filled = collector == "shuffle buffer" ? 80 : 8;
    planted_logs logs(8);
    std::minstd_rand random{7};
    std::int64_t now = 0;     // the consumer asks for a batch
    std::int64_t batch = 0;   // number of the next one
    std::int64_t passed = 0;  // when the one before was passed on
    std::int64_t read = 0;    // when the items of the epoch before were read
    std::vector<std::int64_t> lengths[16];
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<std::int64_t> buffer;
      const std::int64_t begin = std::max(now, read);
      read = begin + 200 * ms;
      const auto pass_on = [&](const std::vector<std::int64_t>& items, std::int64_t at) {
        at = std::max(at, passed + 1000) + (slow ? 12 * ms : 0);
        for (const std::int64_t item : items) logs.takes(3, at += 500, batch, item);
        passed = at + 10'000;
        now = received_when(logs, batch++, now, passed) + 4 * ms;
      };
      for (std::int64_t k = 0; k < 160; ++k) {
        const std::int64_t item = 160 * epoch + k;
        // Every 40th item takes long, so that later ones are ready before it.
        const bool late = collector == "in order of numbers" && k % 40 == 0;
        const std::int64_t ns = late ? 45 * ms : ms;
        logs.stage(late ? 2 + static_cast<int>(k / 40 % 2) * 2 : 1, "ReadItem", item,
                   begin + k * ms, ns);
        const std::int64_t ready = begin + k * ms + ns;
        std::vector<std::int64_t>& of = lengths[random() % 16];
        of.push_back(item);
        buffer.push_back(item);
        if (collector == "sorts by length") {
          if (of.size() == 8) pass_on(std::exchange(of, {}), ready);
        } else if (buffer.size() >= filled) {
          if (filled > 8) std::shuffle(buffer.begin(), buffer.end(), random);
          // The items before the late one are passed on with it.
          const std::int64_t last = begin + (k - k % 40) * ms + 45 * ms;
          pass_on({buffer.end() - 8, buffer.end()},
                  collector == "in order of numbers" ? std::max(ready, last) : ready);
          buffer.resize(buffer.size() - 8);
        }
      }
      while (buffer.size() >= 8 && filled > 8) {
        pass_on({buffer.end() - 8, buffer.end()}, begin + 160 * ms);
        buffer.resize(buffer.size() - 8);
      }
    }
    const answer a = diagnose(logs);
    INFO(collector << a.text());
    const bool is_filled = filled > 8;
    const std::string text = found(a, "buffer-filled-first");
    CHECK(text.empty() == !is_filled);
    CHECK(a.verdict() != "");
    if (!is_filled) continue;
    CHECK(contains(text, "about 80 items were ready, enough for 10"));
    CHECK(contains(text, "4 times"));
    CHECK(a.verdict() == "hand-over-bound");
  }
}

TEST_CASE("one thread whose steps take most of the run is consumer-bound") {
  for (const bool is_long : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const std::int64_t build = about(2 * ms, i, 10);
      slept(logs, 0, i, now + 3000, build);
      received(logs, i, now, now + build + 6000);
      now += build + 6000 + about(is_long ? 10 * ms : 2 * ms, i + 1, 10);
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == (is_long ? "consumer-bound" : "preprocessing-bound"));
    CHECK(contains(a.text(), "the consumer's step 2x faster") == is_long);
    CHECK(contains(a.text(), is_long ? "takes most of the run, and no batch is built meanwhile"
                                     : "batches are built on the consumer's own thread"));
  }
}

TEST_CASE("a consumer that is never blocked spins, whenever its batches are ready") {
  // It takes a ready batch 2 ms late, because another thread has its CPU. Otherwise, it is blocked
  // until the batch is ready, and then works for 2 ms.
  for (const bool spins : {true, false}) {
    planted_logs logs(2);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const std::int64_t start = i * (5 * ms + 3000);
      const std::int64_t ready = start + 5 * ms;
      logs.made(1, i, start, 5 * ms);
      logs.op(1, "Parse", start + 1000, 5 * ms - 2000);
      logs.off_cpu(1, ready - 2000, 2 * ms, 2 * ms);
      const std::int64_t wait = now;
      now = std::max(wait + 2000, ready + 2 * ms);
      logs.waited(0, i, wait, now - wait);
      const std::int64_t blocked = std::max<std::int64_t>(20'000, ready - wait);
      logs.off_cpu(0, now - 1000, spins ? ms : blocked - 10'000, spins ? ms : 0);
      logs.used(0, i, now);
      now += 500'000;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "(it spins)") == spins);
    CHECK(contains(a.text(), "the wait contains work") != spins);
  }
}

TEST_CASE("a pool whose threads wait for parts that it has to build itself is told") {
  // Two batches at once are each built by a thread that waits for four parts, which two other
  // threads build in pairs. In one pool, the threads change their roles.
  for (const bool one_pool : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const auto turn = static_cast<int>(one_pool ? i / 2 : 0);
      const auto thread = [turn](std::int64_t role) {
        return 1 + (turn + static_cast<int>(role)) % 4;
      };
      const std::int64_t start = i / 2 * (6 * ms + 200'000);
      logs.made(thread(i % 2), i, start, 6 * ms + 100'000);
      logs.off_cpu(thread(i % 2), start + 6 * ms + 50'000, 6 * ms, 0);
      for (std::int64_t part = 0; part < 4; ++part) {
        const std::int64_t at = start + 10'000 + (part / 2 * 2 + i % 2) * 3 * ms / 2;
        logs.stage(thread(2 + part % 2), "Fetch", i, at, 3 * ms / 2 - 10'000);
        logs.off_cpu(thread(2 + part % 2), at + 3 * ms / 2 - 20'000, 3 * ms / 2 - 50'000, 0);
      }
      now = received_when(logs, i, now, start + 6 * ms + 110'000) + 300'000;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "also have to do Fetch, for which they wait: 1.9 of") == one_pool);
    CHECK(suggests(a, "prefetch") <= !one_pool);
  }
}

TEST_CASE("of a batch that the others wait for, it is told before which stage it stayed") {
  // At most eight batches are in flight. Every 20th is late: before its second stage, or in it.
  for (const bool before_stage : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::vector<std::int64_t> received_at;
    std::int64_t free_ns[6] = {};
    for (std::int64_t i = 0; i < 200; ++i) {
      const std::int64_t room = i < 8 ? 0 : received_at[static_cast<std::size_t>(i - 8)];
      const std::int64_t fetch = std::max(free_ns[1], room) + 10'000;
      logs.stage(1, "Fetch", i, fetch, ms);
      free_ns[1] = fetch + ms;
      const bool is_late = i % 20 == 10;
      const int thread = is_late ? 5 : 2 + static_cast<int>(i % 3);
      const std::int64_t late = is_late ? 30 * ms : 0;
      const std::int64_t decode =
          std::max(free_ns[thread], fetch + ms + (before_stage ? late : 0)) + 10'000;
      const std::int64_t took = 2 * ms + (before_stage ? 0 : late);
      logs.stage(thread, "Decode", i, decode, took);
      free_ns[thread] = decode + took;
      received_at.push_back(received_when(logs, i, now, decode + took + 10'000));
      now = received_at.back() + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "order-bound");
    CHECK(contains(found(a, "order"), "was between two stages, before Decode") == before_stage);
  }
}

TEST_CASE("parts of a batch that begin only one after another are told") {
  // The consumer starts a task for each part of its batch, and waits for each or for all of them.
  for (const bool in_sequence : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 60; ++i) {
      std::int64_t end = 0;
      for (int part = 0; part < 4; ++part) {
        const std::int64_t at = now + 50'000 + (in_sequence ? part * (2 * ms + 50'000) : 0);
        logs.stage(1 + part, "Fetch", i, at, 2 * ms);
        logs.off_cpu(1 + part, at + 2 * ms - 10'000, 2 * ms - 50'000, 0);
        end = at + 2 * ms;
      }
      now = received_when(logs, i, now, end + 50'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(),
                   "Why: of the 4 parts that Fetch has for each batch, one begins when "
                   "the one before has ended") == in_sequence);
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
