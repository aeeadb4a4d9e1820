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
  const std::vector<std::vector<const char*>> commands = {
      {"stats", run.c_str()},
      {"stats", run.c_str(), "--style", "profile"},
      {"viz", run.c_str(), "-o", output.c_str()},
      {"viz", run.c_str(), "-o", output.c_str(), "--compat"},
      {"diagnose", run.c_str()},
      {"report", run.c_str(), "-o", output.c_str()},
      {"export", run.c_str(), "--format", "csv", "-o", output.c_str()},
      {"export", run.c_str(), "--format", "pstats", "-o", output.c_str()},
      {"whatif", run.c_str(), "--faster", "Forged=2"},
      {"compare", run.c_str(), run.c_str()},
      {"map", "join", run.c_str()},
      {"accelerator", run.c_str()},
      {"unpack", run.c_str(), "-o", output.c_str()}};
  const auto all_report = [&](const char* when) {
    CAPTURE(when);
    for (const std::vector<const char*>& command : commands) {
      CAPTURE(command);
      support::fs::remove_all(output);
      const outcome said = run_tool(command);
      CAPTURE(said.out, said.err);
      CHECK(count_in(said.err, lost) == 1);
      std::vector<const char*> quiet = command;
      quiet.push_back("--quiet");
      support::fs::remove_all(output);
      CHECK(count_in(run_tool(quiet).err, lost) == 1);
    }
    // The last command was `unpack`.
    CHECK(count_in(run_tool({"stats", output.c_str()}).err, lost) == 1);
    CHECK(count_in(run_tool({"top", run.c_str(), "--once"}).out, lost) == 1);
    const std::string metrics = (place.path() / "metrics").string();
    run_tool({"top", run.c_str(), "--once", "--openmetrics", metrics.c_str()});
    CHECK(contains(support::read_file(metrics), "lotus_lost_records{run=\"" + run + "\"} 1234\n"));
  };
  all_report("before recovery");
  CHECK(contains(run_tool({"recover", run.c_str()}).err, lost));
  CHECK(support::count_files(run, ".lotus_ring_") == 0);
  all_report("after recovery");
}

TEST_CASE("lost records are reported even if the run has no log, and only once per process") {
  const support::temp_directory place;
  const std::string run = (place.path() / "run").string();
  support::fs::create_directory(run);
  std::ofstream{run + "/.lotus_info_1_1"} << "lotus 0.1.0\npid 1\nlost 1234\n";
  const std::string lost = " records of killed processes existed only in memory and are lost";
  CHECK(contains(run_tool({"stats", run.c_str()}).err, "1,234" + lost));
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
  const std::string err = run_tool({"stats", run.c_str(), "--json"}).err;
  CAPTURE(err);
  CHECK(count_in(err, lost) == 1);
  CHECK(contains(err, "1,300" + lost));
}
