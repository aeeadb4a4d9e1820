// Tests lotus-tool export: its CSV files, and its database with sqlite3.
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes a run in which worker 2 builds batch 0: in Load, which calls Read, and in Decode for item
/// 7. The consumer waits for the batch. Read is called once more after the batch.
void write_run(const temp_dir& dir, const std::string& folder) {
  dir.file(folder + ".lotus_info_1_a", info_of_threads("cpu switches\ncpus 4 4\n"));
  thread_logs consumer;
  consumer.wait(0, 0, 120);
  consumer.consumed(0, 121);
  consumer.wait(1, 130, 20);
  consumer.consumed(1, 151);
  consumer.side_log += "counter,Squeue," + std::to_string(begin_ns + 5 * ms) + ",3,0\n";
  consumer.write(dir, folder, 1);
  thread_logs worker;
  worker.operation("Read", 10, 50);
  worker.off_cpu(60, 40, "10");
  worker.operation("Load", 5, 100);
  worker.worker += columns("SBatchPreprocessed_0", 0, 110) + '\n';
  worker.operation("Read%2C \"again\"", 112, 3);
  worker.worker += columns("SBatchPreprocessed_1", 116, 10) + '\n';
  worker.write(dir, folder, 2);
}

std::string at(std::int64_t time_ms) {
  return std::to_string(begin_ns + time_ms * ms);
}

std::string query(const std::string& database, const std::string& sql) {
  const std::string out = database + ".out";
  const std::string command =
      "sqlite3 -nullvalue - '" + database + "' '" + sql + "' >'" + out + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(out);
}

result export_as(const temp_dir& dir, const std::string& format, const std::string& output) {
  return run({"export", dir.path(), "--format", format, "-o", output});
}

}  // namespace

TEST_CASE("export writes the tables of a run as CSV") {
  const temp_dir dir;
  write_run(dir, "");
  dir.file(
      ".lotus_aggregated_lotustrace_log_1",
      "\nbegin,5.0,4294967296\nSTo%2Cken,1,3,60,50,10:1 25:2\nSOther,0,1,7,7,7:1\nend,5.0,2\n");
  const temp_dir to;
  const result r = export_as(dir, "csv", to.path() + "/tables");
  INFO(r.err);
  REQUIRE(r.status == 0);
  const std::string spans = read_file(to.path() + "/tables/spans.csv");
  CHECK(
      spans ==
      "run,host,rank,pid,tid,thread,loader,name,batch,epoch,start_ns,dur_ns,self_ns,cpu_ns,depth\n"
      "0,here,,1,2,read,\"\",Read,0,0," +
          at(10) +
          ",50000000,50000000,10000000,1\n"
          "0,here,,1,2,read,\"\",Load,0,0," +
          at(5) +
          ",100000000,50000000,60000000,0\n"
          "0,here,,1,2,read,\"\",\"Read, \"\"again\"\"\",,," +
          at(112) + ",3000000,3000000,3000000,0\n");
  const std::string batches = read_file(to.path() + "/tables/batches.csv");
  CHECK(contains(batches, "\n0,here,,1,\"\",0,0,,110000000,120000000,11000000," + at(121) + ","));
  CHECK(contains(batches, "\n0,here,,1,\"\",1,0,,10000000,20000000,25000000," + at(151) + ",\n"));
  CHECK(contains(read_file(to.path() + "/tables/stages.csv"),
                 "\n0,here,,1,2,\"\",preprocess,1,0,1,0," + at(116) + ",10000000\n"));
  CHECK(read_file(to.path() + "/tables/counters.csv") ==
        "run,host,rank,pid,loader,name,time_ns,value\n0,here,,1,\"\",queue," + at(5) + ",3\n");
  CHECK(contains(read_file(to.path() + "/tables/runs.csv"), ",\"\"," + at(0) + ','));
  CHECK(read_file(to.path() + "/tables/aggregated.csv") ==
        "run,host,rank,pid,tid,loader,name,calls,total_ns,self_ns,p50_ns,p90_ns,p99_ns,max_ns\n"
        "0,here,,1,1,\"\",\"To,ken\",3,60,50,25,25,25,25\n"
        "0,here,,1,,\"\",Other,1,7,7,7,7,7,7\n");
}

