// Tests statements that the facts of a run forbid or explain, in runs of unusual structure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "findings/finding.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "waits/join/blocked_on.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the text of the finding; "" if the diagnosis does not have it.
std::string found(const answer& a, const std::string& id) {
  for (const json& one : a.whole["findings"].array()) {
    if (one["id"].text() == id) return one["text"].text();
  }
  return {};
}

bool suggests(const answer& a, const std::string& key) {
  for (const char* const list : {"moves", "possible"}) {
    for (const json& one : a.whole[list].array()) {
      if (one["change"].has(key)) return true;
    }
  }
  return false;
}

/// Logs a batch that its thread builds, mostly asleep.
void slept(planted_logs& logs, int thread, std::int64_t i, std::int64_t start, std::int64_t ns) {
  logs.made(thread, i, start, ns);
  logs.op(thread, "Load", start + 1000, ns - 2000);
  logs.off_cpu(thread, start + ns - 2000, ns - 100'000, 0);
}

/// Logs that the consumer waits for a batch from `from` until `at`, and then begins its step.
void received(planted_logs& logs, std::int64_t i, std::int64_t from, std::int64_t at) {
  logs.waited(0, i, from, at - from);
  logs.off_cpu(0, at - 1000, at - from - 2000, 0);
  logs.used(0, i, at);
}

}  // namespace

TEST_CASE("a window whose second batch begins first is one window") {
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    const std::int64_t in_window = i % 8;
    if (in_window == 0) {
      for (int k = 0; k < 8; ++k) {
        // Every second window, the thread of its second batch is the first to run.
        const std::int64_t late = i % 16 == 0 && k != 1 ? 300'000 : 0;
        const std::int64_t start = now + 5000 + late;
        slept(logs, 1 + k, i + k, start, 20 * ms + k * 10'000 - late);
      }
      received(logs, i, now, now + 20 * ms + 20'000);
      now += 20 * ms + 20'000;
    } else {
      received(logs, i, now, now + 4000);
    }
    now += 3 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "hand-over-bound");
  CHECK(contains(found(a, "refilled-in-windows"), "every 8th batch"));
}

TEST_CASE("a worker that worked later is not slow because all became slower") {
  for (const bool shared_log : {false, true}) {
    planted_logs logs;
    logs.cpus(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 120; ++i) {
      const bool slow = shared_log && i % 4 == 3;
      const std::int64_t took = (shared_log ? (slow ? 20 : 5) : 4 + i / 8) * ms;
      // In the first case, a thread takes over from another. In the second, some threads have a
      // number that is above all thread ids: several short threads share a log.
      const int thread =
          shared_log ? (slow ? 5'000'000 : static_cast<int>(i % 3)) : (i < 60 ? 1 : 2);
      slept(logs, 1 + thread, i, now, took);
      received(logs, i, now, now + took + 10'000);
      now += took + 20'000;
    }
    CHECK(diagnose(logs).whole["slow_workers"].size() == 0);
  }
}

TEST_CASE("a worker that begins a batch as the step ends builds on demand") {
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 80; ++i) {
    slept(logs, 1, i, now, 5 * ms);
    received(logs, i, now + 30'000, now + 5 * ms + 50'000);
    now += 8 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "No batch is built while the consumer works"));
}

TEST_CASE("it is said that nobody builds batches while the consumer waits") {
  for (const std::int64_t idle : {5 * ms, ms / 10}) {
    planted_logs logs;
    logs.cpus(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 80; ++i) {
      // The thread needs `idle` before it begins a batch; it begins every third during the step.
      const std::int64_t start = i % 3 == 0 ? now - ms : now + idle;
      slept(logs, 1, i, start, 6 * ms);
      received(logs, i, now, start + 6 * ms + 50'000);
      now = start + 7 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "nobody-builds").empty() == (idle < ms));
  }
}

