// Tests pipelines for which an earlier version of diagnose gave a confident but wrong verdict. Each
// must get correct numbers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_pipelines.hpp"

using namespace lotus::tool_test;

namespace {

/// What threads wait for in a sample.
struct sampled_lock {
  std::string what;
  int address;
  int holder;
};

/// Diagnoses a run of three workers that wait for locks most of their time.
answer lock_bound(const std::vector<sampled_lock>& locks) {
  planted_logs logs(8);
  for (int i = 0; i < 180; ++i) {
    const int worker = 1 + i % 3;
    const std::int64_t end = (100 + 10 * i) * ms;
    logs.made(worker, i, end - 30 * ms, 30 * ms);
    logs.op(worker, "Load", end - 30 * ms + 100, 30 * ms - 200);
    logs.off_cpu(worker, end - 10 * ms, 20 * ms - 1000, 0);
    for (const std::int64_t before : {25 * ms, 15 * ms}) {
      const std::size_t n = static_cast<std::size_t>(2 * i) + (before > 20 * ms ? 0 : 1);
      const sampled_lock& lock = locks[n % locks.size()];
      logs.wait_sample(worker, end - before, "lock", lock.what, lock.address, lock.holder);
    }
    logs.waited(9, i, end - 9 * ms, 9 * ms);
    logs.used(9, i, end);
  }
  return diagnose(logs);
}

}  // namespace

TEST_CASE("CONSUMED after the step does not turn the step into waiting") {
  worker_loader loader;
  loader.workers = 1;
  loader.step = constant(50);
  loader.consumed_late = true;
  const answer late = diagnose(loader);
  CHECK(late.verdict() == "consumer-bound");
  CHECK(late.checks == std::set<std::string>{"consumed-late"});
  CHECK(late.whole["wait_share"].number() < 0.01);
  loader.consumed_late = false;
  const answer in_time = diagnose(loader);
  CHECK(in_time.checks == no_checks);
  CHECK(late.whole["wait_share"].number() ==
        Approx(in_time.whole["wait_share"].number()).epsilon(0.03));
  CHECK(late.whole["consumer_capacity"].number() ==
        Approx(in_time.whole["consumer_capacity"].number()).epsilon(0.01));
  // With a short step, calling LOTUS_BATCH_CONSUMED only after the step changes the measured times
  // so little that the check does not fail. The capacity of the consumer must still be correct.
  loader.step = constant(1);
  const answer hardly = diagnose(loader);
  CHECK(hardly.checks == no_checks);
  CHECK(hardly.whole["consumer_capacity"].number() == Approx(1000).epsilon(0.01));
}

TEST_CASE("with more busy threads than CPUs, the speed-up factors are those of the whole run") {
  worker_loader loader;
  loader.workers = 4;
  loader.batches = 200;
  loader.make = constant(60);
  loader.step = constant(20);
  planted_logs logs;
  generator random(7);
  simulate(loader, logs, random);
  logs.cpus(2);
  const answer step_on_cpu = diagnose(logs);
  CHECK(step_on_cpu.verdict() == "consumer-bound");
  CHECK(step_on_cpu.checks == std::set<std::string>{"oversubscribed"});
  CHECK_FALSE(contains(step_on_cpu.text(), "next to nothing"));

  loader.workers = 8;
  loader.step = constant(1);
  loader.log_preprocessing = [](planted_logs& to, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    to.made(thread, i, start, duration);
    to.op(thread, "Read", start, duration / 4);
    to.off_cpu(thread, start + duration / 4, duration / 4 - 1000, 0);
    // Of the 60 ms of a batch, Decode runs on a CPU for 12 ms and waits for a CPU for 33 ms: all
    // eight workers read at the same time, and then share two CPUs.
    to.op(thread, "Decode", start + duration / 4, duration * 3 / 4 - 100);
    to.off_cpu(thread, start + duration - 100, duration * 11 / 20, duration * 11 / 20);
  };
  planted_logs reading;
  simulate(loader, reading, random);
  reading.cpus(2);
  const answer io = diagnose(reading);
  CHECK(io.checks == std::set<std::string>{"oversubscribed"});
  std::map<std::string, double> faster;
  for (const json& op : io.whole["ops"].array()) {
    faster[op["name"].text()] = op["at_most_faster"].number();
  }
  // Making Read faster gains little: its waits overlap with other workers' CPU time.
  CHECK(faster["SRead"] < 1.2);
  CHECK(faster["SDecode"] > 2);
}

