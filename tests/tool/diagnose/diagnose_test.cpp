// Tests the verdicts on traces for which the right answer is known.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Builds a run, one record after the other. Times are in ms.
class trace {
 public:
  void made(int worker, int i, std::int64_t start, std::int64_t duration) {
    log(worker, "SBatchPreprocessed_" + std::to_string(i), start, duration);
  }
  void op(int worker, const std::string& name, std::int64_t start, std::int64_t duration) {
    log(worker, name, start, duration);
  }
  void waited(int i, std::int64_t start, std::int64_t duration) {
    main_ += line("SBatchWait_" + std::to_string(i), start, duration * ms);
  }
  void arrived(int i, std::int64_t at) {
    main_ += line("SBatchWait_" + std::to_string(i), at, 1000);
  }
  void used(int i, std::int64_t at) {
    main_ += line("SBatchConsumed_" + std::to_string(i), at, 1000);
  }

  /// Returns the directory with the logs that diagnosis() has written.
  const std::string& dir() const { return dir_.path(); }

  json diagnosis(const std::vector<std::string>& more = {}) const {
    dir_.file("lotustrace_log_main_pid_1", main_);
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (!workers_[w].empty()) {
        dir_.file("lotustrace_log_worker_pid_" + std::to_string(100 + w), workers_[w]);
      }
    }
    std::vector<std::string> arguments{"diagnose", dir_.path(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const result r = run_well(arguments);
    const result text = run({"diagnose", dir_.path()});
    CHECK(text.status == 0);
    return parse_json(r.out);
  }

 private:
  static std::string line(const std::string& name, std::int64_t start_ms, std::int64_t ns) {
    return name + ',' + std::to_string(start_ms * ms) + ',' + std::to_string(ns) + '\n';
  }
  void log(int worker, const std::string& name, std::int64_t start, std::int64_t duration) {
    const auto w = static_cast<std::size_t>(worker);
    if (w >= workers_.size()) workers_.resize(w + 1);
    workers_[w] += line(name, start, duration * ms);
  }

  temp_dir dir_;
  std::string main_;
  std::vector<std::string> workers_;
};

std::string text(const json& value) {
  return value.text();
}

}  // namespace

TEST_CASE("one slow worker makes a run preprocessing-bound") {
  trace t;
  for (int i = 0; i < 10; ++i) {
    t.made(0, i, 100 * i, 100);
    t.op(0, "SLoader", 100 * i, 60);
    t.op(0, "SCrop", 100 * i + 60, 20);
    t.op(0, "STransform", 100 * i + 60, 20);
    t.waited(i, i == 0 ? 0 : 100 * i + 10, i == 0 ? 100 : 90);
    t.used(i, 100 * i + 100);
  }
  const auto d = t.diagnosis();
  CHECK(text(d["verdict"]) == "preprocessing-bound");
  CHECK(d["workers"].integer() == 1);
  CHECK(d["preprocessing_capacity"].number() == Approx(10));
  CHECK(d["consumer_capacity"].number() == Approx(100));
  CHECK(d["wait_share"].number() == Approx(910.0 / (910 + 90)));
  CHECK(d["head_of_line_share"].number() == 0);
  REQUIRE(d["ops"].size() == 2);  // STransform is not listed, because it contains other operations
  CHECK(text(d["ops"][0]["name"]) == "SLoader");
  CHECK(d["ops"][0]["share"].number() == Approx(0.6));
  // Without Loader, the run would take 10 * 40 ms + 10 ms (the last step) instead of 10 * 100 ms +
  // 10 ms.
  CHECK(d["ops"][0]["at_most_faster"].number() == Approx(1010.0 / 410).epsilon(1e-3));
  CHECK(d["ops"][1]["share"].number() == Approx(0.2));
  CHECK(d["samples_per_batch"].number() == 1);
}

