// Tests the conclusions of compare in cases where the right answer is known, with one and with
// several runs per side.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

struct planted {
  double load_ms = 4;
  double crop_ms = 1;
  int samples = 8;  ///< number of samples per batch
  int crops = 1;    ///< number of calls of Crop per sample
  int workers = 2;
  std::size_t batches = 120;
  double run_spread = 0;  ///< standard deviation between runs
  std::string info = {};
};

/// Writes the logs of workers, which take turns to build batches and run Load and Crop for each
/// sample, and of a consumer that waits for the batches.
void write_run(const temp_dir& dir, const std::string& name, const planted& of, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(0, 1);
  const double run = std::exp(of.run_spread * draw(random));
  std::vector<std::string> logs(static_cast<std::size_t>(of.workers));
  std::vector<std::int64_t> now(logs.size(), 1'000'000);
  std::string consumer;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < of.batches; ++i) {
    const std::size_t w = i % logs.size();
    const std::int64_t start = now[w];
    const auto operation = [&](const char* op, double ms) {
      const auto ns = static_cast<std::int64_t>(ms * 1e6 * run * std::exp(0.3 * draw(random)));
      logs[w] += std::string(op) + ',' + std::to_string(now[w]) + ',' + std::to_string(ns) + '\n';
      now[w] += ns + 1000;
    };
    for (int s = 0; s < of.samples; ++s) {
      operation("SLoad", of.load_ms);
      for (int c = 0; c < of.crops; ++c) operation("SCrop", of.crop_ms);
    }
    logs[w] += "SBatchPreprocessed_" + std::to_string(i) + ',' + std::to_string(start) + ',' +
               std::to_string(now[w] - start) + '\n';
    const std::int64_t from = taken;
    taken = std::max(taken + 1000, now[w] + 1000);
    consumer += "SBatchWait_" + std::to_string(i) + ',' + std::to_string(from) + ',' +
                std::to_string(taken - from) + "\nSBatchConsumed_" + std::to_string(i) + ',' +
                std::to_string(taken) + ",1000\n";
    taken += 1000;
  }
  for (std::size_t w = 0; w < logs.size(); ++w) {
    dir.file(name + "/lotustrace_log_worker_pid_" + std::to_string(w + 10), logs[w]);
  }
  dir.file(name + "/lotustrace_log_main_pid_1", consumer);
  if (!of.info.empty()) dir.file(name + "/.lotus_info_1_a", of.info);
}

/// Returns the sentence that says how the preprocessing time of a batch changed; "" if there is
/// none.
std::string conclusion_in(const std::string& text) {
  const std::size_t at = text.find("preprocessing of a batch");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/// Writes `count` runs for each side. Returns the arguments for compare, with --a and --b.
std::vector<std::string> several(const temp_dir& dir, int count, const planted& a, const planted& b,
                                 unsigned seed) {
  std::vector<std::string> arguments{"compare"};
  for (const std::string side : {"a", "b"}) {
    arguments.push_back("--" + side);
    for (int i = 0; i < count; ++i) {
      const std::string name = side + std::to_string(i);
      write_run(dir, name, side == "a" ? a : b, seed++);
      arguments.push_back(dir.path() + '/' + name);
    }
  }
  return arguments;
}

planted slower_load() {
  planted of;
  of.load_ms = 5.15;  // a sample takes 6.15 ms instead of 5 ms, which is 1.23 times as long
  return of;
}

}  // namespace

TEST_CASE("the first sentence says how much preprocessing changed, and why") {
  const temp_dir dir;
  write_run(dir, "old", {}, 1);
  write_run(dir, "new", slower_load(), 2);
  const std::string a = dir.path() + "/old";
  const std::string b = dir.path() + "/new";
  const result r = run({"compare", a, b});
  INFO(r.out);
  CHECK(r.status == 0);
  const std::string sentence = conclusion_in(r.out);
  CHECK(sentence.find("preprocessing of a batch became 1.2") == 0);
  CHECK(contains(sentence, " ± 0.0"));
  CHECK(contains(sentence, " times slower, because Load takes "));
  CHECK(contains(sentence, " ms more per batch ("));
  CHECK_FALSE(contains(sentence, "Crop"));
  CHECK_FALSE(contains(r.out, "the runs differ in "));
  CHECK(contains(conclusion_in(run({"compare", b, a}).out), " times faster, because Load takes "));
  const json document = parse_json(run({"compare", a, b, "--json"}).out);
  CHECK(document["conclusions"][0]["because"][0]["name"].text() == "SLoad");
  CHECK(document["conclusions"][0]["because"][0]["share"].number() == Approx(1).margin(0.15));
  CHECK(document["before"].text() == a);
}

TEST_CASE("compare concludes nothing from chance, and blames no operation that did not change") {
  const temp_dir dir;
  int changed = 0;
  for (unsigned i = 0; i < 40; ++i) {
    planted few;
    few.batches = 40;
    write_run(dir, "old", few, 2 * i);
    write_run(dir, "new", few, 2 * i + 1);
    const std::string sentence =
        conclusion_in(run({"compare", dir.path() + "/old", dir.path() + "/new"}).out);
    const bool same =
        contains(sentence, "preprocessing of a batch: no significant change. It took ");
    if (same) CHECK_FALSE(contains(sentence, "because"));
    changed += same ? 0 : 1;
  }
  CHECK(changed <= 6);  // about 2 are expected by chance
  // In the second run, the batches take longer, although no operation does.
  for (const int length : {20000, 30000}) {
    std::string log;
    for (int i = 0; i < 60; ++i) {
      const std::string start = std::to_string(1000 + i * 100000);
      log += "SLoad," + start + ',' + std::to_string(5000 + i % 7) + "\nSBatchPreprocessed_" +
             std::to_string(i) + ',' + start + ',' + std::to_string(length) + '\n';
    }
    dir.file((length == 20000 ? "x" : "y") + std::string("/lotustrace_log_worker_pid_1"), log);
  }
  const result r = run({"compare", dir.path() + "/x", dir.path() + "/y"});
  CHECK(conclusion_in(r.out) == "preprocessing of a batch became 1.50 ± 0.00 times slower");
}

