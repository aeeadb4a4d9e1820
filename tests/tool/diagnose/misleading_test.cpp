// Pipelines that a confident verdict was once wrong about: each gives the right number.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_pipelines.hpp"

using namespace lotus::tool_test;

TEST_CASE("consumed behind the step: the consumer's step, not waiting") {
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
  // Too little of the consumer's time for the check, but what it could take is the same.
  loader.step = constant(1);
  const answer hardly = diagnose(loader);
  CHECK(hardly.checks == no_checks);
  CHECK(hardly.whole["consumer_capacity"].number() == Approx(1000).epsilon(0.01));
}

TEST_CASE("more busy threads than CPUs: no promise, and the factors of the whole run") {
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
  CHECK_FALSE(contains(step_on_cpu.text, "next to nothing"));

  loader.workers = 8;
  loader.step = constant(1);
  loader.log_making = [](planted_logs& to, int thread, std::int64_t i, std::int64_t start,
                         std::int64_t duration) {
    to.made(thread, i, start, duration);
    to.op(thread, "Read", start, duration / 4);
    to.off_cpu(thread, start + duration / 4, duration / 4 - 1000, 0);
    // 12 ms of 60 on the CPU: all eight read, then share two CPUs.
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
  CHECK(faster["SRead"] < 1.2);  // it mostly waits while others have the CPUs
  CHECK(faster["SDecode"] > 2);
}

TEST_CASE("a thread for every batch: as many workers as are in flight") {
  worker_loader loader;
  loader.batches = 100;
  loader.prefetch = 1;
  loader.make = constant(28);
  loader.step = constant(0.5);
  loader.log_making = [](planted_logs& logs, int, std::int64_t i, std::int64_t start,
                         std::int64_t duration) {
    made_as_one(logs, static_cast<int>(i) + 1, i, start, duration);
  };
  const answer a = diagnose(loader);
  CHECK(a.whole["workers"].integer() == 2);
  CHECK(a.whole["preprocessing_capacity"].number() == Approx(2000.0 / 28).epsilon(0.01));
  CHECK(a.whole["achieved_batches_per_s"].number() == Approx(70).epsilon(0.04));
  CHECK(a.verdict() == "preprocessing-bound");
}

TEST_CASE("tasks on a pool of threads: as many workers as are in flight") {
  worker_loader loader;
  loader.prefetch = 1;
  loader.batches = 60;
  loader.log_making = [](planted_logs& logs, int, std::int64_t i, std::int64_t start,
                         std::int64_t duration) {
    made_as_one(logs, 1 + static_cast<int>((i * 5) % 8), i, start, duration);
  };
  CHECK(diagnose(loader).whole["workers"].integer() == 2);
}

TEST_CASE("pauses between epochs are no steps") {
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

TEST_CASE("steps that differ are the consumer's, not the workers'") {
  worker_loader loader;
  loader.workers = 1;
  loader.batches = 400;
  loader.make = constant(10);
  loader.step = constant(5);
  loader.change_step = [](int i, std::int64_t step) { return i % 50 == 20 ? 600 * ms : step; };
  const answer now_and_then = diagnose(loader);
  CHECK(now_and_then.verdict() == "prefetch-bound");  // what is made meanwhile has no room

  loader.batches = 2000;
  loader.change_step = [](int i, std::int64_t step) { return i == 0 ? 30'000 * ms : step; };
  const answer first = diagnose(loader);
  CHECK(first.verdict() == "consumer-bound");
}

TEST_CASE("a slow start is told as one") {
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
  loader.log_making = slow_first;
  const answer slow_batch = diagnose(loader);
  CHECK(slow_batch.verdict() == "start-up-bound");
}

TEST_CASE("order is blamed only where dropping it could gain 5 %") {
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

TEST_CASE("of equal workers none is called slow") {
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