TEST_CASE("a stage on the consumer's thread does not replace the worker's stage before it") {
  struct thread {
    std::string log{};
    std::string side_log{};
    void add(const std::string& name, std::int64_t start, std::int64_t duration) {
      log += name + ',' + std::to_string(start * ms) + ',' + std::to_string(duration * ms) + '\n';
    }
    void stage(const std::string& name, int item, std::int64_t start, std::int64_t duration) {
      add(name, start, duration);
      side_log += "stage," + name + ',' + std::to_string(start * ms) + ',' +
                  std::to_string(duration * ms) + ',' + std::to_string(item) + '\n';
    }
  };
  thread worker;
  thread consumer;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t at = 12 * i;
    worker.stage("SDecode", i, at, 8);
    consumer.add("SBatchWait_" + std::to_string(i), at, 9);
    consumer.stage("SCollate", i, at + 9, 1);
    consumer.add("SBatchConsumed_" + std::to_string(i), at + 11, 0);
  }
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1", consumer.log);
  dir.file(".lotus_beside_lotustrace_log_pid_1", consumer.side_log);
  dir.file("lotustrace_log_worker_pid_2", worker.log);
  dir.file(".lotus_beside_lotustrace_log_pid_2", worker.side_log);
  const json found = parse_json(run_well({"diagnose", dir.path(), "--json"}).out);
  CHECK(text(found["verdict"]) == "stage-bound");
  CHECK_FALSE(contains(text(found["screen"]["title"]), "no workers"));
}

TEST_CASE("an operation that is exactly as long as its batch belongs to the batch") {
  trace t;
  for (int i = 0; i < 40; ++i) {
    t.op(0, "SLoad", 100 * i, 60);
    t.made(0, i, 100 * i, 60);
    t.op(0, "SPack", 100 * i + 61, 8);  // outside of the batch, but little compared with Load
    t.waited(i, 100 * i, 70);
    t.used(i, 100 * i + 71);
  }
  const auto d = t.diagnosis();
  CHECK(text(d["verdict"]) == "preprocessing-bound");
  CHECK(d["checks"].size() == 0);
}

TEST_CASE("a slow consumer makes a run consumer-bound") {
  trace t;
  for (int i = 0; i < 10; ++i) {
    t.made(i % 2, i, 10 * i, 10);
    t.waited(i, 100 * i, 1);
    t.used(i, 100 * i + 1);
  }
  const auto d = t.diagnosis();
  CHECK(text(d["verdict"]) == "consumer-bound");
  CHECK(d["workers"].integer() == 2);
  CHECK(d["preprocessing_capacity"].number() == Approx(200));
  CHECK(d["consumer_capacity"].number() == Approx(1000.0 / 99));
}

TEST_CASE("the first screen says which part limits the run after a faster step") {
  trace t;
  // One worker builds a batch in 25 ms, at most two batches ahead. A step takes 30 ms.
  std::int64_t given[42] = {};
  std::int64_t free = 0;
  std::int64_t now = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t start = std::max(free, given[i]);
    free = start + 25;
    t.made(0, i, start, 25);
    const std::int64_t wait = std::max<std::int64_t>(free - now, 1);
    t.waited(i, now, wait);
    t.used(i, now + wait);
    given[i + 2] = now + wait;
    now += wait + 30;
  }
  const auto d = t.diagnosis();
  CHECK(text(d["verdict"]) == "consumer-bound");
  CHECK(text(d["screen"]["advice"][0]["change"]) == "the consumer's step 2x faster");
  CHECK(text(d["screen"]["assumption"]) ==
        "With this change, the workers would be the bottleneck, at 40 batches/s.");
}

TEST_CASE("a run is order-bound if the consumer waits while later batches are ready") {
  trace t;
  // Batches with even numbers take 100 ms, the others 10 ms. Each worker begins its next batch
  // immediately, but at most three batches are in flight. A step takes 30 ms.
  std::int64_t free[2] = {0, 0};
  std::int64_t given[43] = {};
  std::int64_t now = 0;
  for (int i = 0; i < 40; ++i) {
    const int worker = free[0] <= free[1] ? 0 : 1;
    const std::int64_t took = i % 2 == 0 ? 100 : 10;
    const std::int64_t start = std::max(free[worker], given[i]);
    free[worker] = start + took;
    t.made(worker, i, start, took);
    const std::int64_t wait = std::max<std::int64_t>(free[worker] - now, 1);
    t.waited(i, now, wait);
    t.used(i, now + wait);
    given[i + 3] = now + wait;
    now += wait + 30;
  }
  const auto d = t.diagnosis();
  CHECK(text(d["verdict"]) == "order-bound");
  CHECK(text(d["bound_by"]["kind"]) == "order");
  CHECK(d["preprocessing_capacity"].number() == Approx(2000.0 / 55));
  CHECK(d["consumer_capacity"].number() == Approx(1000.0 / 30));
  CHECK(d["head_of_line_share"].number() > 0.5);
  // One suggestion must be to deliver batches in any order without a change of the number of
  // workers.
  bool alone = false;
  for (const char* const list : {"moves", "possible"}) {
    for (const json& move : d[list].array()) {
      const json& change = move["change"];
      alone = alone || (change.has("unordered") && !change.has("workers"));
    }
  }
  CHECK(alone);
}

