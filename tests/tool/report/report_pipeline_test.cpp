// Tests the page's data about CPU times, stages, loaders and counters.
#include <cstdint>
#include <string>

#include "catch.hpp"
#include "report_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

json data_of(const temp_dir& dir) {
  return page_data(report(dir, dir.path() + "/run"));
}

/// Writes 30 items that take 10 ms in Read, where the thread is off the CPU for half of the time,
/// and then 20 ms in Decode.
void write_stages(const temp_dir& dir, const std::string& folder) {
  thread_logs read;
  thread_logs decode;
  for (std::int64_t i = 0; i < 30; ++i) {
    read.stage("Read", 20 * i, 10, i);
    read.off_cpu(20 * i + 10, 5, "1");
    decode.stage("Decode", 10 + 20 * i, 20, i);
  }
  read.write(dir, folder, 2);
  decode.write(dir, folder, 3);
}

}  // namespace

TEST_CASE("the page contains the CPU time of operations and stages if it is known") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads("cpu switches\n"));
  write_stages(dir, "run/");
  const json known = data_of(dir);
  const json& run_data = known["runs"][0];
  REQUIRE(run_data["ops"].size() == 2);
  for (const auto* list : {"ops", "stages"}) {
    const json& read = run_data[list][0];
    CHECK(read["total_ns"].integer() == 300 * ms);
    CHECK(read["cpu_ns"].integer() == 150 * ms);
    CHECK(read["run_queue_ns"].integer() == 30 * ms);
    CHECK(read["blocked_ns"].integer() == 120 * ms);
  }
  for (const std::string other : {"", "cpu off\n", "cpu switches\ncpu batches\n"}) {
    dir.file("run/.lotus_info_1_a", info_of_threads(other));
    CHECK_FALSE(contains(data_of(dir).canonical(), "cpu_ns"));
  }
}

TEST_CASE("the page contains the slowest batches, with numbers that JavaScript cannot represent") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads(""));
  constexpr std::int64_t number = 9'007'199'254'740'993;
  thread_logs read;
  thread_logs decode;
  read.stage("Read", 0, 10, number);
  decode.stage("Decode", 30, 20, number);
  read.write(dir, "run/", 2);
  decode.write(dir, "run/", 3);
  const json data = data_of(dir);
  const json& batches = data["runs"][0]["through_stages"][0];
  CHECK(batches["name"].text() == "batches");
  CHECK(batches["numbers"][0].text() == std::to_string(number));
  CHECK(batches["slowest"][0]["queueing_ns"].integer() == 20 * ms);
}

TEST_CASE("the page contains stages, and each loader as a separate run") {
  const temp_dir dir;
  dir.file("run/.lotus_info_1_a", info_of_threads(""));
  write_stages(dir, "run/");
  write_stages(dir, "run/val/");
  const json data = data_of(dir);
  REQUIRE(data["runs"].size() == 2);
  const json first = page_data(dir.path() + "/report.html", "first");
  CHECK(first["runs"][0]["name"].text() == "run");
  CHECK(first["runs"][1]["name"].text() == "run, loader val");
  const json& decode = data["runs"][1]["stages"][1];
  CHECK(decode["name"].text() == "Decode");
  CHECK(decode["count"].integer() == 30);
  CHECK(decode["concurrency"].integer() == 1);
  CHECK(decode["capacity_per_s"].number() == Approx(50));
  CHECK(decode["busy"].number() == Approx(1));
}

TEST_CASE("the timeline has separate counters for each process") {
  const temp_dir dir;
  dir.file("run/lotustrace_log_worker_pid_2", columns("SRead", 0, 50) + '\n');
  const auto at = [](std::int64_t time_ms) { return std::to_string(begin_ns + time_ms * ms); };
  dir.file("run/.lotus_beside_lotustrace_log_pid_2", "counter,Squeue%2C in," + at(10) +
                                                         ",3,0\ncounter,Squeue%2C in," + at(20) +
                                                         ",-9223372036854775808,0\n");
  const json one = data_of(dir);
  const json& counters = one["runs"][0]["timeline"]["counters"];
  REQUIRE(counters.size() == 1);
  CHECK(counters[0]["name"].text() == "queue, in");
  CHECK(counters[0]["values"].canonical() == "[[10000000,3],[20000000,-9223372036854775808]]");
  dir.file("run/.lotus_info_1_a", info_of_threads(""));
  dir.file("run/.lotus_info_9_b", "pid 9\nparent 1\nthread 9 Sforked\n");
  dir.file("run/.lotus_beside_lotustrace_log_pid_9", "counter,Squeue%2C in," + at(15) + ",4,0\n");
  const json two = data_of(dir);
  const json& both = two["runs"][0]["timeline"]["counters"];
  REQUIRE(both.size() == 2);
  CHECK(both[0]["name"].text() == "queue, in, pid 1");
  CHECK(both[1]["name"].text() == "queue, in, pid 9");
  dir.file("run/.lotus_beside_lotustrace_log_pid_2", "");
  dir.file("run/.lotus_beside_lotustrace_log_pid_9", "");
  CHECK_FALSE(data_of(dir)["runs"][0]["timeline"].has("counters"));
}
