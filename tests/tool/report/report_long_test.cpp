// Tests the page of a long run: it must be small and correct, and must show what it leaves out.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "report_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t at_ns = 1'700'000'000'000'000'000;
constexpr std::int64_t batches = 40'000;

void line(std::string& to, const std::string& name, std::int64_t from, std::int64_t ns) {
  to += name + ',' + std::to_string(from) + ',' + std::to_string(ns) + '\n';
}

}  // namespace

TEST_CASE("for a long run the longest operations are drawn, and adjacent batches are merged") {
  const temp_dir dir;
  std::string worker;
  std::string main;
  std::string side_log;
  std::int64_t began_ns = 0;
  std::int64_t waited_ns = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::int64_t start = at_ns + i * 10'000'000;
    for (int op = 0; op < 15; ++op) {
      const bool is_long = op == 0 && i % 1000 == 0;
      line(worker, "SLoad", start + op * 100'000, is_long ? 90'000 : 10'000 + op);
    }
    const std::int64_t preprocessing_ns = 4'000'000 + i % 7;
    began_ns += preprocessing_ns;
    waited_ns += 5'000'000;
    const std::string number = '_' + std::to_string(i);
    line(worker, "SBatchPreprocessed" + number, start, preprocessing_ns);
    line(main, "SBatchWait" + number, start, 5'000'000);
    line(main, "SBatchConsumed" + number, start + 5'000'000, 1000);
    for (int n = 0; n < 2; ++n) {
      side_log += "counter,Squeue," + std::to_string(start + n) + ',' +
                  std::to_string(i == 777 ? 1234 : n) + ",0\n";
    }
  }
  dir.file("run/lotustrace_log_worker_pid_2", worker);
  dir.file("run/lotustrace_log_main_pid_1", main);
  dir.file("run/.lotus_beside_lotustrace_log_pid_2", side_log);
  const std::string path = report(dir, dir.path() + "/run");
  CHECK(std::filesystem::file_size(path) < 5'000'000);
  const json data = page_data(path);
  const auto& timeline = data["runs"][0]["timeline"];
  const std::string note = timeline["note"].text();
  INFO(note);
  CHECK(contains(note, "Of 600000 operations about "));
  CHECK(contains(note, "Sums include those that are not drawn."));
  CHECK(contains(note, "Batches that follow each other closely are drawn as one"));
  CHECK(contains(note, "Of 80000 values of counters"));
  CHECK(contains(note, "Arrows from batch to batch are not drawn."));
  CHECK(timeline["arrows"].size() == 0);
  // The page must contain all batches and the full busy time.
  std::int64_t busy_ns[3] = {};
  std::int64_t count[3] = {};
  std::size_t drawn = 0;
  for (const auto& track : timeline["tracks"].array()) {
    drawn += track["batches"].size();
    for (const auto& of : track["batches"].array()) {
      const auto kind = static_cast<std::size_t>(of[2].integer());
      const bool joined = of.size() == 6;
      count[kind] += joined ? of[4].integer() : 1;
      busy_ns[kind] += joined ? of[5].integer() : of[1].integer();
    }
  }
  CHECK(drawn <= 30'000);
  CHECK(count[0] == batches);
  CHECK(count[1] == batches);
  CHECK(count[2] == batches);
  CHECK(busy_ns[0] == began_ns);
  CHECK(busy_ns[1] == waited_ns);
  const auto& values = timeline["counters"][0]["values"];
  CHECK(values.size() <= 30'000);
  std::int64_t highest = 0;
  for (const auto& value : values.array()) highest = std::max(highest, value[1].integer());
  CHECK(highest == 1234);
}

TEST_CASE("as many values of counters as the page may contain are all drawn, without a note") {
  constexpr int values = 30'000;
  const temp_dir dir;
  std::string worker;
  std::string side_log;
  line(worker, "SLoad", at_ns, values);
  for (int i = 0; i < values; ++i) {
    side_log +=
        "counter,Squeue," + std::to_string(at_ns + i) + ',' + std::to_string(i % 7) + ",0\n";
  }
  dir.file("run/lotustrace_log_worker_pid_2", worker);
  dir.file("run/.lotus_beside_lotustrace_log_pid_2", side_log);
  const json data = page_data(report(dir, dir.path() + "/run"));
  const auto& timeline = data["runs"][0]["timeline"];
  CHECK(timeline["counters"][0]["values"].size() == values);
  CHECK_FALSE(contains(timeline["note"].text(), "values of counters"));
}

TEST_CASE("of very many intervals off the CPU of one length, some are drawn") {
  const temp_dir dir;
  std::string worker;
  std::string side_log;
  for (std::int64_t i = 0; i < 70'000; ++i) {
    line(worker, "SRead", at_ns + i * 100'000, 90'000);
    side_log += "off_cpu,," + std::to_string(at_ns + i * 100'000 + 10'000) + ",50000,10\n";
  }
  dir.file("run/.lotus_info_1_a", "pid 1\ncpu switches\ncpus 4 4\nthread 2 Sworker\n");
  dir.file("run/lotustrace_log_worker_pid_2", worker);
  dir.file("run/.lotus_beside_lotustrace_log_pid_2", side_log);
  const json data = page_data(report(dir, dir.path() + "/run"));
  const auto& timeline = data["runs"][0]["timeline"];
  CHECK(contains(timeline["note"].text(), "Of 70000 intervals off the CPU about 23333 are drawn"));
  CHECK(timeline["tracks"][0]["off_cpu"].size() == 23'334);
}

TEST_CASE("if there are very many operations, those with the most time are listed") {
  constexpr int short_ones = 2500;
  const temp_dir dir;
  std::string worker;
  std::int64_t now = at_ns;
  line(worker, "SLongest", now, 9'000'000);
  for (int i = 0; i < short_ones; ++i) {
    now += 10'000'000;
    line(worker, "SFile" + std::to_string(i), now, 1000 + i);
  }
  dir.file("run/lotustrace_log_worker_pid_2", worker);
  const std::string path = report(dir, dir.path() + "/run");
  const json data = page_data(path);
  const auto& run = data["runs"][0];
  CHECK(run["ops"].size() == 2000);
  CHECK(run["ops"][0]["name"].text() == "SLongest");
  CHECK(run["ops"][1]["name"].text() == "SFile501");
  // 501 operations are left out. Their sum is 501 us and 0 + 1 + ... + 500 ns.
  CHECK(run["ops_note"].text() ==
        "Of 2501 operations, the 2000 with the most time are listed; the others took 626.2 us "
        "together. lotus-tool stats lists all.");
  CHECK(run["timeline"]["calls"].size() == 2001);
  const json first = page_data(path, "first");
  CHECK(first["op_names"].size() == 2001);
  CHECK(first["op_names"][1].text() == "S(other operations)");
}