TEST_CASE("a run that its own records do not explain has no verdict") {
  trace t;
  for (int i = 0; i < 30; ++i) {  // no record explains why each batch begins so late
    t.made(0, i, 100 * i + 80, 10);
    t.waited(i, 100 * i, 90);
    t.used(i, 100 * i + 90);
  }
  const auto d = t.diagnosis();
  CHECK(d["verdict"].is_null());
  CHECK(contains(text(d["why"]), "by the recorded times, "));
  CHECK(run({"diagnose", t.dir(), "--fail-if", "order-bound"}).status == 4);
}

TEST_CASE("batches of the next epoch do not count as ready") {
  trace t;
  t.made(0, 0, 0, 10);
  t.made(0, 1, 10, 390);
  // This is batch 0 of the next epoch. It is built while the consumer waits for batch 1 of this
  // epoch.
  t.made(1, 0, 20, 10);
  t.made(1, 1, 30, 10);
  t.waited(0, 0, 10);
  t.used(0, 10);
  t.waited(1, 11, 389);
  t.used(1, 400);
  t.waited(0, 410, 1);
  t.used(0, 411);
  t.waited(1, 420, 1);
  t.used(1, 421);
  // A later batch was ready only in the second epoch, for 1 ms of the 401 ms of waiting.
  CHECK(t.diagnosis()["head_of_line_share"].number() == Approx(1.0 / 401));
}

TEST_CASE("waits for the first batches only leave a run consumer-bound") {
  trace t;
  for (int i = 0; i < 20; ++i) {
    t.made(i % 2, i, 40 * (i / 2), 40);
    t.waited(i, i == 0 ? 0 : 40 + 50 * i - 1, i == 0 ? 40 : 1);
    t.used(i, 40 + 50 * i);
  }
  const auto d = t.diagnosis();
  CHECK(d["wait_share"].number() > 0.05);
  CHECK(text(d["verdict"]) == "consumer-bound");
  CHECK(text(d["bound_by"]["kind"]) == "consumer");
  CHECK(d["moves"].size() == 0);
}

TEST_CASE("workers of different epochs are not added up") {
  trace t;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = 1000 * epoch + 100 * i;
      t.made(2 * epoch + i % 2, i, at, 100);
      t.waited(i, at, 100);
      t.used(i, at + 100);
    }
  }
  CHECK(t.diagnosis()["workers"].integer() == 2);
}

TEST_CASE("slow workers and slow samples are named") {
  trace t;
  for (int i = 0; i < 30; ++i) {
    const std::int64_t took = i % 3 == 1 ? 90 : 30;
    t.made(i % 3, i, 100 * (i / 3), took);
    t.op(i % 3, "SLoader", 100 * (i / 3), i == 4 ? 80 : 2);
    t.waited(i, 100 * i, 5);
    t.used(i, 100 * i + 5);
  }
  const auto d = t.diagnosis();
  REQUIRE(d["slow_workers"].size() == 1);
  CHECK(d["slow_workers"][0]["worker"].integer() == 101);
  CHECK(d["slow_workers"][0]["slower_than_median"].number() == Approx(3));
  REQUIRE(d["slow_samples"].size() == 1);
  CHECK(d["slow_samples"][0]["index"].integer() == 4);
  CHECK(d["slow_samples"][0]["worker"].integer() == 101);
}

