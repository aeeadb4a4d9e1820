// Spans that were recorded long after their ends are found where they belong, in logs of which only
// a part is read.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_reader.hpp"
#include "log/window/log_window.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using namespace lotus::tool;

namespace fs = std::filesystem;

namespace {

void record(int scopes) {
  for (int i = 0; i < scopes; ++i) LOTUS_SCOPE("Now");
}

/// A span that lies 20 MB before its place in the log, which is no place where a sample is taken.
void record_late(const std::string& dir, bool killed) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    lotus::options o;
    o.log_file = dir + "/lotustrace_log";
    o.cpu_time = false;
    if (!lotus::start(o)) _exit(1);
    record(300'000);
    const auto late = std::chrono::steady_clock::now();
    record(700'000);
    lotus::record_span("Late", late, late + std::chrono::microseconds(1));
    record(300'000);
    if (killed) raise(SIGKILL);
    lotus::stop();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

run_files run_in(const std::string& dir) {
  diagnostic_log silent = diagnostic_log::silenced();
  return find_runs(dir, default_prefix, silent).front();
}

struct looked {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t late_ns = 0;
  std::size_t late = 0;
};

looked look(const run_files& run) {
  looked found;
  diagnostic_log silent = diagnostic_log::silenced();
  for (const log_file& file : run.files) {
    read_log(file, &silent, [&](const log_line& line) {
      found.first_ns = std::min(found.first_ns, line.start_ns);
      if (line.name != "SLate") return;
      found.late_ns = line.start_ns;
      ++found.late;
    });
  }
  return found;
}

/// How often the late span is in what is read for the microseconds around it.
std::size_t found_in_window(const std::string& dir, const looked& all) {
  run_files run = run_in(dir);
  wanted_part part;
  part.from_ns = all.late_ns - all.first_ns - 1000;
  part.to_ns = all.late_ns - all.first_ns + 2000;
  diagnostic_log silent = diagnostic_log::silenced();
  narrow(run, part, silent);
  REQUIRE(run.window);
  return look(run).late;
}

/// As an older version would have left it.
void forget_step_back(const std::string& dir) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::istringstream lines(read_file(entry.path().string()));
    std::ofstream out(entry.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("back ", 0) != 0) out << line << '\n';
    }
  }
}

}  // namespace

TEST_CASE("a span with times of long ago is found in the window where it belongs") {
  const bool killed = GENERATE(false, true);
  CAPTURE(killed);
  const temp_dir dir;
  record_late(dir.path(), killed);
  const looked all = look(run_in(dir.path()));
  REQUIRE(all.late == 1);
  CHECK(found_in_window(dir.path(), all) == 1);
  // Samples alone do not show it: this test would fail without what the process tells.
  forget_step_back(dir.path());
  CHECK(found_in_window(dir.path(), all) == 0);
}

TEST_CASE("how far back spans lie is told once, before the first that lies so far") {
  const temp_dir dir;
  const pid_t child = fork();
  if (child == 0) {
    if (!lotus::start(dir.path() + "/lotustrace_log")) _exit(1);
    const auto now = std::chrono::steady_clock::now();
    lotus::record_span("Old", now - std::chrono::seconds(70), now - std::chrono::seconds(60));
    lotus::record_span("Coming", now, now + std::chrono::seconds(5));
    lotus::record_span("Older", now - std::chrono::seconds(70), now - std::chrono::seconds(65));
    lotus::stop();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::string told;
  for (const std::string& name : dir.names()) {
    if (name.rfind(".lotus_info_", 0) == 0) told = read_file(dir.path() + '/' + name);
  }
  const std::string as_told = "\nback 68719476736\n";  // 2^36, and of what is ahead 2^33
  CHECK(contains(told, as_told));
  CHECK(contains(told, "\nback 77309411328\n"));
  CHECK(told.find("\nback ", told.find("\nback 7") + 1) == std::string::npos);
}