TEST_CASE("compare names an operation that is called more often as the cause") {
  const temp_dir dir;
  planted more;
  more.crops = 3;
  write_run(dir, "old", {}, 1);
  write_run(dir, "new", more, 2);
  const result r = run({"compare", dir.path() + "/old", dir.path() + "/new"});
  INFO(r.out);
  CHECK(contains(conclusion_in(r.out), "because Crop is called more often: "));
  // Load is called as often as in the old run, so the batches have the same size.
  CHECK_FALSE(contains(r.out, "batch size"));
}

TEST_CASE("compare also reports other differences between the runs") {
  const temp_dir dir;
  planted one;
  one.info = "pid 1\nhost Snode1\ncpus 4\nthread 1 Sa\nthread 10 Sb\n";
  planted other;
  other.samples = 16;
  other.workers = 4;
  other.info = "pid 1\nhost Snode2\ncpus 8\nthread 1 Sa\nthread 10 Sb\n";
  write_run(dir, "old", one, 1);
  write_run(dir, "new", other, 2);
  const result r = run({"compare", dir.path() + "/old", dir.path() + "/new"});
  INFO(r.out);
  CHECK(contains(
      r.out, "the runs differ in batch size (mean Load calls per batch: 8 before, 16 after)\n"));
  CHECK(contains(r.out, " times slower, but batch sizes differ\n"));
  CHECK(contains(r.out, "the runs differ in the number of workers: 2 before, 4 after"));
  CHECK(contains(r.out, "the runs differ in machines: node1 before, node2 after"));
  CHECK(contains(r.out, "the runs differ in CPUs that could be used: 4 before, 8 after"));
}

TEST_CASE("a change by more than a factor of two is printed as a factor") {
  const temp_dir dir;
  planted much;
  much.load_ms = 4 * 837;
  write_run(dir, "old", {}, 1);
  write_run(dir, "new", much, 2);
  const result r = run({"compare", dir.path() + "/old", dir.path() + "/new"});
  CHECK(contains(r.out, "x to "));
  CHECK(contains(r.out, "2x means twice the first value"));
  CHECK_FALSE(contains(r.out, "+8"));
}

TEST_CASE("intervals from several runs per side cover the truth, those from single runs do not") {
  constexpr int experiments = 24;
  int covered = 0;
  int covered_single = 0;
  for (unsigned i = 0; i < experiments; ++i) {
    const temp_dir dir;
    planted a;
    a.run_spread = 0.05;
    a.batches = 40;
    planted b = slower_load();
    b.run_spread = 0.05;
    b.batches = 40;
    std::vector<std::string> arguments = several(dir, 3, a, b, 1000 * i);
    arguments.emplace_back("--json");
    const auto holds = [](const json& document) {
      for (const json& row : document["rows"].array()) {
        if (row["name"].text() != "preprocess") continue;
        return row["low"].number() <= 0.23 && row["high"].number() >= 0.23;
      }
      return false;
    };
    covered += holds(parse_json(run(arguments).out)) ? 1 : 0;
    const std::string& at = dir.path();
    covered_single += holds(parse_json(run({"compare", at + "/a0", at + "/b0", "--json"}).out));
  }
  CHECK(covered >= 21);
  CHECK(covered_single <= 18);
}

TEST_CASE("five runs per side get a permutation test") {
  const temp_dir dir;
  planted a;
  a.run_spread = 0.02;
  a.batches = 30;
  planted b = slower_load();
  b.run_spread = 0.02;
  b.batches = 30;
  std::vector<std::string> arguments = several(dir, 5, a, b, 7);
  const result r = run(arguments);
  INFO(r.out);
  CHECK(contains(conclusion_in(r.out), " (5 against 5 runs)"));
  CHECK(contains(r.out, "  p "));
  CHECK(contains(r.out, "throughput: "));
  CHECK(contains(r.out, ", p = 0.00794"));  // 2 of the 252 ways to divide the runs are as extreme
  CHECK_FALSE(contains(r.out, "The intervals ignore that two runs"));
  arguments.insert(arguments.end(), {"--json", "--fail-above", "5%"});
  const result failed = run(arguments);
  CHECK(failed.status == 3);
  const json document = parse_json(failed.out);
  CHECK(document["before"].size() == 5);
  CHECK(document["rows"][0]["name"].text() == "SLoad");
  CHECK(document["rows"][0]["p"].number() == Approx(2.0 / 252));
  CHECK(document["conclusions"][0]["runs_before"].integer() == 5);
  // Four runs per side are too few for a p-value.
  const std::vector<std::string> four = several(dir, 4, a, b, 7);
  CHECK_FALSE(contains(run(four).out, "p = "));
  // A folder that is given twice counts as one run.
  const std::string& at = dir.path();
  CHECK(contains(run({"compare", "--a", at + "/a0", at + "/a0", "--b", at + "/b0"}).out,
                 "The intervals ignore that two runs"));
}
