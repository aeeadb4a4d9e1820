// Tests what the facts of a run say about how batches are asked for, and about limits of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/logged_facts.hpp"

using namespace lotus::tool_test;

TEST_CASE("a wait for what the consumer returns is told apart from a wait for a service") {
  for (const bool limited : {true, false}) {
    constexpr int buffers = 3;
    planted_logs logs(8);
    generator random(5);
    std::vector<std::int64_t> free(6, 0);  // when each thread begins its next batch
    std::vector<std::int64_t> returned;    // when the consumer's step for each batch ended
    std::int64_t served = 0;               // when the service ended its last call
    std::int64_t now = 0;
    for (int i = 0; i < 160; ++i) {
      const auto thread = static_cast<std::size_t>(i % 6);
      const std::int64_t start = free[thread];
      std::int64_t got = std::max(start, served) + 7 * ms / 2;
      if (limited)
        got = i < buffers ? start + 20'000 : returned[static_cast<std::size_t>(i - buffers)];
      got = std::max(got, start + 20'000) + 40'000;
      served = got;
      const std::int64_t end = got + 10 * ms + static_cast<std::int64_t>(random() % (2 * ms));
      const int log = 1 + static_cast<int>(thread);
      logs.made(log, i, start, end - start);
      logs.op(log, "GetBuffer", start + 1000, got - start - 1000);
      logs.op(log, "Read", got + 1000, end - got - 2000);
      logs.off_cpu(log, got - 1000, got - start - 4000, 0);
      logs.off_cpu(log, end - 3000, end - got - 10'000, 0);
      if (got - start > ms) logs.wait_sample(log, (start + got) / 2, "condition", "pool", 77, 0);
      free[thread] = end + 20'000;
      const std::int64_t at = std::max(now + 2000, end + 20'000);
      received(logs, i, now, at);
      now = at + ms + static_cast<std::int64_t>(random() % ms);
      returned.push_back(now);
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "batch-limit"),
                   "only 3 batches may be between GetBuffer and the end of the consumer's step") ==
          limited);
    if (!limited) continue;
    CHECK_FALSE(suggests(a, "workers"));
    CHECK_FALSE(suggests(a, "faster"));
  }
}

TEST_CASE("threads that build on demand need batches in flight, not more threads") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 80; ++i) {
    slept(logs, 1 + static_cast<int>(i % 6), i, now, 9 * ms);
    received(logs, i, now + 30'000, now + 9 * ms + 50'000);
    now += 12 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  // A batch takes as long as three steps, so three batches in flight keep the consumer busy.
  CHECK(contains(a.text(), "6 workers, 1 at once"));
  CHECK(contains(a.text(), "batches built ahead, 3 in flight"));
  CHECK_FALSE(contains(a.text(), "batches built ahead by"));
}

TEST_CASE("a worker may begin before the reception that lets it begin is recorded") {
  planted_logs logs;
  logs.cpus(8);
  generator random(5);
  // One batch may be in flight, and the simulation does not explain the run.
  std::int64_t free = 0;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    const std::int64_t took = (4 + (i % 30 == 7 ? 25 : 0)) * ms;
    slept(logs, 1 + static_cast<int>(random() % 4), i, free, took);
    const std::int64_t at = std::max(now + 2000, free + took + 40'000);
    received(logs, i, now, at);
    free = at - 20'000;
    now = at + 3 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "prefetch-bound");
}

