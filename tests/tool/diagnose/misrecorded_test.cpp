// Tests recordings for which an earlier version of diagnose gave a confident but wrong verdict.
// Each must fail the right check.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/logged_facts.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_pipelines.hpp"

using namespace lotus::tool_test;

namespace {

/// Diagnoses a pipeline in which two workers need 10 ms per batch, and then one thread needs 30 ms
/// for each of these batches.
answer pinned(double step_ms) {
  stage_chain chain;
  chain.stages = {{"", 2, constant(10), 4}, {"Pin", 1, constant(30), 2}};
  chain.first_is_workers = true;
  chain.step = constant(step_ms);
  planted p;
  generator random(7);
  simulate(chain, p, random);
  return diagnose(p.logs);
}

}  // namespace

TEST_CASE("a pin thread after the workers is found as the bottleneck") {
  for (const double step_ms : {5.0, 20.0}) {
    const answer a = pinned(step_ms);
    CHECK(a.verdict() == "stage-bound");
    CHECK(a.whole["stage"].text() == "Pin");
    CHECK(a.checks == no_checks);
    CHECK(a.whole["preprocessing_capacity"].number() == Approx(1000.0 / 30).epsilon(0.03));
    // Faster workers would gain nothing.
    for (const json& op : a.whole["ops"].array()) {
      CHECK(op["at_most_faster"].number() < 1.05);
    }
    CHECK_FALSE(contains(a.text(), "1273"));
  }
}

TEST_CASE("a pin thread that is recorded as an operation only is named, without a verdict") {
  planted_logs logs;
  std::int64_t pin_free = 0;
  std::int64_t consumer_free = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t start = (i / 2) * 11 * ms + (i > 6 ? (i - 6) * 25 * ms : 0);
    made_as_one(logs, 1 + i % 2, i, start, 10 * ms);
    const std::int64_t pin = std::max(pin_free, start + 10 * ms);
    logs.op(5, "Pin", pin, 30 * ms);
    pin_free = pin + 30 * ms;
    logs.waited(0, i, consumer_free, pin_free - consumer_free);
    logs.used(0, i, pin_free + 1000);
    consumer_free = pin_free + 5 * ms;
  }
  const answer a = diagnose(logs);
  CHECK(a.verdict() == "none");
  CHECK(a.checks == std::set<std::string>{"unrecorded-work"});
  CHECK(contains(text_of(a, "unrecorded-work"), "Pin"));
  CHECK(contains(a.whole["why"].text(), "Pin"));
  CHECK(contains(a.text(), "No verdict"));
  CHECK(contains(a.text(), "LOTUS_STAGE"));
}

TEST_CASE("if batch scopes cover only collation, the other work is named") {
  worker_loader loader;
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    for (int item = 0; item < 3; ++item) {
      logs.op(10 + item, "Decode", start + item * 3 * ms, 3 * ms);
    }
    logs.made(thread, i, start + duration - ms / 2, ms / 2);
    logs.op(thread, "Collate", start + duration - ms / 2, ms / 2 - 100);
  };
  const answer a = diagnose(loader);
  // The consumer hardly waits, so work that was not recorded does not limit the run.
  CHECK(a.verdict() == "consumer-bound");
  CHECK(contains(text_of(a, "unrecorded-work"), "Decode"));
}

TEST_CASE("with a batch scope in every stage, each batch is counted once") {
  worker_loader loader;
  loader.batches = 30;
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    for (int segment = 0; segment < 49; ++segment) {
      const std::int64_t each = duration / 50;
      logs.made(thread + 10 * (segment % 3), i, start + segment * each, each);
      logs.op(thread + 10 * (segment % 3), "Decode", start + segment * each, each - 100);
    }
  };
  const answer a = diagnose(loader);
  CHECK(a.checks == std::set<std::string>{"pieces"});
  CHECK(a.whole["batches"].integer() == 30);
  CHECK(a.verdict() != "none");
}

TEST_CASE("training and validation under one loader name have no verdict") {
  planted_logs logs;
  generator random(7);
  worker_loader train;
  worker_loader val;
  val.batches = 10;
  val.first_thread = 20;
  std::int64_t now = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    now = simulate(train, logs, random, now).end_ns;
    now = simulate(val, logs, random, now).end_ns;
  }
  const answer a = diagnose(logs);
  CHECK(a.verdict() == "none");
  CHECK(a.checks.count("loaders-mixed") == 1);
  CHECK(contains(a.text(), "LOTUS_LOADER"));
}

