// Tests the CPU times that stats shows next to the wall times.
#include <cstdint>
#include <string>

#include "catch.hpp"
#include "stats_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("stats shows CPU time of operations, stages, batches, waits and steps") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\ncpus 4 2.5\n"));
  thread_logs consumer;
  thread_logs worker;
  // Load lasts from 0 to 100 ms and contains Read from 10 to 60 ms. Read is off the CPU for 40 ms,
  // of which it waits for a CPU for 10 ms; this is noticed when Read ends. Later the thread is
  // blocked for 5 ms, which is noticed when Load ends.
  worker.operation("Read", 10, 50);
  worker.off_cpu(60, 40, "10");
  worker.operation("Load", 0, 100);
  worker.off_cpu(100, 5, "0");
  worker.worker += columns("SBatchPreprocessed_0", 0, 110) + '\n';
  worker.off_cpu(180, 70, "0");  // idle time between batches, which belongs to no span
  worker.worker += columns("SBatchPreprocessed_1", 180, 10) + '\n';
  consumer.wait(0, 0, 120);
  consumer.off_cpu(120, 115, "15");
  consumer.consumed(0, 120);
  consumer.wait(1, 150, 50);
  consumer.off_cpu(150, 20, "20");
  consumer.off_cpu(200, 50, "0");
  consumer.consumed(1, 200);
  consumer.write(dir, "", 1);
  worker.write(dir, "", 2);
  const json document = stats(dir.path());
  const json& run_json = document["runs"][0];
  const auto check = [](const json& of, std::int64_t cpu, std::int64_t queue,
                        std::int64_t blocked) {
    CHECK(of["cpu_ns"].integer() == cpu * ms);
    CHECK(of["run_queue_ns"].integer() == queue * ms);
    CHECK(of["blocked_ns"].integer() == blocked * ms);
  };
  check(run_json["ops"]["SRead"], 10, 10, 30);
  check(run_json["ops"]["SLoad"], 55, 10, 35);
  check(run_json["batches"][0], 65, 10, 35);
  check(run_json["batches"][1], 10, 0, 0);
  check(run_json["preprocess"], 75, 10, 35);
  check(run_json["wait"], 5, 15, 150);
  check(run_json["step"], 10, 20, 0);
  const result table = run({"stats", dir.path()});
  CHECK(contains(table.out, "waits for CPU"));
  CHECK(contains(run({"stats", dir.path(), "--csv"}).out, ",cpu_ns,run_queue_ns,blocked_ns"));
  // If the log does not contain the time in the run queue, the number must be missing instead of 0.
  thread_logs unsplit = worker;
  unsplit.side_log.clear();
  unsplit.off_cpu(60, 40, "");
  unsplit.write(dir, "", 2);
  const json again = stats(dir.path());
  CHECK(again["runs"][0]["ops"]["SRead"]["cpu_ns"].integer() == 10 * ms);
  CHECK(again["runs"][0]["ops"]["SRead"]["run_queue_ns"].is_null());
}

TEST_CASE("stats shows no CPU time that was not measured") {
  const temp_dir dir;
  const std::string mode =
      GENERATE(std::string("cpu off\n"), std::string("cpu batches\n"), std::string());
  dir.file(".lotus_info_1_a", info_of_threads(mode));
  thread_logs worker;
  worker.operation("Read", 10, 50);
  worker.off_cpu(110, 40, "10");
  worker.worker += columns("SBatchPreprocessed_0", 0, 110) + '\n';
  worker.write(dir, "", 2);
  const json document = stats(dir.path());
  const json& run_json = document["runs"][0];
  CHECK_FALSE(contains(run_json["ops"].canonical(), "cpu_ns"));
  INFO(run_json["batches"].canonical());
  CHECK(contains(run_json["batches"].canonical(), "\"cpu_ns\":70000000") ==
        (mode == "cpu batches\n"));
}

TEST_CASE("time off the CPU counts for its thread, whichever loader it is recorded in") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\n"));
  thread_logs train;
  train.operation("Read", 0, 50);
  train.write(dir, "", 2);
  thread_logs val;
  val.operation("Read", 100, 50);
  val.off_cpu(40, 20, "0");
  val.off_cpu(140, 10, "0");
  val.write(dir, "val/", 2);
  const json document = stats(dir.path());
  CHECK(document["runs"][0]["ops"]["SRead"]["cpu_ns"].integer() == 30 * ms);
  CHECK(document["runs"][1]["ops"]["SRead"]["cpu_ns"].integer() == 40 * ms);
}

TEST_CASE("if a process can no longer notice context switches, only batches have CPU time") {
  const temp_dir dir;
  thread_logs worker;
  worker.operation("Read", 10, 50);
  worker.off_cpu(60, 40, "10");
  worker.stage("Decode", 60, 20, 0);
  worker.operation("Crop", 80, 20);  // Crop's time off the CPU is noticed only when the batch ends
  worker.worker += columns("SBatchPreprocessed_0", 0, 110) + '\n';
  worker.off_cpu(110, 20, "0");
  worker.write(dir, "", 2);
  const auto figures = [&] { return stats(dir.path())["runs"][0]; };
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\n"));
  CHECK(figures()["ops"]["SRead"]["cpu_ns"].integer() == 10 * ms);
  dir.file(".lotus_info_1_a", info_of_threads("cpu switches\ncpus 4 -\ncpu batches\n"));
  const json run_json = figures();
  CHECK_FALSE(contains(run_json["ops"].canonical(), "cpu_ns"));
  CHECK_FALSE(contains(run_json["stages"].canonical(), "cpu_ns"));
  CHECK(run_json["preprocess"]["cpu_ns"].integer() == 50 * ms);
  const result table = run({"stats", dir.path()});
  CHECK_FALSE(contains(table.out.substr(0, table.out.find("batch times")), "on CPU"));
  CHECK(contains(table.out.substr(table.out.find("batch times")), "on CPU"));
  const std::string trace = dir.path() + "/trace.json";
  REQUIRE(run({"viz", dir.path(), "-o", trace}).status == 0);
  CHECK_FALSE(contains(read_file(trace), "off the CPU"));
}

TEST_CASE("CPU time is shown only if all recordings in one log measured it") {
  const temp_dir dir;
  thread_logs worker;
  worker.operation("Read", 0, 50);
  worker.operation("Read", 100, 50);
  worker.off_cpu(150, 10, "0");
  worker.write(dir, "", 2);
  dir.file(".lotus_info_1_b", info_of_threads("cpu switches\n"));
  const auto read = [&] { return stats(dir.path())["runs"][0]["ops"]["SRead"]; };
  CHECK(read()["cpu_ns"].integer() == 90 * ms);
  dir.file(".lotus_info_1_a", info_of_threads("cpu off\n"));
  CHECK_FALSE(read().has("cpu_ns"));
}