TEST_CASE("with a thread per batch, the number of workers is that of batches in flight") {
  worker_loader loader;
  loader.batches = 100;
  loader.prefetch = 1;
  loader.make = constant(28);
  loader.step = constant(0.5);
  loader.log_preprocessing = [](planted_logs& logs, int, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    made_as_one(logs, static_cast<int>(i) + 1, i, start, duration);
  };
  const answer a = diagnose(loader);
  CHECK(a.whole["workers"].integer() == 2);
  CHECK(a.whole["preprocessing_capacity"].number() == Approx(2000.0 / 28).epsilon(0.01));
  CHECK(a.whole["achieved_batches_per_s"].number() == Approx(70).epsilon(0.04));
  CHECK(a.verdict() == "preprocessing-bound");
}

TEST_CASE("with a pool of threads, the number of workers is that of batches in flight") {
  worker_loader loader;
  loader.prefetch = 1;
  loader.batches = 60;
  loader.log_preprocessing = [](planted_logs& logs, int, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    made_as_one(logs, 1 + static_cast<int>((i * 5) % 8), i, start, duration);
  };
  CHECK(diagnose(loader).whole["workers"].integer() == 2);
}

TEST_CASE("pauses between epochs do not count as steps") {
  worker_loader loader;
  loader.epochs = 5;
  loader.batches = 10;
  loader.pause_ns = 5000 * ms;
  loader.make = constant(30);
  const answer a = diagnose(loader);
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(a.checks == no_checks);
  CHECK(a.whole["consumer_capacity"].number() == Approx(200).epsilon(0.01));
}

TEST_CASE("steps of varying length are attributed to the consumer, not to the workers") {
  worker_loader loader;
  loader.workers = 1;
  loader.batches = 400;
  loader.make = constant(10);
  loader.step = constant(5);
  loader.change_step = [](int i, std::int64_t step) { return i % 50 == 20 ? 600 * ms : step; };
  const answer now_and_then = diagnose(loader);
  // During a long step, the workers have to stop, because the limit of batches in flight is too
  // low.
  CHECK(now_and_then.verdict() == "prefetch-bound");

  loader.batches = 2000;
  loader.step = constant(8);
  loader.change_step = [](int i, std::int64_t step) { return i == 0 ? 30'000 * ms : step; };
  const answer first = diagnose(loader);
  CHECK(first.verdict() == "consumer-bound");
}

TEST_CASE("a slow start is reported as start-up-bound") {
  worker_loader loader;
  loader.batches = 60;
  loader.step = constant(8);
  const auto slow_first = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                             std::int64_t duration) {
    made_as_one(logs, thread, i, i < 2 ? start - 3000 * ms : start,
                i < 2 ? duration + 3000 * ms : duration);
  };
  loader.spawn_ns = 3000 * ms;
  const answer spawned = diagnose(loader);
  CHECK(spawned.verdict() == "start-up-bound");
  CHECK(spawned.whole["bound_by"]["kind"].text() == "start-up");
  loader.log_preprocessing = slow_first;
  const answer slow_batch = diagnose(loader);
  CHECK(slow_batch.verdict() == "start-up-bound");
}

TEST_CASE("without a verdict, work that waited for CPUs is named") {
  for (const bool waited_for_cpu : {false, true}) {
    planted_logs logs(2);
    for (int i = 0; i < 30; ++i) {  // no record explains why each batch begins so late
      const std::int64_t at = 100 * ms * i;
      logs.made(1, i, at + 80 * ms, 10 * ms);
      if (waited_for_cpu) logs.off_cpu(1, at + 90 * ms, 5 * ms, 5 * ms);
      logs.waited(0, i, at, 90 * ms);
      logs.used(0, i, at + 90 * ms);
    }
    const temp_dir dir;
    logs.write(dir);
    const std::string out = run({"diagnose", dir.path(), "--wide"}).out;
    INFO(out);
    CHECK(contains(out, "The logs do not show what slows the run down"));
    CHECK(contains(out, "Recorded work waited for a CPU during ") == waited_for_cpu);
  }
}

