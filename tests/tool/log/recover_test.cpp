// Tests ring files that killed processes left behind: every command must count their records, and
// `recover` must write them to the logs. Also tests the information files of processes.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "forged_ring.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/ring_layout.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using lotus::tool_test::contains;
using lotus::tool_test::result;

namespace {

/// Runs a process that records a batch with two operations and is killed before it writes anything.
void leave_records(const std::string& prefix, const char* rank = nullptr) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (rank != nullptr) setenv("RANK", rank, 1);
    lotus::options o;
    o.log_file = prefix;
    o.drain_interval_ms = 1'000'000;
    o.cpu_time = false;  // otherwise, records of CPU time would be counted too
    lotus::start(o);
    usleep(400'000);  // waits until the drains shortly after start() are over
    pthread_setname_np(pthread_self(), "loader \"7\"");
    {
      LOTUS_BATCH_PREPROCESSED(0);
      { LOTUS_SCOPE("Loader"); }
      { LOTUS_SCOPE("Crop, twice"); }
    }
    LOTUS_BATCH_CONSUMED(0);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

}  // namespace

TEST_CASE("stats and viz include the records that a killed process left, and report that") {
  const support::temp_directory run;
  leave_records(run.prefix());
  const auto stats = lotus::tool_test::run({"stats", run.path().c_str(), "--json"});
  CHECK(stats.status == 0);
  CHECK(contains(stats.err, "4 records of killed processes are counted in"));
  CHECK(contains(stats.out, "SLoader"));
  CHECK(contains(stats.out, "SCrop, twice"));
  const auto viz = lotus::tool_test::run({"viz", run.path().c_str(), "-o", "-"});
  CHECK(viz.status == 0);
  CHECK(contains(viz.out, "\"name\":\"step\""));
  // Reading a ring file must not change the directory.
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 1);
  CHECK(support::count_files(run.path(), "lotustrace_log") == 0);
}

TEST_CASE("the check 'dropped' fails until a killed process is recovered") {
  const support::temp_directory run;
  leave_records(run.prefix());
  const auto before = lotus::tool_test::run({"stats", run.path().c_str(), "--json"});
  CHECK(
      contains(before.out, "{\"id\":\"dropped\",\"text\":\"a process was killed or called _exit"));
  CHECK(contains(before.out, "lotus-tool recover"));
  CHECK(lotus::tool_test::run({"recover", run.path().c_str()}).status == 0);
  CHECK_FALSE(contains(lotus::tool_test::run({"stats", run.path().c_str(), "--json"}).out,
                       "\"id\":\"dropped\""));
}

TEST_CASE("recover writes the records of killed processes to the logs once") {
  const support::temp_directory run;
  const auto deep = run.path() / "b8_gpu1";
  leave_records((deep / "lotustrace_log").string());
  const auto first = lotus::tool_test::run({"recover", run.path().c_str()});
  CHECK(first.status == 0);
  CHECK(contains(first.out, "recovered 4 records of 1 process\n"));
  const auto before = support::read_logs(deep);
  CHECK(before.size() == 4);
  const auto second = lotus::tool_test::run({"recover", run.path().c_str()});
  CHECK(contains(second.out, "recovered 0 records"));
  CHECK(support::read_logs(deep).size() == 4);
  const auto stats = lotus::tool_test::run({"stats", run.path().c_str(), "--json"});
  CHECK(stats.err.empty());
}