TEST_CASE("a worker and a consumer that swap two buffers have one batch in flight") {
  planted_logs logs(8);
  generator random(5);
  const auto varied = [&random](int of) {
    return (random() % static_cast<unsigned>(of) == 0 ? 16 : 2) * ms;
  };
  std::int64_t begin = 0;  // when the worker begins its next batch
  std::int64_t asked = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    const std::int64_t took = varied(3);
    slept(logs, 1, i, begin, took);
    const std::int64_t ready = begin + took;
    if (ready >= asked) {
      // The worker goes on at once, and the consumer that it wakes waits for a CPU.
      logs.waited(0, i, asked, ready + 180'000 - asked);
      logs.off_cpu(0, ready + 179'000, ready + 170'000 - asked, 150'000);
      logs.used(0, i, ready + 180'000);
      begin = ready + 30'000;
      asked = ready + 180'000 + varied(4);
    } else {
      received(logs, i, asked, asked + 5000);
      begin = asked + 60'000;
      asked += varied(4);
    }
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "prefetch-bound");
  CHECK(suggests(a, "prefetch"));
}

TEST_CASE("an operation that only waits for other threads gains nothing by itself") {
  for (const bool waits : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 80; ++i) {
      const std::int64_t start = i * 10 * ms;
      logs.made(1, i, start, 9 * ms);
      logs.op(1, "Collect", start + 1000, 9 * ms - 2000);
      logs.off_cpu(1, start + 9 * ms - 2000, 9 * ms - 100'000, 0);
      logs.wait_sample(1, start + 4 * ms, waits ? "condition" : "sleep", "inbox", 77, 0);
      now = received_when(logs, i, now, start + 9 * ms + 40'000) + 2 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(suggests(a, "faster"));
    CHECK(contains(a.text(), "if what it waits for comes sooner") == waits);
  }
}

TEST_CASE("more threads are suggested before small parts of the critical path are listed") {
  planted_logs logs(8);
  std::int64_t read = 15 * ms;   // when its thread begins its next batch
  std::int64_t free[] = {0, 0};  // when each thread of the slow stage begins its next batch
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    const std::int64_t read_ns = i == 0 ? 15 * ms : ms / 10;
    logs.stage(1, "Read", i, read, read_ns);
    std::int64_t& embed = free[i % 2];
    const std::int64_t start = std::max(embed, read + read_ns + 20'000);
    const std::int64_t end = start + 19 * ms + i % 7 * ms / 4;
    const int thread = 2 + static_cast<int>(i % 2);
    logs.stage(thread, "Embed", i, start, end - start);
    logs.off_cpu(thread, end - 100'000, end - start - 200'000, 0);
    logs.wait_sample(thread, start + 9 * ms, "sleep", 10 * ms);
    embed = end + 10'000;
    const std::int64_t pad_ns = i == 119 ? 15 * ms : ms / 5;
    logs.stage(4, "Pad", i, end + 20'000, pad_ns);
    const std::int64_t at = std::max(now + 2000, end + pad_ns + 40'000);
    received(logs, i, now, at);
    now = at + 2 * ms;
    read += read_ns + 5 * ms;
  }
  logs.damage(2, 3);
  logs.records(2000, 20);
  const answer a = diagnose(logs);
  const temp_dir out;
  const std::string file = out.path() + "/screen";
  const std::string command = "COLUMNS=80 " LOTUS_TOOL_PROGRAM " diagnose '" + a.logs->path() + "'";
  REQUIRE(std::system((command + " >'" + file + "' 2>/dev/null").c_str()) == 0);
  const std::string screen = read_file(file);
  INFO(screen);
  CHECK(a.whole["screen"]["where"].array().size() > 3);
  CHECK(contains(screen, "stage Embed 2x faster"));
  CHECK(contains(screen, "threads in Embed instead of 2"));
}

TEST_CASE("windows are found in batches that are received in any order") {
  for (const bool windows : {true, false}) {
    planted_logs logs(8);
    std::vector<std::int64_t> asked(160, 0);
    std::vector<std::int64_t> free_at(4, 0);
    std::int64_t now = 0;
    std::int64_t built = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> ready;  // when, and the batch's number
    for (std::int64_t k = 0; k < 160; ++k) {
      // The batches of the next window are asked for after the last step of the one before.
      const std::int64_t limit = windows ? (k / 8 + 1) * 8 : k + 8;
      for (; built < std::min<std::int64_t>(limit, 160); ++built) {
        const auto worker = std::min_element(free_at.begin(), free_at.end());
        const std::int64_t start = std::max(now, *worker) + 10'000;
        const std::int64_t ns = 9 * ms + built % 3 * ms / 10;
        slept(logs, 1 + static_cast<int>(worker - free_at.begin()), built, start, ns);
        *worker = start + ns;
        ready.emplace_back(*worker, built);
      }
      const auto next = std::min_element(ready.begin(), ready.end());
      const std::int64_t at = std::max(now + 2000, next->first + 20'000);
      received(logs, next->second, now, at);
      ready.erase(next);
      now = at + 3 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "refilled-in-windows"), "every 8th batch") == windows);
    CHECK((a.verdict() == "hand-over-bound") == windows);
  }
}

TEST_CASE("chunks that arrive late at regular times are no windows that the consumer asks for") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    const std::int64_t read_at = (i / 8 + 1) * 40 * ms;  // a thread without markers reads a chunk
    const std::int64_t start = read_at + 10'000 + i % 8 * 1000;
    slept(logs, 1 + static_cast<int>(i % 8), i, start, 9 * ms);
    now = received_when(logs, i, now, start + 9 * ms + 20'000) + 2 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(found(a, "refilled-in-windows").empty());
}

namespace {

/// Who lets the consumer receive batches that are ready.
enum class delivery { timeout, passing_thread, regular_flush };

/// Logs batches that a worker builds in 3 to 6 ms, at most four of them ahead.
void deliver(planted_logs& logs, delivery by) {
  constexpr std::int64_t fixed_ns = 20 * ms;
  std::vector<std::int64_t> received_at;
  std::int64_t worker_free = 0;
  std::int64_t passer_free = 0;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t room_at = i < 4 ? 0 : received_at[static_cast<std::size_t>(i - 4)];
    const std::int64_t start = std::max(worker_free, room_at) + 10'000;
    const std::int64_t ns = 3 * ms + i * 7 % 4 * ms;
    slept(logs, 1, i, start, ns);
    worker_free = start + ns;
    const std::int64_t jitter = i * 13 % 7 * 10'000;
    std::int64_t at = worker_free;
    if (by == delivery::passing_thread) {
      at = passer_free = std::max(passer_free, worker_free) + fixed_ns + jitter;
    } else if (by == delivery::regular_flush) {
      at = (worker_free / fixed_ns + 1) * fixed_ns + jitter;
    } else if (at > now) {
      at = now + ((at - now) / fixed_ns + 1) * fixed_ns + jitter;
    }
    at = std::max(at, now + 2000);
    received(logs, i, now, at);
    for (std::int64_t sampled = now + ms; sampled < at; sampled += 4 * ms) {
      logs.wait_sample(0, sampled, "condition", "is_ready", 77, 0);
    }
    received_at.push_back(at);
    now = at + ms + i % 3 * ms / 2;
  }
}

}  // namespace

TEST_CASE("waits that last for a fixed time are told from a step that passes batches on") {
  for (const delivery by : {delivery::timeout, delivery::passing_thread, delivery::regular_flush}) {
    planted_logs logs(8);
    deliver(logs, by);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "hand-over-bound");
    CHECK(found(a, "wait-of-fixed-time").empty() == (by != delivery::timeout));
    CHECK(found(a, "slow-hand-over").empty() == (by == delivery::timeout));
  }
}

TEST_CASE("stages that build each batch only when the consumer asks are told from a slow reader") {
  for (const bool asked : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t worker_free = 0;
    for (std::int64_t i = 0; i < 80; ++i) {
      // A thread reads for 2.4 ms, without marker, before it begins a batch.
      const std::int64_t start = asked ? now + 20'000 : worker_free + 24 * ms / 10;
      logs.stage(1, "Fetch", i, start, 4 * ms);
      logs.off_cpu(1, start + 4 * ms - 1000, 39 * ms / 10, 0);
      logs.stage(2, "Decode", i, start + 4 * ms + 50'000, 5 * ms);
      logs.off_cpu(2, start + 9 * ms + 49'000, 49 * ms / 10, 0);
      worker_free = start + 9 * ms + 50'000;
      received(logs, i, now, std::max(now + 2000, worker_free + 30'000));
      now = std::max(now + 2000, worker_free + 30'000) + 2 * ms + i % 3 * ms / 5;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    const bool said = contains(a.text(), "each batch is built only when the consumer asks for it");
    CHECK(said == asked);
  }
}

TEST_CASE("work outside of all operations that takes long now and then is told") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    const std::int64_t took = i % 16 == 15 ? 50 * ms : ms / 2;
    logs.made(0, i, now + 2000, took);
    logs.op(0, "Read", now + 3000, ms / 4);
    logs.off_cpu(0, now + took, took - 100'000, 0);
    logs.waited(0, i, now, took + 5000);
    logs.used(0, i, now + took + 5000);
    now += took + 5000 + 5 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  // The steps take 60 % of the run, but no batch is built meanwhile.
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(contains(a.text(), "The work outside of all operations takes 49.7"));
  CHECK(contains(a.text(), "at every 16th batch"));
  CHECK(contains(a.text(), "Put LOTUS_SCOPE into what it consists of."));
}

TEST_CASE("a consumer that builds batches itself may gain if others build them") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    constexpr std::int64_t took = 6 * ms / 10;
    logs.made(0, i, now + 2000, took);
    logs.op(0, "Read", now + 3000, took - 2000);
    logs.waited(0, i, now, took + 5000);
    logs.off_cpu(0, now + took, 9 * took / 10, 0);
    logs.used(0, i, now + took + 5000);
    now += 8 * ms + i % 3 * ms / 10;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "consumer-bound");
  CHECK(contains(a.text(), "batches built ahead by 1 worker"));
  CHECK_FALSE(contains(a.text(), "would not help"));
}

TEST_CASE("what is passed on together is told from a slow batch for which later ones wait") {
  for (const bool together : {true, false}) {
    planted_logs logs(8);
    constexpr std::int64_t size = 32;
    std::int64_t built = 0;
    std::int64_t now = 0;
    std::vector<std::int64_t> ready;
    for (std::int64_t i = 0; i < 8 * size; ++i) {
      // Either one thread builds all batches of a buffer before it passes the first one on, or
      // every 32nd batch takes long and three threads build the others meanwhile.
      const bool is_slow = !together && i % size == size - 1;
      const std::int64_t took = is_slow ? 90 * ms : 3 * ms;
      const int thread = together ? 1 : is_slow ? 4 : 1 + static_cast<int>(i % 3);
      const std::int64_t start = together ? built : is_slow ? built - 70 * ms : built;
      slept(logs, thread, i, start, took);
      ready.push_back(start + took);
      built = together ? start + took + 10'000 : built + (is_slow ? 0 : ms + 10'000);
    }
    for (std::int64_t i = 0; i < 8 * size; ++i) {
      const std::int64_t last = (i / size + 1) * size - 1;
      const std::int64_t from = ready[static_cast<std::size_t>(together ? last : i)];
      now = received_when(logs, i, now, from + 20'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "passed-on-together").empty() == !together);
    CHECK((a.verdict() == "hand-over-bound") == together);
    if (together) CHECK(contains(a.text(), "at every 32nd batch"));
  }
}

TEST_CASE("a consumer that polls is told although the prefetch depth limits the run") {
  planted_logs logs(8);
  std::int64_t now = 0;
  std::int64_t asked[3] = {0, 0, 0};
  for (std::int64_t i = 0; i < 120; ++i) {
    // Of three batches that are built at once, the next is begun when one was received. The
    // consumer looks every 6 ms.
    const std::int64_t start = asked[i % 3];
    slept(logs, 1 + static_cast<int>(i % 3), i, start, 15 * ms);
    const std::int64_t ready = start + 15 * ms;
    const std::int64_t looks = ready <= now ? 0 : (ready - now) / (6 * ms) + 1;
    const std::int64_t at = now + 2000 + looks * 6 * ms;
    if (looks > 0) logs.wait_sample(0, now + 1000, "sleep", at - now);
    received(logs, i, now, at);
    asked[i % 3] = at + 10'000;
    now = at + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "its own thread was asleep: it polls"));
}

TEST_CASE("a consumer that asks after its step may be hardly slower than the workers") {
  planted_logs logs(8);
  std::int64_t now = 0;
  std::vector<std::int64_t> free(4, 0);
  std::vector<std::int64_t> asked(200, 0);
  std::vector<std::int64_t> ready(200, 0);
  std::size_t begun = 0;
  const auto begin_until = [&](std::size_t end, std::int64_t at) {
    for (; begun < std::min<std::size_t>(end, 200); ++begun) {
      const auto thread = std::min_element(free.begin(), free.end());
      const std::int64_t start = std::max(*thread, at) + 10'000;
      slept(logs, 1 + static_cast<int>(thread - free.begin()), static_cast<std::int64_t>(begun),
            start, 148 * ms / 10);
      *thread = ready[begun] = start + 148 * ms / 10;
    }
  };
  for (std::size_t i = 0; i < 200; ++i) {
    begin_until(i + 12, now);
    now = received_when(logs, static_cast<std::int64_t>(i), now, ready[i] + 20'000) + 41 * ms / 10;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "consumer-bound");
  CHECK(contains(a.text(), "consumer's step 2x faster"));
}

TEST_CASE("a part that takes longer and longer is suggested before more workers") {
  for (const bool grows : {true, false}) {
    planted_logs logs(8);
    generator random(7);
    std::int64_t free[2] = {};  // when each worker begins its next batch
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 240; ++i) {
      const std::int64_t read = 3 * ms + static_cast<std::int64_t>(random() % (ms / 2));
      const std::int64_t dedupe = (grows ? ms / 2 + i * ms / 24 : 5 * ms) + ms / 8;
      const int log = 1 + static_cast<int>(i % 2);
      std::int64_t& begin = free[i % 2];
      const std::int64_t end = begin + read + dedupe;
      logs.made(log, i, begin, end - begin);
      logs.op(log, "Read", begin + 1000, read - 2000);
      logs.off_cpu(log, begin + read - 1000, read - 4000, 0);
      logs.op(log, "Dedupe", begin + read, dedupe - 1000);
      begin = end + 10'000;
      now = received_when(logs, i, now, end + 20'000) + ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    const std::size_t part = a.text().find("Dedupe 2x faster");
    const std::size_t more = a.text().find(" workers instead of 2");
    REQUIRE(more != std::string::npos);
    REQUIRE(part != std::string::npos);
    CHECK((part < more) == grows);
  }
}

TEST_CASE("a run that reaches a rate limit again and again cannot be much faster") {
  enum class slow { limited, stopped, at_random };
  for (const slow why : {slow::limited, slow::stopped, slow::at_random}) {
    constexpr std::int64_t interval = 50 * ms;
    planted_logs logs(8);
    generator random(5);
    std::vector<std::int64_t> free(6, 0);  // when each thread begins its next batch
    std::vector<std::int64_t> used;        // when the consumer began the step of each batch
    std::map<std::int64_t, int> calls;     // in each interval
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 400; ++i) {
      const auto thread = static_cast<std::size_t>(i % 6);
      const int log = 1 + static_cast<int>(thread);
      std::int64_t at = free[thread];
      if (i >= 16) at = std::max(at, used[static_cast<std::size_t>(i - 16)]);
      const std::int64_t start = at;
      for (int call = 0; call < 2; ++call) {
        std::int64_t allowed = at;
        if (why == slow::limited) {
          // 40 calls may begin in each interval.
          while (calls[allowed / interval] == 40) allowed = (allowed / interval + 1) * interval;
          ++calls[allowed / interval];
        } else if (why == slow::stopped && at % interval > 35 * ms) {
          allowed = (at / interval + 1) * interval;
        } else if (why == slow::at_random && random() % 10 == 0) {
          allowed += static_cast<std::int64_t>(random() % 30) * ms;
        }
        const std::int64_t end = allowed + 7 * ms / 10 + static_cast<std::int64_t>(random() % 9000);
        logs.op(log, "GetLabel", at + 1000, end - at - 1000);
        logs.off_cpu(log, end - 1000, end - at - 20'000, 0);
        at = end + 100'000;
      }
      logs.made(log, i, start, at - start);
      free[thread] = at + 20'000;
      now = received_when(logs, i, now, at + 20'000);
      used.push_back(now);
      now += 5 * ms / 2 + static_cast<std::int64_t>(random() % 200'000);
      logs.off_cpu(0, now - 1000, 2 * ms, 0);
    }
    const answer a = diagnose(logs);
    INFO(static_cast<int>(why) << '\n' << a.text());
    CHECK(contains(a.text(), "only if GetLabel may be called more often") ==
          (why == slow::limited));
  }
}