TEST_CASE("export writes what operations, waits and preprocessing were blocked on") {
  const temp_dir dir;
  write_run(dir, "");
  const auto sample = [](std::int64_t at_ms, const std::string& rest) {
    return "look," + at(at_ms) + ',' + rest + ",7000000\n";
  };
  dir.file(".lotus_waits_1_a", "object,1,decoder_mutex\nobject,2,/data/train.tar\n" +
                                   sample(20, "2,lock,1,5540,1") + sample(30, "2,lock,1,5540,1") +
                                   sample(40, "2,file,2,0,0") + sample(50, "2,lock,1,5540,0") +
                                   sample(30, "1,condition,0,77,0"));
  const temp_dir to;
  const result r = export_as(dir, "csv", to.path() + "/tables");
  CHECK(r.err.empty());
  REQUIRE(r.status == 0);
  const std::string columns =
      "run,loader,part,name,reason,what,held_by,held_share,ns,share,samples,stack,held_in\n";
  // The worker was blocked for 30 ms, all of them in Load and in Read. According to its log, the
  // consumer was never off the CPU.
  const std::string lock = ",lock,decoder_mutex (0x5540),waiting for a batch,1,22500000,0.75,3,,\n";
  const std::string file = ",file,/data/train.tar,,,7500000,0.25,1,,\n";
  CHECK(read_file(to.path() + "/tables/blocked_on.csv") ==
        columns + "0,\"\",operation,Load" + lock + "0,\"\",operation,Load" + file +
            "0,\"\",operation,Read" + lock + "0,\"\",operation,Read" + file +
            "0,\"\",wait,,condition,0x77,,,0,1,1,,\n0,\"\",preprocess," + lock +
            "0,\"\",preprocess," + file);
  const std::string database = to.path() + "/run.db";
  if (export_as(dir, "sqlite", database).status == 2) lotus_test::skip("built without SQLite");
  if (std::system("sqlite3 --version >/dev/null 2>&1") != 0) {
    lotus_test::skip("sqlite3 is absent");
  }
  CHECK(query(database,
              "select what, share, typeof(share) from blocked_on where name = \"Load\" limit 1") ==
        "decoder_mutex (0x5540)|0.75|real\n");
}

TEST_CASE("no name becomes a formula in CSV, and a database has the unchanged name") {
  const temp_dir dir;
  thread_logs worker;
  worker.operation("=cmd|' /C calc'!A0", 0, 1);
  worker.operation("@SUM(1%2C2)", 2, 1);
  worker.operation("'as it is", 4, 1);
  worker.write(dir, "", 2);
  const temp_dir to;
  REQUIRE(export_as(dir, "csv", to.path() + "/tables").status == 0);
  const std::string spans = read_file(to.path() + "/tables/spans.csv");
  INFO(spans);
  CHECK(contains(spans, ",'=cmd|' /C calc'!A0,"));
  CHECK(contains(spans, ",\"'@SUM(1,2)\","));
  CHECK(contains(spans, ",''as it is,"));
  const std::string database = to.path() + "/run.db";
  if (export_as(dir, "sqlite", database).status == 2) lotus_test::skip("built without SQLite");
  if (std::system("sqlite3 --version >/dev/null 2>&1") != 0) {
    lotus_test::skip("sqlite3 is absent");
  }
  CHECK(query(database, "select name from spans order by start_ns") ==
        "=cmd|' /C calc'!A0\n@SUM(1,2)\n'as it is\n");
}

TEST_CASE("export writes several runs into one database that sqlite3 opens") {
  const temp_dir dir;
  write_run(dir, "b2/");
  write_run(dir, "b10/");
  const temp_dir to;
  const std::string database = to.path() + "/run.db";
  const result r = export_as(dir, "sqlite", database);
  if (r.status == 2) lotus_test::skip("built without SQLite");
  INFO(r.err);
  REQUIRE(r.status == 0);
  if (std::system("sqlite3 --version >/dev/null 2>&1") != 0) {
    lotus_test::skip("sqlite3 is absent");
  }
  CHECK(query(database, "select run, dir from runs") ==
        "0|" + dir.path() + "/b2\n1|" + dir.path() + "/b10\n");
  CHECK(query(database,
              "select name, batch, rank, sum(self_ns), count(*) from spans group by name") ==
        "Load|0|-|100000000|2\nRead|0|-|100000000|2\nRead, \"again\"|-|-|6000000|2\n");
  CHECK(query(database, "select sum(wait_ns) from batches where run = 1") == "140000000\n");
  CHECK(query(database, "pragma integrity_check") == "ok\n");
  CHECK(to.names().size() == 2);  // the database and the output of the query, but no temporary file
}

TEST_CASE("an export that fails leaves no files and does not change the logs") {
  const temp_dir dir;
  write_run(dir, "");
  CHECK(export_as(dir, "csv", dir.path() + "/.lotus_info_1_a").status == 1);
  CHECK(export_as(dir, "sqlite", dir.path() + "/nowhere/run.db").status != 0);
  for (const char* format : {"csv", "sqlite", "parquet"})
    CHECK(export_as(dir, format, "-").status == 2);
  CHECK(export_as(dir, "pstats", "-").status == 0);
  CHECK(export_as(dir, "pstats", dir.path() + "/lotustrace_log_worker_pid_2").status == 2);
  CHECK(export_as(dir, "sqlite", dir.path() + "/lotustrace_log_worker_pid_2").status == 2);
  CHECK(contains(read_file(dir.path() + "/lotustrace_log_worker_pid_2"), "SLoad"));
}
