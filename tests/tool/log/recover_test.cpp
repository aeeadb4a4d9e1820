// Tests ring files that killed processes left behind: every command must count their records, and
// `recover` must write them to the logs. Also tests the information files of processes.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "catch.hpp"
#include "cli/cli.hpp"
#include "forged_ring.hpp"
#include "lotus/lotus.hpp"
#include "lotus/record/ring_layout.hpp"
#include "support.hpp"

namespace {

struct outcome {
  int status;
  std::string out;
  std::string err;
};

outcome run_tool(const std::vector<const char*>& arguments) {
  std::vector<const char*> argv = {"lotus-tool"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::ostringstream out;
  std::ostringstream err;
  const int status = lotus::tool::run_cli(static_cast<int>(argv.size()), argv.data(), out, err);
  return {status, out.str(), err.str()};
}

bool contains(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

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
  const auto stats = run_tool({"stats", run.path().c_str(), "--json"});
  CHECK(stats.status == 0);
  CHECK(contains(stats.err, "4 records of killed processes are counted in"));
  CHECK(contains(stats.out, "SLoader"));
  CHECK(contains(stats.out, "SCrop, twice"));
  const auto viz = run_tool({"viz", run.path().c_str(), "-o", "-"});
  CHECK(viz.status == 0);
  CHECK(contains(viz.out, "\"name\":\"step\""));
  // Reading a ring file must not change the directory.
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 1);
  CHECK(support::count_files(run.path(), "lotustrace_log") == 0);
}

TEST_CASE("the check 'dropped' fails until a killed process is recovered") {
  const support::temp_directory run;
  leave_records(run.prefix());
  const auto before = run_tool({"stats", run.path().c_str(), "--json"});
  CHECK(contains(before.out, "{\"id\":\"dropped\",\"text\":\"a process was killed"));
  CHECK(contains(before.out, "lotus-tool recover"));
  CHECK(run_tool({"recover", run.path().c_str()}).status == 0);
  CHECK_FALSE(
      contains(run_tool({"stats", run.path().c_str(), "--json"}).out, "\"id\":\"dropped\""));
}

TEST_CASE("recover writes the records of killed processes to the logs once") {
  const support::temp_directory run;
  const auto deep = run.path() / "b8_gpu1";
  leave_records((deep / "lotustrace_log").string());
  const auto first = run_tool({"recover", run.path().c_str()});
  CHECK(first.status == 0);
  CHECK(contains(first.out, "recovered 4 records of 1 process\n"));
  const auto before = support::read_logs(deep);
  CHECK(before.size() == 4);
  const auto second = run_tool({"recover", run.path().c_str()});
  CHECK(contains(second.out, "recovered 0 records"));
  CHECK(support::read_logs(deep).size() == 4);
  const auto stats = run_tool({"stats", run.path().c_str(), "--json"});
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
    const auto result = run_tool({"recover", run.path().c_str()});
    _exit(result.status == 0 && contains(result.out, "still recording: 1 process\n") ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  lotus::stop();
  CHECK(support::read_logs(run.path()).size() == 1);
}

TEST_CASE("recover reports a missing directory in one line") {
  const auto missing = run_tool({"recover", "/nonexistent"});
  CHECK(missing.status == 1);
  CHECK(contains(missing.err, "no such directory"));
  CHECK(run_tool({"recover"}).status == 2);
}

TEST_CASE("viz shows names, ranks and threads of processes on several hosts") {
  const support::temp_directory run;
  leave_records((run.path() / "node1" / "lotustrace_log").string(), "0");
  leave_records((run.path() / "node2" / "lotustrace_log").string(), "1");
  const auto viz = run_tool({"viz", run.path().c_str(), "-o", "-"});
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
  const auto plain = run_tool({"viz", run.path().c_str(), "-o", "-"});
  CHECK(plain.status == 0);
  CHECK(contains(plain.out, "\"node1\""));
}

TEST_CASE("every command reports records that were only in a killed process's memory") {
  const support::temp_directory run;
  support::forged_ring forged;
  forged.records = 5;
  std::string bytes = forged.bytes();
  auto& ring = *reinterpret_cast<lotus::detail::ring_block*>(
      bytes.data() + support::forged_ring::header_bytes + 65536);
  ring.commits[0].in_memory = 1234;
  std::ofstream{run.path() / ".lotus_ring_1_1", std::ios::binary} << bytes;
  std::ofstream{run.path() / ".lotus_info_1_1"} << "lotus 0.1.0\npid 1\n";
  const std::string lost = "1,234 records of killed processes existed only in memory and are lost";
  CHECK(contains(run_tool({"stats", run.path().c_str()}).err, lost));
  CHECK(contains(run_tool({"viz", run.path().c_str(), "-o", "-"}).err, lost));
  CHECK(contains(run_tool({"recover", run.path().c_str()}).err, lost));
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
  CHECK(contains(run_tool({"stats", run.path().c_str()}).err, lost));
  CHECK(contains(run_tool({"viz", run.path().c_str(), "-o", "-"}).err, lost));
}
