// Tests what stats shows about loaders, stages, counters, asynchronous operations and time off the
// CPU.
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <string>

#include "catch.hpp"
#include "stats_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes 30 batches of Read (10 ms) followed by Decode (20 ms), which is the bottleneck.
void write_two_stages(const temp_dir& dir, const std::string& folder = "") {
  thread_logs consumer;
  thread_logs read;
  thread_logs decode;
  for (std::int64_t i = 0; i < 30; ++i) {
    read.stage("Read", i < 3 ? 10 * i : 20 * i - 20, 10, i);
    decode.operation("Huffman", 10 + 20 * i, 5);
    decode.stage("Decode", 10 + 20 * i, 20, i);
    consumer.wait(i, i == 0 ? 0 : 15 + 20 * i, i == 0 ? 30 : 15);
    consumer.consumed(i, 30 + 20 * i);
  }
  consumer.write(dir, folder, 1);
  read.write(dir, folder, 2);
  decode.write(dir, folder, 3);
}

}  // namespace

TEST_CASE("stats shows the capacity of each stage, and where its time went") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  write_two_stages(dir);
  const json document = stats(dir.path());
  const json& run = document["runs"][0];
  CHECK(run["steady_batches_per_s"].number() == Approx(50));
  CHECK(run["ops"]["SDecode"]["count"].integer() == 30);
  const json& read = run["stages"]["Read"];
  const json& decode = run["stages"]["Decode"];
  CHECK(read["capacity_per_s"].number() == Approx(100));
  CHECK(decode["capacity_per_s"].number() == Approx(50));
  CHECK(decode["concurrency"].integer() == 1);
  CHECK(decode["p99_ns"].number() == Approx(20 * ms));
  CHECK(decode["busy"].number() == Approx(1));
  CHECK(read["blocked"].number() == Approx(1 - read["busy"].number()));
  CHECK(read["starved"].number() == 0);
  // A batch is read, waits in a queue, is decoded, and then is ready.
  REQUIRE(run["batches"].size() == 30);
  const json& batch = run["batches"][10];
  CHECK(batch["preprocess_ns"].is_null());
  CHECK(batch["latency_ns"].integer() == 50 * ms);
  CHECK(batch["service_ns"].integer() == 30 * ms);
  CHECK(batch["queueing_ns"].integer() == 20 * ms);
  CHECK(batch["delay_ns"].integer() == 0);
  CHECK(batch["step_ns"].integer() == 5 * ms);
  CHECK_FALSE(contains(run.canonical(), "cpu_ns"));
  const json& slowest = run["through_stages"]["batches"]["slowest"][0];
  CHECK(slowest["latency_ns"].integer() == 50 * ms);
  REQUIRE(slowest["tree"].size() == 3);
  CHECK(slowest["tree"][2]["name"].canonical() == "\"SHuffman\"");
  CHECK(slowest["tree"][2]["depth"].integer() == 1);
}

TEST_CASE("the latency of a batch begins with the first item that became part of it") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  thread_logs consumer;
  thread_logs decode;
  thread_logs pack;
  for (std::int64_t i = 0; i < 30; ++i) {
    // Writes two items, which take 10 ms each in Decode. Pack begins 4 ms after the second item has
    // ended.
    for (std::int64_t item = 2 * i; item < 2 * i + 2; ++item) {
      decode.stage("Decode", 10 * item, 10, item);
      pack.side_log += "takes,," + std::to_string(begin_ns + (20 * i + 24) * ms) + ',' +
                       std::to_string(i) + ',' + std::to_string(item) + '\n';
    }
    pack.stage("Pack", 20 * i + 24, 5, i);
    consumer.wait(i, i == 0 ? 0 : 20 * i + 12, i == 0 ? 30 : 18);
    consumer.consumed(i, 20 * i + 30);
  }
  consumer.write(dir, "", 1);
  decode.write(dir, "", 2);
  pack.write(dir, "", 3);
  const json& run_of = stats(dir.path())["runs"][0];
  const json& slowest = run_of["through_stages"]["batches"]["slowest"][0];
  CHECK(slowest["latency_ns"].integer() == 29 * ms);
  CHECK(slowest["service_ns"].integer() == 25 * ms);
  CHECK(slowest["queueing_ns"].integer() == 4 * ms);
  CHECK(run_of["batches"][3]["latency_ns"].integer() == 29 * ms);
  const result r = run({"stats", dir.path(), "--wide"});
  CHECK(contains(r.out,
                 "latency of 30 batches, from the start of the first item of each: p50 29.00 ms"));
  CHECK(contains(r.out, "latency of 60 items, through all stages: p50 10.00 ms"));
}

