// Tests what is said about threads that share few CPUs or a lock, and about threads that end soon.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "findings/facts/facts.hpp"
#include "findings/facts/library_locks.hpp"
#include "model/path/critical_path.hpp"
#include "tool/diagnose/logged_facts.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/replay/contended_loader.hpp"
#include "tool/tool_test.hpp"
#include "waits/join/blocked_on.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns all suggestions that set the number of workers and nothing else.
std::vector<json> suggested_workers(const json& found) {
  std::vector<json> all;
  for (const char* const key : {"moves", "possible"}) {
    for (const auto& one : found[key].array()) {
      if (one["change"].has("workers") && one["change"].size() == 1) all.push_back(one);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("if many workers share two CPUs, two to four workers are suggested") {
  std::size_t suggested = 0;
  for (const double cv : {0.0, 0.1, 0.3, 1.0}) {
    for (const int workers : {16, 32}) {
      for (const unsigned seed : {1U, 2U}) {
        contended_loader loader;
        loader.kind = shared_kind::work;
        loader.cpus = 2;
        loader.cv = cv;
        loader.step_ms = 1;
        loader.workers = workers;
        loader.batches = 60;
        loader.seed = seed;
        planted_logs logs;
        loader.simulate_into(&logs);
        const temp_dir dir;
        logs.write(dir);
        const result r = run({"diagnose", dir.path(), "--json"});
        INFO(loader.name() << ", seed " << seed << ":\n" << r.out);
        for (const json& one : suggested_workers(parse_json(r.out))) {
          ++suggested;
          const auto chosen = static_cast<int>(one["change"]["workers"].integer());
          CHECK(chosen >= 2);
          CHECK(chosen <= 4);
          // The suggestion must not ask for another recording: one with even more workers would not
          // show how fast fewer workers are.
          CHECK_FALSE(contains(one["text"].text(), "record once with"));
          contended_loader changed = loader;
          changed.workers = chosen;
          const double truth = changed.simulate_into(nullptr);
          double best = 0;
          for (changed.workers = 1; changed.workers <= workers; ++changed.workers) {
            best = std::max(best, changed.simulate_into(nullptr));
          }
          CHECK(truth > 0.9 * best);
        }
      }
    }
  }
  CHECK(suggested >= 8);
}

namespace {

/// Logs workers that share one CPU: each batch takes `cpu`, sleeps for `sleep`, and otherwise waits
/// for the CPU.
void share_one_cpu(planted_logs& logs, int workers, std::int64_t cpu, std::int64_t sleep) {
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    const int thread = 1 + static_cast<int>(i % workers);
    const std::int64_t start = cpu * i;
    const std::int64_t all = cpu * workers - 20'000;
    logs.made(thread, i, start, all);
    logs.op(thread, "Resize", start + 1000, all - 2000);
    logs.off_cpu(thread, start + all - 2000, all - cpu, all - cpu - sleep);
    now = received_when(logs, i, now, start + all + 20'000) + cpu / 10;
  }
}

}  // namespace

TEST_CASE("workers that sleep in between are not said to only take turns") {
  for (const std::int64_t sleep : {std::int64_t{0}, ms}) {
    planted_logs logs(1);
    share_one_cpu(logs, 6, 3 * ms, sleep);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(a.text(), "wait for a CPU longer than they run"));
    CHECK(contains(a.text(), "more of them only take turns") == (sleep == 0));
  }
}

TEST_CASE("a worker that happens to build the slow batches is not slow itself") {
  for (const bool by_chance : {true, false}) {
    planted_logs logs(4);
    std::int64_t free[] = {0, 0, 0};
    std::int64_t left[6] = {};  // when the last six batches were received
    std::int64_t now = 0;
    for (int i = 0; i < 240; ++i) {
      const int worker = i % 3;
      const bool slow = by_chance ? i % 15 == 0 : worker == 0;
      const std::int64_t took = (slow ? (by_chance ? 60 : 12) : 3) * ms + i % 7 * ms / 50;
      const std::int64_t start = std::max(free[worker], left[i % 6]) + 20'000;
      slept(logs, 1 + worker, i, start, took);
      free[worker] = start + took;
      now = left[i % 6] = received_when(logs, i, now, free[worker] + 20'000);
      now += ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "slow-worker").empty() == by_chance);
    CHECK(a.whole["slow_workers"].array().empty() == by_chance);
  }
}

TEST_CASE("a process that is bound to fewer CPUs than what started it is told") {
  for (const std::string parents : {"2", "1", "0"}) {
    planted_logs logs(1);
    logs.info("cpus 1 - 0 " + parents);
    share_one_cpu(logs, 3, 3 * ms, ms / 2);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "bound-process"), "3 threads share 1 CPU") == (parents == "2"));
    if (parents == "2") CHECK_FALSE(suggests(a, "workers"));
  }
  planted_logs logs(1);
  logs.info("cpus 1 - 0 2\nrank 0");
  share_one_cpu(logs, 3, 3 * ms, ms / 2);
  CHECK(found(diagnose(logs), "bound-process").empty());
}