TEST_CASE("order is blamed only if ignoring it could gain 5 %") {
  generator random(11);
  int blamed = 0;
  for (int time = 0; time < 60; ++time) {
    worker_loader loader;
    loader.workers = 2 + time % 4;
    loader.batches = 80;
    loader.make = spread(20, 0.2 + 0.02 * time);
    loader.step = spread(20.0 / loader.workers + 1, 0.1);
    planted_logs logs;
    simulate(loader, logs, random);
    const answer a = diagnose(logs);
    if (a.verdict() != "order-bound") continue;
    ++blamed;
    const double could =
        std::min(a.whole["preprocessing_capacity"].number(), a.whole["consumer_capacity"].number());
    const double whole_run = loader.batches * 1e9 / a.whole["run_ns"].number();
    CHECK(could >= 1.05 * whole_run);
  }
  CHECK(blamed > 0);
}

TEST_CASE("long calls of one slow worker are not taken for calls that wait for each other") {
  // Which of four workers built each batch of a real run next to another program, and when it
  // began, in tenths of a millisecond. At most eight batches were in flight.
  const std::string built_by =
      "0123310310132130130131023103103021031031120130130321301301321301301301";
  const std::vector<int> begun{
      1,    0,    0,    2,    65,   66,   66,   125,  126,  143,  604,  625,  646,  667,
      688,  708,  729,  750,  771,  792,  1247, 1268, 1289, 1310, 1331, 1351, 1372, 1393,
      1414, 1435, 1456, 1911, 1932, 1953, 1974, 1994, 2015, 2036, 2057, 2078, 2534, 2554,
      2575, 2596, 2617, 2638, 2659, 2680, 2700, 3156, 3177, 3197, 3218, 3239, 3260, 3281,
      3301, 3322, 3778, 3799, 3820, 3841, 3861, 3882, 3903, 3924, 3944, 4400, 4421, 4442};
  for (unsigned seed = 1; seed <= 10; ++seed) {
    generator random(seed);
    std::uniform_int_distribution<std::int64_t> shorter(ms / 20, ms / 10);
    planted_logs logs(2);
    std::int64_t received = 0;
    for (std::size_t i = 0; i < begun.size(); ++i) {
      const int worker = built_by[i] - '0';
      const std::int64_t start = begun[i] * ms / 10;
      const std::int64_t took = (worker == 2 ? 60 : 6) * ms - shorter(random);
      const auto number = static_cast<std::int64_t>(i);
      logs.made(1 + worker, number, start, took);
      logs.op(1 + worker, "Load", start, took);
      logs.off_cpu(1 + worker, start + took - 1000, took - 2000, 0);
      logs.waited(9, number, received, std::max<std::int64_t>(1000, start + took - received));
      received = std::max(received + 1000, start + took);
      logs.used(9, number, received);
      received += 2 * ms;
    }
    const answer a = diagnose(logs);
    INFO(seed << ' ' << a.text());
    CHECK(a.verdict() == "order-bound");
  }
}

TEST_CASE("of equally fast workers none is called slow") {
  generator random(3);
  int called_slow = 0;
  for (int time = 0; time < 40; ++time) {
    worker_loader loader;
    loader.workers = 8;
    loader.batches = 8 * (3 + time % 10);
    loader.make = spread(20, 0.8);
    planted_logs logs;
    simulate(loader, logs, random);
    if (diagnose(logs).whole["slow_workers"].size() > 0) ++called_slow;
  }
  CHECK(called_slow <= 1);
}

