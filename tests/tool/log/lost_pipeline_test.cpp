// Tests that the tool reads records about loaders, stages and CPU time, both from logs and from the
// ring files of a killed process.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using lotus::tool_test::json;
using lotus::tool_test::parse_json;
using lotus::tool_test::run;

namespace {

/// Records in a child process, which either is killed before it writes anything or ends normally.
template <class Work>
void in_recording_child(const std::string& prefix, bool killed, Work&& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    lotus::options o;
    o.log_file = prefix;
    o.drain_interval_ms = 1'000'000;
    lotus::start(o);
    usleep(400'000);  // waits until the drains shortly after start() are over
    work();
    if (killed) raise(SIGKILL);
    lotus::stop();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

void one_batch(std::int64_t i) {
  {
    LOTUS_STAGE("Decode", i);
    LOTUS_SCOPE("Huffman");
  }
  {
    LOTUS_STAGE("Collate", i);
    LOTUS_BATCH_TAKES(i, i);
  }
  LOTUS_COUNTER("queue", -i);
  { LOTUS_BATCH_WAIT(i); }
  LOTUS_BATCH_CONSUMED(i);
}

void check_run(const json& of, std::int64_t batches) {
  CHECK(of["stages"]["Decode"]["count"].integer() == batches);
  CHECK(of["stages"]["Collate"]["count"].integer() == batches);
  CHECK(of["ops"]["SHuffman"]["count"].integer() == batches);
  CHECK(of["counters"]["queue"]["min"].integer() == 1 - batches);
  CHECK(of["delay"]["count"].integer() == batches);
  CHECK(static_cast<std::int64_t>(of["batches"].size()) == batches);
}

/// Removes the list of checks from JSON output. One of the checks reports killed processes, so its
/// result is different for a finished process.
std::string without_checks(std::string text) {
  for (std::size_t at = 0; (at = text.find("\"checks\":[", at)) != std::string::npos;) {
    text.erase(at, text.find(']', at) + 1 - at);
  }
  return text;
}

}  // namespace

TEST_CASE("the tool reads loaders and stages of a finished and of a killed process") {
  const bool killed = GENERATE(false, true);
  CAPTURE(killed);
  const support::temp_directory place;
  in_recording_child(place.prefix(), killed, [] {
    for (std::int64_t i = 0; i < 5; ++i) one_batch(i);
    LOTUS_LOADER("val/1");
    for (std::int64_t i = 0; i < 3; ++i) one_batch(i);
  });
  const auto before = run({"stats", place.path().string(), "--json"});
  INFO(before.err);
  REQUIRE(before.status == 0);
  const json document = parse_json(before.out);
  REQUIRE(document["runs"].size() == 2);
  check_run(document["runs"][0], 5);
  CHECK(document["runs"][1]["loader"].canonical() == "\"val/1\"");
  check_run(document["runs"][1], 3);
  // After recovery, the result must be the same.
  REQUIRE(run({"recover", place.path().string()}).status == 0);
  const auto after = run({"stats", place.path().string(), "--json"});
  CHECK(without_checks(after.out) == without_checks(before.out));
}

TEST_CASE("the tool shows the CPU time of operations that compute and that sleep") {
  const support::temp_directory place;
  in_recording_child(place.prefix(), false, [] {
    for (int i = 0; i < 20; ++i) {
      LOTUS_SCOPE("Outer");
      {
        LOTUS_SCOPE("Sleep");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      {
        LOTUS_SCOPE("Burn");
        timespec begin{};
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        do {
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec <
                 5'000'000);
      }
    }
  });
  const auto r = lotus::tool_test::run_well({"stats", place.path().string(), "--json"});
  const json document = parse_json(r.out);
  const json& ops = document["runs"][0]["ops"];
  if (!lotus::tool_test::contains(r.out, "\"cpu_ns\"")) {
    WARN("skipped: this kernel or C library tells of no context switches");
    return;
  }
  for (const char* const name : {"SOuter", "SBurn", "SSleep"}) {
    const json& op = ops[name];
    CHECK(op["cpu_ns"].integer() + op["run_queue_ns"].integer() + op["blocked_ns"].integer() ==
          op["total_ns"].integer());
  }
  // The limits are wide, because a busy machine or a hypervisor takes time as well.
  // cpu_time_test.cpp checks CPU time exactly.
  constexpr double ms = 1e6;
  const double burnt = ops["SBurn"]["cpu_ns"].number();
  const double slept = ops["SSleep"]["cpu_ns"].number();
  CHECK(burnt > 99 * ms);
  CHECK(slept < burnt / 2);
  CHECK(ops["SSleep"]["blocked_ns"].number() > 60 * ms);
  CHECK(ops["SOuter"]["cpu_ns"].number() >= burnt + slept);
  CHECK(ops["SOuter"]["cpu_ns"].number() < burnt + slept + 20 * ms);
}