TEST_CASE("epochs that were left early belong to one loader") {
  planted_logs logs;
  generator random(7);
  worker_loader loader;
  loader.workers = 4;
  loader.new_threads = true;
  std::int64_t now = 0;
  for (const int batches : {40, 25, 40, 30}) {
    loader.batches = batches;
    loader.log_preprocessing = made_as_one;
    now = simulate(loader, logs, random, now).end_ns;
    // The following batches were prefetched but never received.
    for (int i = 0; i < 4 && batches < 40; ++i) {
      made_as_one(logs, loader.first_thread + i, batches + i, now - 20 * ms, 10 * ms);
    }
    loader.first_thread += 10;
  }
  CHECK(diagnose(logs).checks.count("loaders-mixed") == 0);
}

TEST_CASE("epochs that overlap belong to one loader if their numbers begin again") {
  planted_logs logs;
  logs.cpus(8);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < 120; ++i) {
    // The first batch of each epoch arrives before the last of the epoch before.
    const bool swaps = i > 0 && i % 30 == 0;
    const bool swapped = i % 30 == 29 && i + 1 < 120;
    const std::int64_t number = (swaps ? i - 1 : swapped ? i + 1 : i) % 30;
    slept(logs, 1 + static_cast<int>(i % 3), number, i * 4 * ms, 11 * ms);
    const std::int64_t at = std::max(now + 2000, i * 4 * ms + 11 * ms + 20'000);
    received(logs, number, now, at);
    now = at + 2 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.checks.count("loaders-mixed") == 0);
}

TEST_CASE("two loaders of the same length under one name are no epochs that overlap") {
  std::vector<std::int64_t> numbers;  // the second loader begins when a third of the first is done
  for (std::int64_t i = 0; i < 80; ++i) {
    if (i < 60) numbers.push_back(i);
    if (i >= 20) numbers.push_back(i - 20);
  }
  planted_logs logs;
  logs.cpus(8);
  std::int64_t start = 0;
  std::int64_t now = 0;
  for (const std::int64_t i : numbers) {
    slept(logs, 1 + static_cast<int>(start / (4 * ms) % 2), i, start, 7 * ms);
    const std::int64_t at = std::max(now + 2000, start + 7 * ms + 20'000);
    received(logs, i, now, at);
    now = at + 2 * ms;
    start += 4 * ms;
  }
  CHECK(diagnose(logs).checks.count("loaders-mixed") == 1);
}

TEST_CASE("work that is done twice leads to no verdict") {
  worker_loader loader;
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    made_as_one(logs, thread, i, start, duration / 2);
    const std::int64_t again = start + duration / 2;
    logs.op(thread, "Decode", again + 100, duration / 4);
    logs.op(thread, "Crop", again + 200 + duration / 4, duration / 8);
    logs.op(thread, "Collate", again + 300 + duration * 3 / 8, duration / 10 - 400);
  };
  const answer a = diagnose(loader);
  CHECK(a.verdict() == "none");
  CHECK(a.checks == std::set<std::string>{"twice"});
}

TEST_CASE("a coroutine's scope that overlaps others leads to no verdict") {
  planted_logs logs;
  generator random(7);
  worker_loader loader;
  simulate(loader, logs, random);
  for (int i = 0; i < 30; ++i) logs.op(1, "Fetch", i * 10 * ms + 3 * ms, 9 * ms);
  const answer a = diagnose(logs);
  CHECK(a.verdict() == "none");
  CHECK(a.checks.count("overlap") == 1);
  CHECK(contains(text_of(a, "overlap"), "async_scope"));
}

TEST_CASE("names that differ only in numbers are reported, and the verdict is the same") {
  const auto with_names = [](int names) {
    worker_loader loader;
    loader.batches = 240;
    loader.log_preprocessing = [names](planted_logs& logs, int thread, std::int64_t i,
                                       std::int64_t start, std::int64_t duration) {
      made_as_one(logs, thread, i, start, duration);
      logs.op(thread, "Load_" + std::to_string(i % names), start + 100, duration / 4);
    };
    return diagnose(loader);
  };
  const answer many = with_names(240);
  const answer few = with_names(40);
  CHECK(many.verdict() == few.verdict());
  CHECK(many.checks == std::set<std::string>{"numbered-names"});
  CHECK(contains(text_of(many, "numbered-names"),
                 "240 operations differ only in numbers in their names, such as Load_"));
  CHECK(few.checks == no_checks);
}

