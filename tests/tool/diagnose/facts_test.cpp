// Tests statements that the facts of a run forbid or explain, in runs of unusual structure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "findings/finding.hpp"
#include "tool/diagnose/logged_facts.hpp"
#include "waits/join/blocked_on.hpp"

using namespace lotus::tool_test;

TEST_CASE("a window whose second batch begins first is one window") {
  planted_logs logs(8);
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
  CHECK(contains(a.text(), "Batches are begun too late (hand-over-bound)."));
}

TEST_CASE("a worker that worked later is not slow because all became slower") {
  for (const bool shared_log : {false, true}) {
    planted_logs logs(8);
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

TEST_CASE("a slow worker that works on after the others is compared with what these needed") {
  planted_logs logs;
  logs.cpus(8);
  // Each worker has 25 batches of its own; those of the last one take 4 times as long. One of the
  // others builds its last batch when only the slow one still works.
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const int thread = static_cast<int>(i % 4);
    const std::int64_t took = (thread == 3 ? 40 : 10) * ms;
    const std::int64_t start = i == 96 ? 500 * ms : i / 4 * (took + 10'000);
    slept(logs, 1 + thread, i, start, took);
    const std::int64_t at = std::max(now + 2000, start + took + 20'000);
    received(logs, i, now, at);
    now = at + ms;
  }
  const json slow = diagnose(logs).whole["slow_workers"];
  REQUIRE(slow.size() == 1);
  CHECK(slow.array()[0]["slower_than_median"].number() == Approx(4).epsilon(0.05));
}

TEST_CASE("a worker that begins a batch as the step ends builds on demand") {
  planted_logs logs(8);
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
    planted_logs logs(8);
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
  planted_logs logs(8);
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
  planted_logs logs(8);
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
    planted_logs logs(2);
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

TEST_CASE("calls that are served in turn are told apart from threads that work in turn") {
  for (const bool served : {true, false}) {
    generator random(5);
    planted_logs logs(8);
    std::vector<std::int64_t> free{0, 7 * ms, 14 * ms};
    std::int64_t now = 0;
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < 300; ++i) {
      std::int64_t& thread = free[static_cast<std::size_t>(i % 3)];
      const auto late = static_cast<std::int64_t>(random() % 400'000);
      const std::int64_t start = thread + 3 * ms;
      // Either something takes 7 ms for each call, or each thread takes its own time.
      const std::int64_t end = std::max(served ? last + 7 * ms : start + 18 * ms, start) + late;
      slept(logs, 1 + static_cast<int>(i % 3), i, start, end - start);
      thread = last = end;
      now = received_when(logs, i, now, end + 20'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "calls of Load end at a steady 139 per second") == served);
    if (served) CHECK_FALSE(suggests(a, "workers"));
  }
}

TEST_CASE("threads in step that make long and short calls in turn are under no limit") {
  generator random(6);
  planted_logs logs(8);
  std::vector<std::int64_t> free(2, 0);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    std::int64_t& thread = free[static_cast<std::size_t>(i % 2)];
    const std::int64_t start = thread;
    for (const std::int64_t took : {2, 9, 2}) {
      const auto late = static_cast<std::int64_t>(random() % 20'000);
      logs.op(1 + static_cast<int>(i % 2), "Load", thread + 1000, took * ms);
      thread += took * ms + 100'000 + late;
    }
    logs.made(1 + static_cast<int>(i % 2), i, start, thread - start);
    logs.off_cpu(1 + static_cast<int>(i % 2), thread - 2000, thread - start - 100'000, 0);
    thread += 10'000;
    now = received_when(logs, i, now, thread + 20'000) + ms / 5;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(found(a, "calls-in-bursts").empty());
}

TEST_CASE("a limit of calls in each interval is told apart from threads that work in step") {
  for (const int allowed : {8, 4}) {
    planted_logs logs(8);
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
      now = received_when(logs, i, now, end + 20'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "8 calls of Load end each 100.0 ms") == (allowed == 8));
    if (allowed != 8) continue;
    CHECK_FALSE(suggests(a, "workers"));
    CHECK_FALSE(suggests(a, "faster"));
  }
}

TEST_CASE("two workers in step are not served in turn") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    const std::int64_t start = i / 2 * 51 * ms / 10 + i % 2 * ms / 6;
    slept(logs, 1 + static_cast<int>(i % 2), i, start, 5 * ms);
    now = received_when(logs, i, now, start + 5 * ms + 20'000) + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK_FALSE(contains(a.text(), "steady"));
  CHECK_FALSE(contains(a.text(), "More workers do not help"));
}

TEST_CASE("calls of threads that take turns elsewhere are not served in turn") {
  planted_logs logs;
  logs.cpus(8);
  // The lock around Tokenize lets the two threads call Read in turn.
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 160; ++i) {
    const int thread = 1 + static_cast<int>(i % 2);
    const std::int64_t start = i * 5 * ms + (i % 7) * ms / 20;
    logs.op(thread, "Read", start + 1000, 5 * ms + ms / 10);
    logs.op(thread, "Tokenize", start + 5 * ms + ms / 5, 4 * ms);
    logs.made(thread, i, start, 9 * ms + ms / 4);
    logs.off_cpu(thread, start + 5 * ms, 5 * ms - ms / 10, 0);
    const std::int64_t at = std::max(now + 2000, start + 9 * ms + ms / 2);
    received(logs, i, now, at);
    now = at + ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK_FALSE(contains(a.text(), "end at a steady"));
}

TEST_CASE("more workers are doubtful if workers wait at a semaphore") {
  planted_logs logs(8);
  std::int64_t now = 0;
  generator random(3);
  for (std::int64_t i = 0; i < 180; ++i) {
    const std::int64_t end =
        33 * ms + 11 * ms / 2 * i + static_cast<std::int64_t>(random() % (2 * ms));
    const int thread = 1 + static_cast<int>(i % 6);
    slept(logs, thread, i, end - 30 * ms, 30 * ms);
    logs.wait_sample(thread, end - 15 * ms, "condition", "tokens", 77, 0);
    now = received_when(logs, i, now, end + 20'000) + ms;
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
  planted_logs logs(2);
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
  planted_logs logs(2);
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
    planted_logs logs(8);
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

TEST_CASE("a lock that two stages share limits the run although neither waits for it most") {
  planted_logs logs(8);
  std::int64_t now = 0;
  std::int64_t lock = 0;
  std::int64_t free[3] = {0, 0, 0};
  for (std::int64_t i = 0; i < 200; ++i) {
    // Two threads of Tokenize and one of Index hold the lock for 3 and 2 ms.
    std::int64_t from = 0;
    for (const bool index : {false, true}) {
      const int thread = index ? 2 : static_cast<int>(i % 2);
      const std::int64_t start = std::max(free[thread], from);
      const std::int64_t taken = std::max(start, lock);
      lock = taken + (index ? 2 : 3) * ms;
      const std::int64_t end = lock + ms / 2;
      logs.stage(1 + thread, index ? "Index" : "Tokenize", i, start, end - start);
      logs.off_cpu(1 + thread, end - 1000, end - start - 100'000, 0);
      for (std::int64_t at = start; at < taken; at += 2 * ms) {
        logs.wait_sample(1 + thread, at, "lock", "dictionary_mutex", 77,
                         index ? 2 - static_cast<int>(i % 2) : 3);
      }
      logs.wait_sample(1 + thread, taken + ms / 2, "sleep", "", 0, 0);
      free[thread] = from = end;
    }
    now = received_when(logs, i, now, from + 20'000) + ms / 5;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "lock-bound");
  CHECK(contains(a.text(), "dictionary_mutex"));
}

TEST_CASE("other programs do not matter to threads that sleep") {
  for (const bool sleeps : {true, false}) {
    planted_logs logs(2);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      logs.made(1, i, now, 8 * ms);
      logs.op(1, "Read", now + 1000, 8 * ms - 2000);
      logs.off_cpu(1, now + 8 * ms - 2000, 15 * ms / 2, sleeps ? 0 : 4 * ms);
      received(logs, i, now, now + 8 * ms + 20'000);
      now += 17 * ms / 2;
    }
    for (std::int64_t at = 0; at < now; at += 50 * ms) logs.cpu_time(at, at / 16, 0);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "other programs") == !sleeps);
    CHECK(suggests(a, "workers") == true);
  }
}

TEST_CASE("a stage that always works and sleeps gets advice without a simulation") {
  for (const bool sleeps : {true, false}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    std::int64_t free[2] = {0, 0};
    for (std::int64_t i = 0; i < 60; ++i) {
      std::int64_t ready = 0;
      for (int part = 0; part < 8; ++part) {  // two threads fetch the parts of each batch
        std::int64_t& thread = free[part % 2];
        logs.stage(1 + part % 2, "Fetch", i, thread, 3 * ms);
        logs.off_cpu(1 + part % 2, thread + 3 * ms - 1000, 3 * ms - 100'000, 0);
        logs.wait_sample(1 + part % 2, thread + ms, sleeps ? "sleep" : "condition", "", 0, 0);
        thread += 3 * ms + 10'000;
        ready = std::max(ready, thread);
      }
      now = received_when(logs, i, now, ready + 20'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "threads-sleep").empty() == !sleeps);
  }
}

TEST_CASE("the holder of a lock is another loader's only if it has a log of that loader") {
  for (const int holder : {5, 7}) {
    planted_logs logs(8);
    logs.loader("val");
    logs.op(5, "Noise", 0, 900 * ms);
    logs.off_cpu(5, 900 * ms, ms, 0);
    logs.loader("train");
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      slept(logs, 1, i, now, 8 * ms);
      logs.wait_sample(1, now + 4 * ms, "lock", "noise", 16, holder);
      now = received_when(logs, i, now, now + 8 * ms + 20'000) + ms;
    }
    const temp_dir dir;
    logs.write(dir);
    const std::string text = run_well({"diagnose", dir.path(), "--json"}).out;
    INFO(text);
    CHECK(contains(text, lotus::tool::other_loader_code) == (holder == 5));
    CHECK(contains(text, lotus::tool::unmarked_code) == (holder == 7));
  }
}

TEST_CASE("work outside of operations in a single thread is told beside how batches are built") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 60; ++i) {
    logs.made(0, i, now + 3000, 10 * ms);
    logs.op(0, "Read", now + 4000, ms);
    received(logs, i, now, now + 10 * ms + 6000);
    now += 11 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "batches are built on the consumer's own thread"));
  CHECK(contains(a.text(), "Building batches takes 8"));
}
