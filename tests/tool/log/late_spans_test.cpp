// Tests spans that were recorded long after their end. If only a part of the logs is read, these
// spans must still be found at their own time.
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

/// Records a span long after its end: in the meantime, the log grows by 20 MB. To find out whether
/// records are late, the tool examines only small parts of a log, and this span is in none of them.
void record_late(const std::string& dir, bool killed) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
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

/// Returns how often the late span is found if only the microseconds around it are read.
std::size_t found_in_window(const std::string& dir, const looked& all) {
  run_files run = run_in(dir);
  wanted_part part;
  part.from = window_end{all.late_ns - all.first_ns - 1000};
  part.to = window_end{all.late_ns - all.first_ns + 2000};
  diagnostic_log silent = diagnostic_log::silenced();
  narrow(run, part, silent);
  REQUIRE(run.window);
  return look(run).late;
}

/// Removes the information about late spans, as if an older version had written the log.
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

TEST_CASE("a span recorded long after its end is found in the window of its time") {
  const bool killed = GENERATE(false, true);
  CAPTURE(killed);
  const temp_dir dir;
  record_late(dir.path(), killed);
  const looked all = look(run_in(dir.path()));
  REQUIRE(all.late == 1);
  CHECK(found_in_window(dir.path(), all) == 1);
  // If the information file does not say how long after their ends spans were recorded, the tool
  // cannot find the late span.
  forget_step_back(dir.path());
  CHECK(found_in_window(dir.path(), all) == 0);
}

TEST_CASE("the information file has each new maximum of how far back spans lie, once") {
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
  std::string reported;
  for (const std::string& name : dir.names()) {
    if (name.rfind(".lotus_info_", 0) == 0) reported = read_file(dir.path() + '/' + name);
  }
  // A line "back" contains the sum of two distances, each rounded up to a power of 2: 2^36 ns (69
  // s) for Old, which was recorded 60 s after its end, and 2^33 ns (9 s) for Coming, which was
  // recorded 5 s before its end.
  const std::string as_reported = "\nback 68719476736\n";
  CHECK(contains(reported, as_reported));
  CHECK(contains(reported, "\nback 77309411328\n"));
  CHECK(reported.find("\nback ", reported.find("\nback 7") + 1) == std::string::npos);
}