TEST_CASE("arguments and counters that differ only in numbers are no names of operations") {
  const temp_dir dir;
  std::string log;
  std::string side;
  for (int i = 0; i < 300; ++i) {
    const std::string at = std::to_string(1'000'000 + i * 10'000);
    log += "SResize," + at + ",1000\n";
    side += "args,S[3%2C " + std::to_string(i) + "]," + at + ",0,0\ncounter,Squeue" +
            std::to_string(i) + ',' + at + ",1,0\n";
  }
  dir.file("lotustrace_log_worker_pid_7", log);
  dir.file(".lotus_beside_lotustrace_log_pid_7", side);
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"diagnose", dir.path()},
                                             {"stats", dir.path()},
                                             {"stats", dir.path(), "--group-by-args"}}) {
    const result r = run(words);
    INFO(r.out << r.err);
    CHECK_FALSE(contains(r.out + r.err, "differ only in numbers"));
  }
}

TEST_CASE("waits that begin after the batch was received are found") {
  for (const bool late : {true, false}) {
    planted_logs logs;
    for (int i = 0; i < 40; ++i) {
      const std::int64_t start = i * 10 * ms;
      const std::int64_t ready = start + 8 * ms;
      made_as_one(logs, 1, i, start, 8 * ms);
      // The step takes 2 ms; then the consumer really waits until the next batch is ready.
      const std::int64_t waits_from = late ? ready + ms / 50 : ready - 6 * ms;
      logs.waited(0, i, waits_from, ready + ms / 40 - waits_from);
      logs.used(0, i, ready + ms / 40);
    }
    const answer a = diagnose(logs);
    CHECK(a.checks.count("late-waits") == (late ? 1 : 0));
    CHECK((a.verdict() == "none") == late);
  }
}

TEST_CASE("batches that the consumer builds before it waits are found") {
  for (const int together : {1, 10, 40}) {
    for (const bool inside : {true, false}) {
      planted_logs logs;
      std::int64_t now = ms;
      for (int first = 0; first < 40; first += together) {
        std::int64_t waits_from = now;
        for (int i = first; i < first + together; ++i) {
          made_as_one(logs, 0, i, now, 8 * ms);
          now += 8 * ms + 2000;
        }
        if (!inside) waits_from = now - 1000;
        for (int i = first; i < first + together; ++i) {
          logs.waited(0, i, waits_from, now + 3000 - waits_from);
          logs.used(0, i, now + 3000);
          now += 2 * ms;
          waits_from = now;
        }
      }
      const answer a = diagnose(logs);
      CAPTURE(together, inside, a.text());
      CHECK(a.checks.count("late-waits") == (inside ? 0 : 1));
      CHECK((a.verdict() == "none") != inside);
      CHECK_FALSE(contains(a.text(), "how far the workers built ahead"));
    }
  }
}

TEST_CASE("items that are marked as batches are found") {
  planted_logs logs;
  for (int i = 0; i < 400; ++i) made_as_one(logs, 1, i, i * ms, ms - 1000);
  for (int i = 0; i < 25; ++i) {
    const std::int64_t ready = (i + 1) * 16 * ms;
    logs.waited(0, i, ready - 14 * ms, 14 * ms + ms / 10);
    logs.used(0, i, ready + ms / 10);
  }
  const answer a = diagnose(logs);
  CHECK(a.verdict() == "none");
  CHECK(a.checks.count("items-as-batches") == 1);
  CHECK(text_of(a, "items-as-batches").rfind("400 batches were built, but only 25 received", 0) ==
        0);
}

TEST_CASE("batches that the workers go on to build for nobody are no items") {
  planted_logs logs;
  std::int64_t now = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int i = 0; i < 80; ++i)
      made_as_one(logs, 1 + i % 2, i, now + i / 2 * 4 * ms, 4 * ms - 1000);
    for (int i = 0; i < 6; ++i) {
      const std::int64_t ready = now + (i / 2 + 1) * 4 * ms;
      logs.waited(0, i, ready - ms, ms + ms / 10);
      logs.used(0, i, ready + ms / 10);
    }
    now += 200 * ms;
  }
  const answer a = diagnose(logs);
  CAPTURE(a.text());
  CHECK(a.verdict() != "none");
  CHECK(text_of(a, "batches-in-vain").rfind("320 batches were built, but only 24 received", 0) ==
        0);
}