TEST_CASE("a step that waits for another thread is not made faster by itself") {
  planted_logs logs;
  logs.cpus(8);
  for (std::int64_t i = 0; i < 80; ++i) {
    const std::int64_t now = 15 * ms * i;
    slept(logs, 1, i, now, 3 * ms);
    received(logs, i, now + 14 * ms, now + 14 * ms + 20'000);
    logs.off_cpu(0, now + 28 * ms, 12 * ms, 0);
    logs.wait_sample(0, now + 20 * ms, "condition", "table_lock", 77, 0);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "consumer-bound");
  CHECK(contains(a.text(), "Shorten this wait"));
  CHECK_FALSE(contains(a.text(), "step 2x faster"));
}

TEST_CASE("waits for objects without a name are one part of an operation's time") {
  planted_logs logs;
  logs.cpus(8);
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t now = 10 * ms * i;
    slept(logs, 1, i, now, 9 * ms);
    logs.wait_sample(1, now + 5 * ms, "condition", "", static_cast<int>(100 + i % 3), 0);
    received(logs, i, now + 2 * ms, now + 9 * ms + 50'000);
  }
  const answer a = diagnose(logs);
  const std::string text = run({"stats", a.logs->path()}).out;
  INFO(text);
  const std::string wait = "waits for a condition variable";
  REQUIRE(contains(text, wait));
  CHECK_FALSE(contains(text.substr(text.find(wait) + wait.size()), wait));
}

TEST_CASE("rare long calls do not look like a limit of calls at once") {
  for (unsigned seed = 28; seed <= 33; ++seed) {
    generator random(seed);
    planted_logs logs;
    logs.cpus(2);
    constexpr int batches = 250;
    constexpr int ahead = 8;
    std::vector<std::int64_t> free(4, 0);
    std::vector<std::int64_t> left(batches, 0);
    std::vector<std::int64_t> ready(batches, 0);
    std::int64_t now = 0;
    for (int i = 0; i < batches; ++i) {
      // Workers begin a batch when fewer than `ahead` others were begun and not received.
      for (int n = i == 0 ? 0 : i + ahead - 1; n < std::min(batches, i + ahead); ++n) {
        const auto thread = std::min_element(free.begin(), free.end());
        const bool is_long = random() % 12 == 0;
        const auto took =
            static_cast<std::int64_t>(is_long ? 70 + random() % 40 : 3 + random() % 3);
        const std::int64_t start =
            std::max(*thread, n < ahead ? 0 : left[static_cast<std::size_t>(n - ahead)]) + 20'000;
        slept(logs, 1 + static_cast<int>(thread - free.begin()), n, start, took * ms);
        *thread = ready[static_cast<std::size_t>(n)] = start + took * ms;
      }
      const std::int64_t at = std::max(now + 2000, ready[static_cast<std::size_t>(i)] + 20'000);
      received(logs, i, now, at);
      left[static_cast<std::size_t>(i)] = at;
      now = at + 3 * ms;
    }
    const answer a = diagnose(logs);
    INFO(seed << ' ' << a.text());
    CHECK(a.verdict() != "preprocessing-bound");
  }
}

TEST_CASE("a limit of calls in each interval is told apart from threads that work in step") {
  for (const int allowed : {8, 4}) {
    planted_logs logs;
    logs.cpus(8);
    std::vector<std::int64_t> free(4, 0);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 200; ++i) {
      if (i == 0) logs.op(9, "Load", now - ms, 0);  // a call may be too short for the clock
      // Each 100 ms, so many calls are allowed, which take 5 ms then.
      std::int64_t& thread = free[static_cast<std::size_t>(i % 4)];
      const std::int64_t allowed_at = i / allowed * 100 * ms + 2 * ms;
      const std::int64_t end = std::max(thread, allowed_at) + 5 * ms + i % 4 * 10'000;
      slept(logs, 1 + static_cast<int>(i % 4), i, thread, end - thread);
      thread = end + 20'000;
      const std::int64_t at = std::max(now + 2000, end + 20'000);
      received(logs, i, now, at);
      now = at + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "8 calls of Load end each 100.0 ms") == (allowed == 8));
    if (allowed != 8) continue;
    CHECK_FALSE(suggests(a, "workers"));
    CHECK_FALSE(suggests(a, "faster"));
  }
}

TEST_CASE("more workers are doubtful if workers wait at a semaphore") {
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  generator random(3);
  for (std::int64_t i = 0; i < 180; ++i) {
    const std::int64_t end =
        33 * ms + 11 * ms / 2 * i + static_cast<std::int64_t>(random() % (2 * ms));
    const int thread = 1 + static_cast<int>(i % 6);
    slept(logs, thread, i, end - 30 * ms, 30 * ms);
    logs.wait_sample(thread, end - 15 * ms, "condition", "tokens", 77, 0);
    const std::int64_t at = std::max(now + 2000, end + 20'000);
    received(logs, i, now, at);
    now = at + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(suggests(a, "workers"));
  for (const json& one : a.whole["possible"].array()) {
    if (one["change"].has("workers")) CHECK(contains(one["text"].text(), "can serve more at once"));
  }
  for (const json& one : a.whole["moves"].array()) CHECK_FALSE(one["change"].has("workers"));
}

TEST_CASE("the advice for a lock of the allocator can be followed") {
  lotus::tool::blocked_on lock;
  CHECK(contains(text_of(lock_advice(lock)), "under the lock"));
  lock.taken_in = "malloc";
  CHECK(contains(text_of(lock_advice(lock)), "Allocate less"));
  CHECK_FALSE(contains(text_of(lock_advice(lock)), "under the lock"));
}

TEST_CASE("a run whose CPUs other threads of the program use is not balanced") {
  planted_logs logs;
  logs.cpus(2);
  logs.cpu_time(0, 0, 0);
  logs.cpu_time(600 * ms, 1190 * ms, 5 * ms);
  for (std::int64_t i = 0; i < 150; ++i) {
    const std::int64_t start = 4 * ms * i;
    const int thread = 1 + static_cast<int>(i % 3);
    logs.made(thread, i, start, 12 * ms - 60'000);
    logs.op(thread, "Resize", start + 1000, 12 * ms - 62'000);
    logs.off_cpu(thread, start + 12 * ms - 70'000, 11 * ms, 7 * ms);
    const std::int64_t at = start + 12 * ms - 20'000;
    received(logs, i, at - ms / 3, at);
    logs.off_cpu(0, at + 3 * ms, 2 * ms + ms / 2, 2 * ms + ms / 2);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(contains(a.text(), "Why: code outside of all markers used"));
}

TEST_CASE("threads that wait for a CPU longer than they run do not get more of them") {
  planted_logs logs;
  logs.cpus(2);
  logs.cpu_time(0, 0, 0);
  logs.cpu_time(404 * ms, 210 * ms, 0);  // other programs used the rest
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t start = 4 * ms * i;
    const int thread = 1 + static_cast<int>(i % 2);
    logs.made(thread, i, start, 8 * ms - 40'000);
    logs.op(thread, "Store", start + 1000, 8 * ms - 42'000);
    logs.off_cpu(thread, start + 8 * ms - 50'000, 6 * ms, 5 * ms);
    received(logs, i, start + 4 * ms + (i == 0 ? 0 : 300'000), start + 8 * ms + 20'000);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "wait for a CPU longer than they run"));
  CHECK_FALSE(suggests(a, "workers"));
}

TEST_CASE("calls that have more to do at every n-th batch do not wait for a rate limit") {
  for (const bool limited : {true, false}) {
    planted_logs logs;
    logs.cpus(8);
    std::int64_t free_at[] = {0, ms};  // when each of two workers begins its next batch
    std::int64_t next_calls_at = 0;    // when eight calls become possible again
    int calls_left = 0;
    std::vector<std::int64_t> ready;
    for (int i = 0; i < 200; ++i) {
      const int worker = free_at[0] <= free_at[1] ? 0 : 1;
      const std::int64_t start = free_at[worker];
      std::int64_t served_at = start;
      if (limited) {
        if (calls_left == 0) {
          calls_left = 8;
          next_calls_at = (next_calls_at / (40 * ms) + 1) * 40 * ms;
        }
        --calls_left;
        served_at = std::max(start, next_calls_at);
      }
      const std::int64_t end = served_at + (!limited && i % 4 == 3 ? 24 * ms : 3 * ms);
      slept(logs, 1 + worker, i, start, end - start);
      free_at[worker] = end + ms / 10;
      ready.push_back(end);
    }
    std::int64_t now = 0;
    for (int i = 0; i < 200; ++i) {
      const std::int64_t at = std::max(now, ready[static_cast<std::size_t>(i)]) + ms / 100;
      received(logs, i, now, at);
      now = at + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "calls-in-bursts").empty() != limited);
  }
}

TEST_CASE("a wait for what the consumer returns is told apart from a wait for a service") {
  for (const bool limited : {true, false}) {
    constexpr int buffers = 3;
    planted_logs logs;
    logs.cpus(8);
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
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 80; ++i) {
    slept(logs, 1 + static_cast<int>(i % 6), i, now, 9 * ms);
    received(logs, i, now + 30'000, now + 9 * ms + 50'000);
    now += 12 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  // The step is 3 of 12 ms, so four batches in flight keep the consumer busy.
  CHECK(contains(a.text(), "6 workers, 1 at once"));
  CHECK(contains(a.text(), "batches built ahead, 4 in flight"));
  CHECK_FALSE(contains(a.text(), "batches built ahead by"));
}

TEST_CASE("more threads are suggested before small parts of the critical path are listed") {
  planted_logs logs;
  logs.cpus(8);
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
    planted_logs logs;
    logs.cpus(8);
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
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    const std::int64_t read_at = (i / 8 + 1) * 40 * ms;  // a thread without markers reads a chunk
    const std::int64_t start = read_at + 10'000 + i % 8 * 1000;
    slept(logs, 1 + static_cast<int>(i % 8), i, start, 9 * ms);
    const std::int64_t at = std::max(now + 2000, start + 9 * ms + 20'000);
    received(logs, i, now, at);
    now = at + 2 * ms;
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
    planted_logs logs;
    logs.cpus(8);
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
    planted_logs logs;
    logs.cpus(8);
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