TEST_CASE("worker processes that are bound to the same CPU are told like threads") {
  for (const bool same : {true, false}) {
    planted_logs logs(4);
    share_one_cpu(logs, 3, 3 * ms, ms / 2);
    const auto dir = std::make_shared<const temp_dir>();
    logs.write(*dir);
    for (int worker = 1; worker <= 3; ++worker) {
      const std::string pid = std::to_string(100 + worker);
      const std::string cpu = std::to_string(same ? 1 : worker);
      dir->file(".lotus_info_" + pid + "_1",
                "pid " + pid + "\nparent 100\nforked 100\nhost here\n" + "cpus 1 - " + cpu +
                    " 4\ncpu switches\nthread " + pid + " Sworker\nlog " + pid + ' ' + pid + '\n');
    }
    const result r = run_well({"diagnose", dir->path(), "--json"});
    const answer a{parse_json(r.out), dir};
    INFO(a.text());
    const bool said = contains(found(a, "bound-threads"), "3 threads share 1 CPU");
    CHECK(said == same);
    CHECK(contains(a.text(), "The CPUs are the bottleneck (preprocessing-bound).") == same);
  }
}

TEST_CASE("a thread that only waits longer for a CPU is no slow worker") {
  for (const bool waits : {true, false}) {
    planted_logs logs(4);
    std::vector<std::int64_t> free(4, 0);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 160; ++i) {
      const auto next = std::min_element(free.begin(), free.end());
      const int thread = 1 + static_cast<int>(next - free.begin());
      const std::int64_t took = (thread == 2 ? 20 : 6) * ms + i % 5 * ms / 10;
      const std::int64_t extra = thread == 2 ? 14 * ms : 0;
      logs.made(thread, i, *next, took);
      logs.op(thread, "Load", *next + 1000, took - 2000);
      logs.off_cpu(thread, *next + took - 2000, extra + 3 * ms, waits ? extra : 0);
      *next += took + 20'000;
      now = received_when(logs, i, now, *next + 20'000) + ms / 2;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(found(a, "slow-worker").empty() == waits);
  }
}

TEST_CASE("threads that end after one batch are told, also if later ones share logs") {
  for (const bool lasting : {false, true}) {
    planted_logs logs(8);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 120; ++i) {
      const int own = 1 + static_cast<int>(lasting ? i % 20 : i);
      const int thread = i < 30 ? own : 5'000'000 + static_cast<int>(i % 4);
      slept(logs, thread, i, now, 8 * ms);
      received(logs, i, now, now + 8 * ms + 20'000);
      now += 9 * ms;
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(contains(found(a, "thread-for-each-batch"), "30 threads built only one batch each") ==
          !lasting);
    if (!lasting) CHECK(found(a, "workers-begin-late").empty());
  }
}

TEST_CASE("batches without operations are work, and the time between batches is not") {
  using lotus::tool::path_kind;
  lotus::tool::critical_path path;
  path.run_ns = 1000;
  path.shares.resize(2);
  path.shares[0].ns = 900;
  path.shares[1].kind = path_kind::step;
  path.shares[1].ns = 100;
  path.segments = {{0, 700, path_kind::operation, {}}, {700, 900, path_kind::unrecorded, {}}};
  CHECK(lotus::tool::work_on_batches(path) == Approx(0.7));
  // Where the operations are marked, only they count.
  path.shares[0].kind = path_kind::operation;
  CHECK(lotus::tool::work_on_batches(path) == Approx(0.9));
}

TEST_CASE("the lock of the allocator is one of the library") {
  lotus::tool::blocked_on lock;
  lock.reason = lotus::detail::wait_reason::lock;
  for (const char* const function : {"malloc", "free", "rand"}) {
    lock.taken_in = function;
    CHECK(lotus::tool::is_of_library(lock));
  }
  lock.taken_in = "Pool::take";
  CHECK_FALSE(lotus::tool::is_of_library(lock));
}

TEST_CASE("threads that build each batch together and use all CPUs are said to") {
  for (const int cpus : {2, 8}) {
    planted_logs logs(cpus);
    std::int64_t now = 0;
    for (std::int64_t i = 0; i < 60; ++i) {
      for (int thread = 1; thread <= 2; ++thread) logs.stage(thread, "Frame", i, now, 8 * ms);
      now = received_when(logs, i, now, now + 8 * ms + 20'000) + 20'000;
    }
    for (std::int64_t at = 0; at <= now; at += 20 * ms) logs.cpu_time(at, 2 * at, (cpus - 2) * at);
    const answer a = diagnose(logs);
    INFO(a.text());
    const std::string text = found(a, "forked-batches") + found(a, "joined-batches");
    CHECK(contains(text, "up to 2 threads"));
    CHECK(contains(text, "of 2 CPUs: more threads gain nothing") == (cpus == 2));
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