TEST_CASE("stats shows stages in CSV") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  write_two_stages(dir);
  const result csv = run({"stats", dir.path(), "--csv"});
  CHECK(contains(csv.out, ",stage,Decode,30,2e+07,"));
  CHECK_FALSE(contains(csv.out, "cpu_ns"));
}

TEST_CASE("each loader is a separate run with the same processes") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads("records 100 50\n"));
  write_two_stages(dir);
  write_two_stages(dir, "val%2Ffirst/");
  const result r = run({"stats", dir.path(), "--json"});
  const json document = parse_json(r.out);
  REQUIRE(document["runs"].size() == 2);
  CHECK_FALSE(contains(document["runs"][0].canonical(), "loader"));
  CHECK(document["runs"][1]["loader"].canonical() == "\"val/first\"");
  CHECK(document["runs"][1]["dropped"].integer() == 50);
  CHECK(document["runs"][1]["batches"].size() == 30);
  CHECK(contains(run({"stats", dir.path()}).out, "(loader 'val/first')"));
  // Dropped records are counted per process, so they must be reported only once.
  CHECK(r.err.find("dropped") == r.err.rfind("dropped"));
}

TEST_CASE("without an information file above it, a directory of logs is a run, not a loader") {
  const temp_dir dir;
  write_two_stages(dir);
  write_two_stages(dir, "other/");
  CHECK_FALSE(contains(stats(dir.path()).canonical(), "loader"));
}

TEST_CASE("links in place of a loader's directory or of a hidden file are not followed") {
  const temp_dir dir;
  const temp_dir outside;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  write_two_stages(dir);
  write_two_stages(outside);
  REQUIRE(symlink(outside.path().c_str(), (dir.path() + "/val").c_str()) == 0);
  REQUIRE(symlink((outside.path() + "/.lotus_beside_lotustrace_log_pid_2").c_str(),
                  (dir.path() + "/.lotus_beside_lotustrace_log_pid_7").c_str()) == 0);
  REQUIRE(mkfifo((dir.path() + "/.lotus_beside_lotustrace_log_pid_8").c_str(), 0666) == 0);
  const result r = run({"stats", dir.path(), "--json"});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "_pid_7: ignored: it is a link"));
  CHECK(contains(r.err, "_pid_8: ignored: it is a link"));
  const json document = parse_json(r.out);
  REQUIRE(document["runs"].size() == 1);
  CHECK(document["runs"][0]["stages"]["Read"]["count"].integer() == 30);
}

TEST_CASE("stage numbers have 64 bits, and a span without a number is an operation only") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_2", "SAnswer,1000,5\nSAnswer,2000,7\nSAnswer,3000,9\n");
  dir.file(".lotus_beside_lotustrace_log_pid_2",
           "number,SAnswer,2000,9223372036854775809,0\nnumber,SAnswer,1000,4294967295,0\n"
           "stage,SAnswer,1000,5,\nstage,SAnswer,2000,7,\nstage,SAnswer,3000,9,\n");
  const result r = run_well({"stats", dir.path(), "--json"});
  const json document = parse_json(r.out);
  const json& answers = document["runs"][0];
  CHECK(answers["ops"]["SAnswer"]["count"].integer() == 3);
  CHECK(answers["stages"]["Answer"]["count"].integer() == 2);
  CHECK(contains(r.out, "\"number\":4294967295,"));
  CHECK(contains(r.out, "\"number\":9223372036854775809,"));
}

TEST_CASE("damaged lines in side logs are reported with file and line, and others are read") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  write_two_stages(dir);
  dir.file(".lotus_beside_lotustrace_log_pid_9",
           "counter,Sdepth,1700000000000000000,-3,0\nstage,SDecode,5,1\nnonsense,,1,2,3\n"
           "counter,Sdepth,1700000001000000000,5,0\ncounter,,1,2,3\nstage,SDecode,x,1,2\n"
           "off_cpu,,1700000001000000000,1,\ncounter,Sdepth,1700000002000000000,99999999999999"
           "999999,0\ncounter,Sdepth,17000000030");
  const result r = run({"stats", dir.path(), "--json"});
  CHECK(r.status == 0);
  const std::string file = dir.path() + "/.lotus_beside_lotustrace_log_pid_9";
  CHECK(contains(r.err, file + ":2: fewer than five fields"));
  CHECK(contains(r.err, file + ":3: the kind is unknown"));
  CHECK(contains(r.err, file + ":5: the name is empty"));
  CHECK(contains(r.err, file + ":6: a field is not a whole number"));
  CHECK(contains(r.err, file + ":8: a number is out of range"));
  CHECK(contains(r.err, file + ":9: incomplete last line ignored"));
  const json document = parse_json(r.out);
  const json& counter = document["runs"][0]["counters"]["depth"];
  CHECK(counter["count"].integer() == 2);
  CHECK(counter["min"].integer() == -3);
  CHECK(counter["last"].integer() == 5);
  CHECK(counter["mean"].number() == -3);  // weighted by time; the last value has no duration
  CHECK(run({"stats", dir.path(), "--strict"}).status == 1);
  CHECK(document["runs"][0]["stages"]["Decode"]["count"].integer() == 30);
}