TEST_CASE("recover does not touch running processes, and reports them") {
  const support::temp_directory run;
  lotus::options o;
  o.log_file = run.prefix();
  o.drain_interval_ms = 1'000'000;
  REQUIRE(lotus::start(o));
  { LOTUS_SCOPE("Alive"); }
  // The lock of a ring file excludes only other processes, so a child process runs the tool.
  const pid_t pid = fork();
  if (pid == 0) {
    const auto result = lotus::tool_test::run({"recover", run.path().c_str()});
    _exit(result.status == 0 && contains(result.out, "still recording: 1 process\n") ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  lotus::stop();
  CHECK(support::read_logs(run.path()).size() == 1);
}

TEST_CASE("recover reports a missing directory in one line") {
  const auto missing = lotus::tool_test::run({"recover", "/nonexistent"});
  CHECK(missing.status == 1);
  CHECK(contains(missing.err, "no such directory"));
  CHECK(lotus::tool_test::run({"recover"}).status == 2);
}

TEST_CASE("viz shows names, ranks and threads of processes on several hosts") {
  const support::temp_directory run;
  leave_records((run.path() / "node1" / "lotustrace_log").string(), "0");
  leave_records((run.path() / "node2" / "lotustrace_log").string(), "1");
  const auto viz = lotus::tool_test::run({"viz", run.path().c_str(), "-o", "-"});
  CHECK(viz.status == 0);
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  CHECK(contains(viz.out, "node1: " + std::string{host} + ", rank 0, pid "));
  CHECK(contains(viz.out, "node2: " + std::string{host} + ", rank 1, pid "));
  CHECK(contains(viz.out, R"((loader \"7\"))"));
  // Everything must also work without the information files.
  for (const char* node : {"node1", "node2"}) {
    for (const auto& entry : support::fs::directory_iterator(run.path() / node)) {
      if (entry.path().filename().string().rfind(".lotus_info_", 0) == 0) {
        support::fs::remove(entry.path());
      }
    }
  }
  const auto plain = lotus::tool_test::run({"viz", run.path().c_str(), "-o", "-"});
  CHECK(plain.status == 0);
  CHECK(contains(plain.out, "\"node1\""));
}

/// Returns how many lines of a text contain `what`. Line breaks within a sentence are ignored.
std::size_t count_in(std::string text, const std::string& what) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_CASE("every command reports records that were only in a killed process's memory") {
  const support::temp_directory place;
  const std::string run = (place.path() / "run").string();
  const std::string output = (place.path() / "output").string();
  support::fs::create_directory(run);
  support::forged_ring forged;
  forged.records = 5;
  std::string bytes = forged.bytes();
  auto& ring = *reinterpret_cast<lotus::detail::ring_block*>(
      bytes.data() + support::forged_ring::header_bytes + 65536);
  ring.commits[0].in_memory = 1234;
  std::ofstream{run + "/.lotus_ring_1_1", std::ios::binary} << bytes;
  std::ofstream{run + "/.lotus_info_1_1"} << "lotus 0.1.0\npid 1\n";
  const std::string lost = "1,234 records of killed processes existed only in memory and are lost";
  const std::vector<std::vector<std::string>> commands = {
      {"stats", run},
      {"stats", run, "--style", "profile"},
      {"viz", run, "-o", output},
      {"viz", run, "-o", output, "--compat"},
      {"diagnose", run},
      {"report", run, "-o", output},
      {"export", run, "--format", "csv", "-o", output},
      {"export", run, "--format", "pstats", "-o", output},
      {"whatif", run, "--faster", "Forged=2"},
      {"compare", run, run},
      {"map", "join", run},
      {"accelerator", run},
      {"unpack", run, "-o", output}};
  const auto all_report = [&](const char* when) {
    CAPTURE(when);
    for (const std::vector<std::string>& command : commands) {
      CAPTURE(command);
      support::fs::remove_all(output);
      const result said = lotus::tool_test::run(command);
      CAPTURE(said.out, said.err);
      CHECK(count_in(said.err, lost) == 1);
      std::vector<std::string> quiet = command;
      quiet.emplace_back("--quiet");
      support::fs::remove_all(output);
      CHECK(count_in(lotus::tool_test::run(quiet).err, lost) == 1);
    }
    // The last command was `unpack`.
    CHECK(count_in(lotus::tool_test::run({"stats", output}).err, lost) == 1);
    CHECK(count_in(lotus::tool_test::run({"top", run, "--once"}).out, lost) == 1);
    const std::string metrics = (place.path() / "metrics").string();
    lotus::tool_test::run({"top", run, "--once", "--openmetrics", metrics});
    CHECK(contains(support::read_file(metrics), "lotus_lost_records{run=\"" + run + "\"} 1234\n"));
  };
  all_report("before recovery");
  CHECK(contains(lotus::tool_test::run({"recover", run}).err, lost));
  CHECK(support::count_files(run, ".lotus_ring_") == 0);
  all_report("after recovery");
}

TEST_CASE("lost records are reported even if the run has no log, and only once per process") {
  const support::temp_directory place;
  const std::string run = (place.path() / "run").string();
  support::fs::create_directory(run);
  std::ofstream{run + "/.lotus_info_1_1"} << "lotus 0.1.0\npid 1\nlost 1234\n";
  const std::string lost = " records of killed processes existed only in memory and are lost";
  CHECK(contains(lotus::tool_test::run({"stats", run}).err, "1,234" + lost));
  // Recovery keeps a damaged ring file, after it has added the lost records to the information
  // file. The ring file of another process has not been recovered yet.
  support::forged_ring forged;
  std::string bytes = forged.bytes();
  auto& ring = *reinterpret_cast<lotus::detail::ring_block*>(
      bytes.data() + support::forged_ring::header_bytes + 65536);
  ring.commits[0].in_memory = 1234;
  std::ofstream{run + "/.lotus_ring_1_1", std::ios::binary} << bytes;
  ring.commits[0].in_memory = 66;
  std::ofstream{run + "/.lotus_ring_2_2", std::ios::binary} << bytes;
  const std::string err = lotus::tool_test::run({"stats", run, "--json"}).err;
  CAPTURE(err);
  CHECK(count_in(err, lost) == 1);
  CHECK(contains(err, "1,300" + lost));
}