TEST_CASE("a worker that ends in the middle of a run is named") {
  for (const bool dies : {true, false}) {
    planted_logs logs;
    for (int i = 0; i < 60; ++i) {
      const bool is_dead = dies && i >= 30;
      const int thread = is_dead ? 1 : 1 + i % 2;
      made_as_one(logs, thread, i, i * 10 * ms, 9 * ms);
      if (dies && i == 29) continue;
      logs.waited(0, i, i * 10 * ms + ms, 8 * ms + ms / 10);
      logs.used(0, i, i * 10 * ms + 9 * ms + ms / 10);
    }
    const temp_dir dir;
    logs.write(dir);
    const std::string out = run({"diagnose", dir.path(), "--wide"}).out;
    INFO(out);
    CHECK(contains(out, "ended at 50 % of the run, and its batch 29 was never received.") == dies);
  }
}

TEST_CASE("CPU time before the first and after the last marker is said") {
  for (const std::int64_t before : {std::int64_t{10} * ms, std::int64_t{1200} * ms}) {
    for (const std::int64_t after : {std::int64_t{10} * ms, std::int64_t{900} * ms}) {
      planted_logs logs(2);
      logs.cpu_time(0, before, 0);
      for (int i = 0; i < 60; ++i) {
        const std::int64_t at = (i + 1) * 10 * ms;
        made_as_one(logs, 1, i, at, 9 * ms);
        logs.waited(0, i, at, 9 * ms + ms / 10);
        logs.used(0, i, at + 9 * ms + ms / 10);
      }
      logs.cpu_time(620 * ms, before + 600 * ms, 0);
      logs.cpu_time(620 * ms + after, before + 600 * ms + after, 0);
      const temp_dir dir;
      logs.write(dir);
      const std::string out = run({"diagnose", dir.path(), "--wide"}).out;
      INFO(out);
      const bool is_before = before > 1000 * ms;
      const bool is_after = after > 800 * ms;
      CHECK(contains(out, "Before its first marker, the program used 1.200 s of CPU time") ==
            is_before);
      CHECK(contains(out, "fter its last marker, the program used 9") == (is_after && !is_before));
      CHECK(contains(out, "; after its last one, 9") == (is_after && is_before));
    }
  }
}

namespace {

/// The markers of a loader of 40 batches: how a beginner may get them wrong.
struct slip {
  std::string check;  ///< the one that fails; "" if it is right
  int (*built_number)(int) = [](int i) { return i; };
  bool around_loop = false;    ///< around the worker's loop over batches
  bool ends_at_once = false;   ///< around nothing
  bool waits_once = false;     ///< only the first batch has a wait
  bool contains_wait = false;  ///< around the consumer's wait, too
};

planted_logs logs_of(const slip& of) {
  constexpr int batches = 40;
  planted_logs logs;
  if (of.around_loop) made_as_one(logs, 1, 0, 0, batches * 10 * ms);
  for (int i = 0; i < batches; ++i) {
    const std::int64_t start = i * 10 * ms;
    if (!of.around_loop) {
      made_as_one(logs, 1, of.built_number(i), start, of.ends_at_once ? 20 : 9 * ms);
    }
    if (of.contains_wait) made_as_one(logs, 0, i, start + ms / 2, 9 * ms + ms / 2);
    const std::int64_t wait_ns = 8 * ms + ms / 10;
    if (i == 0 || !of.waits_once) logs.waited(0, i, start + ms, wait_ns);
    logs.used(0, i, start + ms + wait_ns);
  }
  return logs;
}

}  // namespace

TEST_CASE("markers in the wrong place or with other numbers are found") {
  std::vector<slip> slips(7);
  slips[1].check = "other-numbers";
  slips[1].built_number = [](int i) { return 16 * i; };
  slips[2].check = "other-numbers";
  slips[2].built_number = [](int i) { return i + 1; };
  slips[3].check = "few-built";
  slips[3].around_loop = true;
  slips[4].check = "empty-blocks";
  slips[4].ends_at_once = true;
  slips[5].check = "few-waits";
  slips[5].waits_once = true;
  slips[6].check = "wait-inside";
  slips[6].contains_wait = true;
  for (const slip& one : slips) {
    const answer a = diagnose(logs_of(one));
    INFO(one.check << a.text());
    CHECK((a.verdict() == "none") == !one.check.empty());
    for (const slip& other : slips) {
      if (!other.check.empty()) CHECK(a.checks.count(other.check) == (other.check == one.check));
    }
  }
}