TEST_CASE("operations of hundreds of workers that overlap are found in the batches of each") {
  constexpr int workers = 400;
  trace t;
  for (int i = 0; i < workers; ++i) {
    t.made(i, i, i, 2000);
    t.op(i, "SLoader", i, i == 7 ? 1500 : 20);
    t.waited(i, 2000 + i - 1, 1);
    t.used(i, 2000 + i);
  }
  const auto d = t.diagnosis();
  CHECK(d["workers"].integer() == workers);
  REQUIRE(d["ops"].size() == 1);
  CHECK(d["ops"][0]["share"].number() == Approx((399.0 * 20 + 1500) / (400.0 * 2000)));
  REQUIRE(d["slow_samples"].size() == 1);
  CHECK(d["slow_samples"][0]["index"].integer() == 7);
  CHECK(d["slow_samples"][0]["worker"].integer() == 107);
}

TEST_CASE("logs without a consumer have no verdict, which is not an error") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SBatchPreprocessed_0,1,2\n");
  const result r = run({"diagnose", dir.path()});
  CHECK(r.status == 0);
  CHECK(contains(r.out, "No verdict: no consumer is marked"));
  CHECK(run({"diagnose", dir.path(), "--fail-if", "order-bound"}).status == 4);
}

TEST_CASE("empty logs are an error") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "");
  const result r = run({"diagnose", dir.path()});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "the logs contain nothing usable"));
}

TEST_CASE("--fail-if fails if any of several runs has no verdict") {
  trace t;
  for (int i = 0; i < 10; ++i) {
    t.made(i % 2, i, 10 * i, 10);
    t.waited(i, 100 * i, 1);
    t.used(i, 100 * i + 1);
  }
  CHECK(text(t.diagnosis()["verdict"]) == "consumer-bound");
  const temp_dir dir;
  std::filesystem::copy(t.dir(), dir.path() + "/one");
  std::filesystem::copy(t.dir(), dir.path() + "/two");
  CHECK(run({"diagnose", dir.path(), "--fail-if", "order-bound"}).status == 0);
  dir.file("three/lotustrace_log_worker_pid_1", "SBatchPreprocessed_0,1,2\n");
  CHECK(run({"diagnose", dir.path()}).status == 0);
  CHECK(run({"diagnose", dir.path(), "--fail-if", "order-bound"}).status == 4);
  // If one run has the verdict that --fail-if names, the command fails with status 3, even if other
  // runs have no verdict.
  CHECK(run({"diagnose", dir.path(), "--fail-if", "consumer-bound"}).status == 3);
}

TEST_CASE("each of several runs gets its own verdict") {
  const result r = run({"diagnose", traces() + "/quirks/subdirs", "--json"});
  CHECK(r.status == 0);
  CHECK(parse_json(r.out)["runs"].size() == 2);
}

TEST_CASE("verdicts on real runs are right") {
  const auto verdict_of = [](const std::string& dir) {
    const result r = run_well({"diagnose", dir, "--json"});
    return text(parse_json(r.out)["verdict"]);
  };
  CHECK(verdict_of(traces() + "/c_ooo_w4") == "preprocessing-bound");
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent; one run judged");
    return;
  }
  CHECK(verdict_of(shared_traces() + "/a_preproc_w1") == "preprocessing-bound");
  CHECK(verdict_of(shared_traces() + "/d_consumer_w2") == "consumer-bound");
  const auto two_epochs =
      parse_json(run({"diagnose", shared_traces() + "/h_epochs2_w2", "--json"}).out);
  CHECK(two_epochs["workers"].integer() == 2);
}

TEST_CASE("real runs fail no checks other than the one for short runs") {
  const auto checks_of = [](const std::string& dir) {
    std::string ids;
    const auto answer = parse_json(run({"diagnose", dir, "--json"}).out);
    for (const json& check : answer["checks"].array()) ids += text(check["id"]) + ' ';
    return ids;
  };
  CHECK(checks_of(traces() + "/c_ooo_w4").empty());
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent; one run checked");
    return;
  }
  for (const std::string name : {"a_preproc_w1", "g_profiled_w2", "h_epochs2_w2"}) {
    CHECK(checks_of(shared_traces() + '/' + name).empty());
  }
  CHECK(checks_of(shared_traces() + "/d_consumer_w2") == "short ");
}