TEST_CASE("short waits for a CPU are not blamed if workers sleep most of the time") {
  planted_logs logs(2);
  for (int i = 0; i < 60; ++i) {  // in each batch, the worker runs for half a millisecond
    const std::int64_t at = i * 10 * ms;
    made_as_one(logs, 1, i, at, 9 * ms);
    logs.off_cpu(1, at + 9 * ms - 1000, 8 * ms + ms / 2, ms);
    logs.waited(0, i, at + 2 * ms, 7 * ms + ms / 10);
    logs.used(0, i, at + 9 * ms + ms / 10);
  }
  const answer a = diagnose(logs);
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(contains(a.text(), "the worker needs 9.000 ms per batch"));
  CHECK_FALSE(contains(a.text(), "wait for a CPU longer than they run"));
}

TEST_CASE("a stage that divides batches among threads is told apart from one that does not") {
  planted_logs logs;
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t begin = (5 + 10 * i) * ms;
    logs.stage(1, "Read", i, begin - 2 * ms, 2 * ms);
    for (const int thread : {2, 3}) logs.stage(thread, "Decode", i, begin, 10 * ms);
    logs.waited(9, i, begin + (i == 0 ? 0 : ms), i == 0 ? 10 * ms : 9 * ms);
    logs.used(9, i, begin + 10 * ms);
  }
  // It counts how many of its own batches a stage divides, not how many of all stages.
  logs.stage(1, "Read", 60, 605 * ms, 2 * ms);
  const std::vector<json> findings = diagnose(logs).whole["findings"].array();
  CHECK(std::any_of(findings.begin(), findings.end(),
                    [](const json& one) { return one["id"].text() == "forked-batches"; }));
}

TEST_CASE("a step that waits for a CPU, which the workers use, is not the bottleneck") {
  for (const bool queues : {true, false}) {
    planted_logs logs(2);
    constexpr int batches = 60;
    constexpr std::int64_t apart = 35 * ms;
    logs.cpu_time(0, 0, 0);
    for (int i = 0; i < batches; ++i) {
      made_as_one(logs, 1 + i % 2, i, apart * i, 52 * ms);
      // The consumer receives a batch that has been ready for the time of two others. Its step
      // sleeps for 4 ms and then waits for a CPU, or sleeps for as long as it takes.
      const std::int64_t received = apart * (i + 4);
      logs.waited(9, i, received - ms, ms);
      logs.used(9, i, received);
      logs.off_cpu(9, received + apart - ms - 1000, apart - ms - 2000, queues ? 30 * ms : 0);
    }
    logs.cpu_time(apart * batches, 3 * apart * batches / 2, apart * batches / 2);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == (queues ? "preprocessing-bound" : "consumer-bound"));
    CHECK(contains(a.text(), "the consumer's step waits for a CPU during ") == queues);
    CHECK_FALSE((queues && contains(a.text(), "would not help")));
  }
}

TEST_CASE("the CPU time of threads that build a batch together is not outside of all markers") {
  for (const bool marked : {true, false}) {
    planted_logs logs(4);
    logs.cpu_time(0, 0, 0);
    constexpr int batches = 60;
    for (int i = 0; i < batches; ++i) {
      const std::int64_t at = 50 * i * ms;
      for (int part = 0; part < (marked ? 4 : 1); ++part)
        made_as_one(logs, 1 + part, i, at, 40 * ms);
      logs.stage(5, "Concat", i, at + 41 * ms, ms);
      logs.waited(9, i, at, 43 * ms);
      logs.used(9, i, at + 43 * ms);
    }
    logs.cpu_time(50 * ms * batches, 160 * ms * batches, 40 * ms * batches);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK((a.whole["unmarked_cpu_share"].number() < 0.1) == marked);
  }
}

TEST_CASE("work outside of all operations is the reason if it has most of the path") {
  for (const bool mostly_outside : {true, false}) {
    planted_logs logs;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t at = i * 10 * ms;
      logs.made(1, i, at, 9 * ms);
      logs.op(1, "Read", at + (mostly_outside ? 7 : 2) * ms, (mostly_outside ? 2 : 7) * ms - 1000);
      logs.waited(9, i, at + 2 * ms, 7 * ms + ms / 10);
      logs.used(9, i, at + 9 * ms + ms / 10);
    }
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(contains(a.text(), "of the critical path outside of all operations") == mostly_outside);
  }
}