TEST_CASE("rotated and packed parts of hidden files are read like those of logs") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  const std::string name = "/.lotus_beside_lotustrace_log_pid_2";
  thread_logs t;
  t.stage("Read", 0, 10, 0);
  t.stage("Read", 10, 10, 1);
  t.stage("Read", 20, 10, 2);
  dir.file("lotustrace_log_worker_pid_2", t.worker);
  thread_logs parts[3];
  for (std::int64_t i = 0; i < 3; ++i) parts[i].stage("Read", 10 * i, 10, i);
  dir.file(name.substr(1), parts[2].side_log);
  dir.file(name.substr(1) + ".1", parts[1].side_log);
  gzFile packed = gzopen((dir.path() + name + ".2.gz").c_str(), "wb");
  REQUIRE(packed != nullptr);
  gzputs(packed, parts[0].side_log.c_str());
  REQUIRE(gzclose(packed) == Z_OK);
  CHECK(stats(dir.path())["runs"][0]["stages"]["Read"]["count"].integer() == 3);
  CHECK(run({"viz", dir.path(), "-o", dir.path() + name}).status == 2);
}

TEST_CASE("a service is one stage, and its numbers are requests") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  thread_logs a;
  thread_logs b;
  for (std::int64_t i = 0; i < 50; ++i) {
    (i % 2 == 0 ? a : b).stage("Request", 20 * (i / 2), i == 33 ? 15 : 10, 1000 + i);
  }
  a.write(dir, "", 2);
  b.write(dir, "", 3);
  const json document = stats(dir.path());
  const json& run_json = document["runs"][0];
  CHECK(run_json["stages"]["Request"]["concurrency"].integer() == 2);
  CHECK(run_json["through_stages"]["batches"]["count"].integer() == 50);
  CHECK(run_json["through_stages"]["batches"]["slowest"][0]["number"].integer() == 1033);
  // Each of two threads handles 25 requests; the last one ends after 490 ms.
  CHECK(run_json["achieved_batches_per_s"].number() == Approx(50 / 0.49));
  CHECK_FALSE(contains(run({"stats", dir.path()}).out, "batch times"));
}

TEST_CASE("an asynchronous operation lasts from its first segment to its last") {
  const temp_dir dir;
  dir.file(".lotus_info_1_a", info_of_threads(""));
  thread_logs threads[2];
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t segment = 0; segment < 2; ++segment) {
      thread_logs& t = threads[segment];
      t.operation("Load", 100 * i + 40 * segment, 10);
      t.side_log +=
          "piece," + columns("SLoad", 100 * i + 40 * segment, 10) + ',' + std::to_string(i) + '\n';
    }
  }
  threads[0].write(dir, "", 2);
  threads[1].write(dir, "", 3);
  const json document = stats(dir.path());
  const json& load = document["runs"][0]["async"]["SLoad"];
  CHECK(load["count"].integer() == 4);
  CHECK(load["mean_ns"].number() == 50.0 * ms);
  CHECK(load["running_ns"].integer() == 80 * ms);
  CHECK(document["runs"][0]["ops"]["SLoad"]["count"].integer() == 8);
}

TEST_CASE("without waits there are no steps, because they would include the waits") {
  const temp_dir dir;
  thread_logs consumer;
  for (std::int64_t i = 0; i < 5; ++i) consumer.consumed(i, 10 * i);
  consumer.write(dir, "", 1);
  const json document = stats(dir.path());
  CHECK(document["runs"][0]["step"]["count"].integer() == 0);
  CHECK(document["runs"][0]["batches"][1]["step_ns"].is_null());
  CHECK(document["runs"][0]["achieved_batches_per_s"].number() == Approx(100));
}

TEST_CASE("a program that only records counters is a run") {
  const temp_dir dir;
  dir.file(".lotus_beside_lotustrace_log_pid_11", "counter,Squeue,2000,3,0\n");
  CHECK(stats(dir.path())["runs"][0]["counters"]["queue"]["max"].integer() == 3);
  CHECK(contains(run({"stats", dir.path()}).out, "queue"));
}
