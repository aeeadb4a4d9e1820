// Tests that scopes and stages with the name Copy count as copies of batches to the accelerator.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "accelerator/recorded_waits.hpp"
#include "accelerator/trace/device_trace.hpp"
#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/lotus.hpp"
#include "model/run_data.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using namespace lotus::tool;

namespace {

constexpr int batches = 5;

void wait_for(int i) {
  LOTUS_BATCH_WAIT(i);
}

/// Records a consumer that copies every batch. Each call records in a new child process.
template <class Copy>
void record(const std::string& dir, Copy copy) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    lotus::options o;
    o.log_file = dir + "/lotustrace_log";
    if (!lotus::start(o)) _exit(1);
    for (int i = 0; i < batches; ++i) {
      wait_for(i);
      LOTUS_BATCH_CONSUMED(i);
      copy(i);
    }
    lotus::stop();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
}

std::size_t copies_in(const std::string& dir) {
  diagnostic_log silent = diagnostic_log::silenced();
  const run_files files = find_runs(dir, default_prefix, silent).front();
  run_parts parts;
  parts.operations = true;
  const run_data run = read_run(files, parts, silent);
  const recorded_waits found = find_recorded_waits(run, device_trace());
  CHECK(found.batches.size() == batches);
  return static_cast<std::size_t>(
      std::count_if(found.ranges.begin(), found.ranges.end(), [](const recorded_range& r) {
        CHECK(r.start_ns <= r.end_ns);
        return r.cause == idle_cause::copy;
      }));
}

}  // namespace

TEST_CASE("a scope named Copy on the consumer's thread counts as a copy") {
  const temp_dir dir;
  record(dir.path(), [](int) { LOTUS_SCOPE("Copy"); });
  CHECK(copies_in(dir.path()) == batches);
}

TEST_CASE("a stage named Copy on the consumer's thread counts as a copy") {
  const temp_dir dir;
  record(dir.path(), [](int i) { LOTUS_STAGE("Copy", i); });
  CHECK(copies_in(dir.path()) == batches);
}

TEST_CASE("scopes with other names or on other threads do not count as copies") {
  const temp_dir dir;
  record(dir.path(), [](int) {
    LOTUS_SCOPE("CopyFile");
    std::thread([] { LOTUS_SCOPE("Copy"); }).join();
  });
  CHECK(copies_in(dir.path()) == 0);
}