TEST_CASE("if batches are begun late, the reason says so") {
  planted_logs logs;
  for (int i = 0; i < 111; ++i) {
    const std::int64_t at = i * 8 * ms;  // a thread without records hands out a batch
    made_as_one(logs, 1 + i % 3, i, at, 3 * ms);
    logs.waited(9, i, at - (i == 0 ? 0 : 4 * ms), (i == 0 ? 3 : 7) * ms + ms / 100);
    logs.used(9, i, at + 3 * ms + ms / 100);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "preprocessing-bound");
  CHECK(contains(a.text(), "no batch was being built during 440.0 ms of the 774.1 ms "));
  CHECK(contains(a.text(), "  before the next batch was begun "));
}

TEST_CASE("the lock of a file is neither a wait for a disk nor for a file") {
  const answer a = lock_bound({{"/data/index", 0, 0}});
  INFO(a.text());
  CHECK(a.verdict() == "lock-bound");
  // That of Lotus, for which new threads wait, limits no run.
  CHECK(lock_bound({{"lotus::abi_17::detail::services::memory", 0, 0}}).verdict() != "lock-bound");
  CHECK(contains(a.text(), "Load waits for the file lock /data/index: 6"));
}

TEST_CASE("a lock inside a variable has the variable's name, unless others are in it as well") {
  const answer one = lock_bound({{"read()::shelf (+0x28)", 64, 1}});
  INFO(one.text());
  CHECK(contains(one.text(), "the lock read()::shelf held by Load"));
  const std::string two =
      lock_bound({{"read()::shelf (+0x28)", 64, 1}, {"read()::shelf (+0x40)", 88, 1}}).text();
  INFO(two);
  CHECK(contains(two, "read()::shelf "));
  CHECK(contains(two, "(+0x28)"));
}

TEST_CASE("a thread without markers that mostly holds a lock is not mistaken for a marked one") {
  for (const bool marked : {false, true}) {
    const int writer = marked ? 2 : 50;
    const answer a =
        lock_bound({{"table", 64, writer}, {"table", 64, writer}, {"table", 64, marked ? 50 : 2}});
    INFO(a.text());
    CHECK(contains(a.text(), "the lock table held by Load on other threads") == marked);
    CHECK(contains(a.text(), "the lock table held by code outside of all operations") != marked);
    // If another thread holds the lock, Load becomes faster only with it.
    CHECK(contains(a.text(), "Load 2x faster") == marked);
  }
}

TEST_CASE("a step that waits for an operation of another thread is not called its own work") {
  // The last two work all the time, whatever the step does.
  for (const std::string who : {"sleeps", "saver", "worker", "clock", "ticks"}) {
    planted_logs logs(8);
    const int thread = who == "worker" ? 1 : 5;
    for (int i = 0; i < 90; ++i) {
      const std::int64_t at = 12 * ms * (i + 1);
      made_as_one(logs, 1, i, at - 8 * ms, 3 * ms);
      logs.waited(9, i, at - ms / 10, ms / 10);
      logs.used(9, i, at);
      if (who == "clock") logs.op(thread, "Save", at - 6 * ms, 12 * ms);
      for (int n = 0; who == "ticks" && n < 6; ++n) {
        logs.op(thread, "Save", at + 2 * n * ms, 2 * ms - 1000);
      }
      if (who == "saver" || who == "worker") logs.op(thread, "Save", at + ms, 10 * ms);
      for (int n = 0; n < 2; ++n) {
        logs.wait_sample(9, at + (4 + 3 * n) * ms, who == "sleeps" ? "sleep" : "condition", "", 64,
                         0);
      }
      logs.off_cpu(9, at + 11 * ms, 10 * ms, 0);
    }
    const answer a = diagnose(logs);
    INFO(who << a.text());
    CHECK(a.verdict() == "consumer-bound");
    const std::string why = a.whole["screen"]["why"].text();
    CHECK(contains(why, "own work") == (who == "sleeps"));
    CHECK(contains(why, "the consumer's step waits for a condition variable ") ==
          (who != "sleeps"));
    CHECK(contains(why, "while another thread is in Save") == (who == "saver"));
  }
}
