// Tests the reasons why operations are blocked, with a program that measures the waits itself and
// with files that the test writes.
#include <sys/wait.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "at_once.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "tool/stats/stats_test.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Blocked time in ns as the program measured it, by operation and reason.
using truth = std::map<std::string, std::map<std::string, double>>;

/// A run of the program, which sleeps nearly all the time.
struct program_run {
  std::string name;
  std::string seconds;
  std::string samples_per_s;
  std::string end;
  temp_dir dir{};
  int status = -1;
  truth measured{};  ///< by the program
};

void record(program_run& one) {
  const std::string out = one.dir.path() + "/truth";
  const std::string format = one.name == "compact" ? "LOTUS_FORMAT=compact " : "";
  const std::string command = format + WAITS_PROGRAM " '" + one.dir.path() + "/lotustrace_log' " +
                              one.seconds + ' ' + one.samples_per_s + ' ' + one.end + " > '" + out +
                              '\'';
  one.status = std::system(command.c_str());
  std::ifstream in(out);
  std::string operation;
  std::string reason;
  for (double ns = 0; in >> operation >> reason >> ns;) one.measured[operation][reason] = ns;
}

/// Returns one of the runs, which are recorded when the first of them is needed: two at a time, but
/// the last two alone, because other programs must not use the CPUs meanwhile.
const program_run& run_called(const std::string& name) {
  static const std::deque<program_run> all = [] {
    std::deque<program_run> runs;
    const auto add = [&runs](const char* called, const char* seconds, const char* samples_per_s,
                             const char* end) {
      program_run& added = runs.emplace_back();
      added.name = called;
      added.seconds = seconds;
      added.samples_per_s = samples_per_s;
      added.end = end;
    };
    add("long", support::rounds(2) == 2 ? "8" : "4", "4000", "stop");
    add("kill", "2", "1000", "kill");
    add("fork", "2", "1000", "fork");
    add("compact", "2", "1000", "stop");
    add("none", "0.3", "0", "stop");
    add("sleepers", "2", "1000", "sleepers");
    add("helpers", "2", "1000", "helpers");
    constexpr std::size_t alone = 2;
    lotus_test::at_once(runs.size() - alone, 2, [&runs](std::size_t i) { record(runs[i]); });
    for (std::size_t i = runs.size() - alone; i < runs.size(); ++i) record(runs[i]);
    return runs;
  }();
  for (const program_run& one : all) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

json operations(const temp_dir& dir) {
  return stats(dir.path())["runs"][0]["ops"];
}

std::int64_t samples_of(const json& operation) {
  std::int64_t sum = 0;
  if (!operation.has("blocked_on")) return 0;
  for (const json& one : operation["blocked_on"].array()) sum += one["samples"].integer();
  return sum;
}

/// Returns the names of the files in a folder that record what threads waited for.
std::vector<std::string> wait_files(const temp_dir& dir) {
  std::vector<std::string> found;
  for (const std::string& name : dir.names()) {
    if (name.rfind(".lotus_waits_", 0) == 0) found.push_back(name);
  }
  return found;
}

/// Writes the logs of three workers, which together build a batch every 10 ms. For each batch, a
/// worker waits 20 ms for a lock that the workers share, and then holds the lock for 10 ms.
void write_lock_bound(const temp_dir& dir, const std::string& more_lines) {
  constexpr int batches = 90;
  constexpr int workers = 3;
  std::string info = "lotus 0.1.0\nhost Shere\npid 1\nparent 0\ncpu switches\ncpus 8 -\n";
  std::vector<thread_logs> worker(workers);
  thread_logs consumer;
  std::string samples = "object,1,decoder_mutex\n" + more_lines;
  const auto tid = [](int batch) { return std::to_string(2 + (batch + workers) % workers); };
  const auto sample = [&](std::int64_t at_ms, int batch, int holder) {
    samples += "look," + std::to_string(begin_ns + at_ms * ms) + ',' + tid(batch) +
               ",lock,1,5540," + tid(holder) + ",10000000\n";
  };
  for (int i = 0; i < batches; ++i) {
    thread_logs& of = worker[static_cast<std::size_t>(i % workers)];
    const std::int64_t end_ms = 100 + 10 * (i + 1);
    of.operation("Decode", end_ms - 30, 30);
    of.off_cpu(end_ms - 10, 20, "0");
    of.worker += columns("SBatchPreprocessed_" + std::to_string(i), end_ms - 30, 30) + '\n';
    sample(end_ms - 25, i, i - 2);
    sample(end_ms - 15, i, i - 1);
    consumer.wait(i, end_ms - 9, 9);
    consumer.consumed(i, end_ms);
  }
  dir.file(".lotus_info_1_a", info + "thread 1 S\nthread 2 S\nthread 3 S\nthread 4 S\n");
  dir.file(".lotus_waits_1_a", samples);
  consumer.write(dir, "", 1);
  for (int w = 0; w < workers; ++w) worker[static_cast<std::size_t>(w)].write(dir, "", 2 + w);
}

/// Writes the logs of workers that wait 10 ms for a lock for each batch, and then sleep `sleeps`
/// times for 10 ms. There is a wait sample of each of these intervals.
void write_sleeping(const temp_dir& dir, int workers, int sleeps) {
  const int length_ms = 10 * (1 + sleeps);
  std::vector<thread_logs> worker(static_cast<std::size_t>(workers));
  thread_logs consumer;
  std::string samples;
  std::string info =
      "lotus 0.1.0\nhost Shere\npid 1\nparent 0\ncpu switches\ncpus 8 -\nthread 1 S\n";
  for (int i = 0; i < 45 * workers; ++i) {
    thread_logs& of = worker[static_cast<std::size_t>(i % workers)];
    const std::string sample = ',' + std::to_string(2 + i % workers);
    const std::int64_t end_ms = 100 + length_ms * (i + 1) / workers;
    of.operation("Fetch", end_ms - length_ms, length_ms);
    of.off_cpu(end_ms, length_ms, "0");
    of.worker +=
        columns("SBatchPreprocessed_" + std::to_string(i), end_ms - length_ms, length_ms) + '\n';
    for (int at = 0; at <= sleeps; ++at) {
      const std::int64_t at_ns = begin_ns + (end_ms - length_ms + 10 * at + 5) * ms;
      const std::string holder = std::to_string(2 + (i + 1) % workers);
      samples += "look," + std::to_string(at_ns) + sample +
                 (at == 0 ? ",lock,1,5540," + holder : std::string(",sleep,1,0,0")) + ",10000000\n";
    }
    consumer.wait(i, end_ms - 1, 1);
    consumer.consumed(i, end_ms);
  }
  for (int w = 0; w < workers; ++w) info += "thread " + std::to_string(2 + w) + " S\n";
  dir.file(".lotus_info_1_a", info);
  dir.file(".lotus_waits_1_a", samples);
  consumer.write(dir, "", 1);
  for (int w = 0; w < workers; ++w) worker[static_cast<std::size_t>(w)].write(dir, "", 2 + w);
}

constexpr const char* others_serve = "if what the workers wait for can serve more at once";

/// Returns how many suggestions of more workers are certain.
std::size_t sure_workers(const json& found) {
  std::size_t sure = 0;
  for (const json& move : found["moves"].array()) sure += move["change"].has("workers") ? 1 : 0;
  return sure;
}

/// Returns whether other programs used the CPUs. That makes all suggestions of workers doubtful.
bool workers_are_disturbed(const json& found) {
  return found.has("other_programs_cpus") && found["other_programs_cpus"].number() > 0.2;
}

}  // namespace

TEST_CASE("samples of blocked threads find the share of each wait, and the holder of a lock") {
  const program_run& recorded = run_called("long");
  REQUIRE(recorded.status == 0);
  truth measured = recorded.measured;
  const json ops = operations(recorded.dir);
  // Creating a thread waits too, in clone().
  for (const char* const name : {"Mixed", "Pages"}) {
    if (measured.count(name) == 0) continue;  // this process may not use userfaultfd
    const json operation = ops[std::string("S") + name];
    double all_ns = 0;
    for (const auto& [reason, ns] : measured[name]) all_ns += ns;
    std::map<std::string, double> found;
    for (const json& one : operation["blocked_on"].array()) {
      found[one["reason"].text()] += one["share"].number();
    }
    CAPTURE(name, samples_of(operation));
    CHECK(samples_of(operation) > 300);
    for (const auto& [reason, ns] : measured[name]) {
      CAPTURE(reason, found[reason], ns / all_ns);
      CHECK(std::abs(found[reason] - ns / all_ns) < 0.05);
    }
  }
  bool lock_found = false;
  for (const json& one : ops["SMixed"]["blocked_on"].array()) {
    if (one["reason"].text() != "lock") continue;
    lock_found = true;
    CHECK(one["what"].text().rfind("decoder_mutex (0x", 0) == 0);
    CHECK(one["held_by"].text() == "Hold");
    CHECK(one["held_share"].number() >= 0.95);
    CHECK(one["ns"].integer() <= ops["SMixed"]["blocked_ns"].integer());
    break;  // the first one is the program's; others are of the library or of the C library
  }
  CHECK(lock_found);
  CHECK(ops["SSpawn"]["blocked_on"][0]["reason"].text() == "process");
  const std::string table = run({"stats", recorded.dir.path()}).out;
  CHECK(contains(table, "Spawn waits "));
  CHECK(contains(table, "waits for a child process"));
}

TEST_CASE("samples of waits survive a kill, and a forked child records its own") {
  for (const char* const end : {"kill", "fork"}) {
    CAPTURE(end);
    const program_run& recorded = run_called(end);
    CHECK((std::string(end) == "kill" || recorded.status == 0));
    CHECK(samples_of(operations(recorded.dir)["SMixed"]) > 30);
  }
}

TEST_CASE("compact logs and their conversion keep the samples of waits") {
  const temp_dir& dir = run_called("compact").dir;
  const json mixed = operations(dir)["SMixed"];
  CHECK(samples_of(mixed) > 30);
  const temp_dir text;
  REQUIRE(run({"unpack", dir.path(), "-o", text.path()}).status == 0);
  CHECK(operations(text)["SMixed"]["blocked_on"].canonical() == mixed["blocked_on"].canonical());
}

TEST_CASE("without a budget no waits are sampled") {
  const program_run& recorded = run_called("none");
  CHECK(recorded.status == 0);
  CHECK(wait_files(recorded.dir).empty());
  CHECK_FALSE(operations(recorded.dir)["SMixed"].has("blocked_on"));
}

TEST_CASE("damaged lines are reported in one line, and nothing else is lost") {
  const temp_dir good;
  write_lock_bound(good, "");
  const temp_dir bad;
  write_lock_bound(bad, "look,1,2\nnothing,1,x\nlook,1,1,lock,zz,0,0,0\nobject,0,zero\n,\n");
  CHECK(operations(bad).canonical() == operations(good).canonical());
  const result told = run({"stats", bad.path()});
  CHECK(told.status == 0);
  CHECK(contains(told.err, "_1_a:2: "));
  CHECK(contains(told.err, "5 such lines ignored, all others are used"));
  CHECK(told.err.find("such lines") == told.err.rfind("such lines"));
  CHECK(run({"stats", bad.path(), "--strict"}).status == 1);
  // The last line is incomplete because the process is still writing it, so it must not be
  // reported.
  const temp_dir growing;
  write_lock_bound(growing, "");
  std::ofstream(growing.path() + "/.lotus_waits_1_a", std::ios::app) << "look,17000";
  CHECK(run({"stats", growing.path()}).err.empty());
}

TEST_CASE("of many samples some are used, and stand for the others") {
  const temp_dir dir;
  thread_logs worker;
  worker.operation("Fetch", 0, 1'000'000);
  worker.write(dir, "", 1);
  dir.file(".lotus_info_1_a", "lotus 0.1.0\nhost Shere\npid 1\nparent 0\ncpus 8 -\nthread 1 S\n");
  constexpr std::size_t lines = 400'000;
  std::string samples;
  std::uint32_t random = 1;
  std::size_t sleeps = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    random = random * 1664525 + 1013904223;
    const bool sleep = random < UINT32_MAX / 10 * 3;
    sleeps += sleep ? 1 : 0;
    samples += "look," + std::to_string(begin_ns + static_cast<std::int64_t>(i) * 1000) +
               (sleep ? ",1,sleep,0,0,0,1000\n" : ",1,lock,0,5540,0,1000\n");
  }
  dir.file(".lotus_waits_1_a", samples);
  const json fetch = operations(dir)["SFetch"];
  CHECK(samples_of(fetch) < 300'000);
  CHECK(samples_of(fetch) > 100'000);
  const json slept = fetch["blocked_on"][1];
  CHECK(slept["reason"].text() == "sleep");
  CHECK(std::abs(slept["share"].number() - static_cast<double>(sleeps) / lines) < 0.01);
  CHECK(std::abs(slept["ns"].number() / (1000.0 * static_cast<double>(sleeps)) - 1) < 0.02);
}

TEST_CASE("two threads that sleep under a lock as often as they wait for it are lock-bound") {
  const temp_dir dir;
  write_sleeping(dir, 2, 1);
  const result found = run({"diagnose", dir.path()});
  INFO(found.out);
  CHECK(contains(found.out, "A lock is the bottleneck"));
  CHECK(contains(run({"stats", dir.path()}).out,
                 "Fetch waits for a lock held by Fetch on other threads during 50 % "));
}

TEST_CASE("a lock for which one of many threads waits is not the bottleneck") {
  const temp_dir dir;
  write_sleeping(dir, 8, 5);
  const result found = run({"diagnose", dir.path()});
  INFO(found.out);
  CHECK_FALSE(contains(found.out, "lock-bound"));
  CHECK(
      contains(run({"stats", dir.path()}).out, "Fetch sleeps during 83 % of its time and waits "));
}

TEST_CASE("more workers are doubtful if preprocessing waits for threads that do its work") {
  const program_run& recorded = run_called("helpers");
  REQUIRE(recorded.status == 0);
  const result r = run({"diagnose", recorded.dir.path(), "--json"});
  const json found = parse_json(r.out);
  CAPTURE(r.out);
  if (workers_are_disturbed(found)) return lotus_test::skip("other programs use the CPUs");
  CHECK(sure_workers(found) == 0);
  // The text gives one of two reasons for the doubt: that the workers wait for other threads, or
  // only the result of the simulation.
  const std::string text = found["possible"][0]["text"].text();
  CHECK((contains(text, others_serve) || contains(text, " do not wait for each other")));
  CHECK(found["possible"][0]["low"].number() <= found["achieved_batches_per_s"].number());
}

TEST_CASE("more workers are not doubtful if preprocessing only sleeps") {
  const temp_dir again;
  std::string folder = run_called("sleepers").dir.path();
  REQUIRE(run_called("sleepers").status == 0);
  // About one of 20 recordings looks by chance as if the workers waited for each other.
  for (int more = 3;; --more) {
    const result r = run({"diagnose", folder, "--json"});
    const json found = parse_json(r.out);
    CAPTURE(r.out);
    if (workers_are_disturbed(found)) return lotus_test::skip("other programs use the CPUs");
    for (const json& move : found["possible"].array()) {
      CHECK_FALSE(contains(move["text"].text(), others_serve));
    }
    if (sure_workers(found) > 0) return;
    REQUIRE(more > 0);
    folder = again.path() + '/' + std::to_string(more);
    std::filesystem::create_directory(folder);
    REQUIRE(std::system(
                (WAITS_PROGRAM " '" + folder + "/lotustrace_log' 2 1000 sleepers").c_str()) == 0);
  }
}

TEST_CASE("preprocessing that waits for one lock is lock-bound") {
  const temp_dir dir;
  write_lock_bound(dir, "");
  const result text = run({"diagnose", dir.path()});
  INFO(text.out);
  CHECK_FALSE(contains(text.out, "lotus-tool threads"));
  // `run` also samples threads. Then `threads` shows where in the code they wait.
  dir.file(".lotus_threads_1_1", "");
  CHECK(contains(run({"diagnose", dir.path()}).out, "lotus-tool threads"));
  const json found = parse_json(run({"diagnose", dir.path(), "--json"}).out);
  CHECK(found["verdict"].text() == "lock-bound");
  CHECK(found["bound_by"]["kind"].text() == "lock");
  CHECK(found["bound_by"]["name"].text() == "decoder_mutex (0x5540)");
  CHECK(contains(found["sentence"].text(),
                 "Decode waits for the lock decoder_mutex held by Decode on other threads: 67 %"));
  for (const char* const list : {"moves", "possible"}) {
    for (const json& move : found[list].array()) CHECK_FALSE(move["change"].has("workers"));
  }
  CHECK(contains(text.out, "A lock is the bottleneck"));
  const json one = found["blocked_on"]["ops"]["Decode"][0];
  CHECK(one["held_by"].text() == "Decode");
  CHECK(one["samples"].integer() == 180);
  CHECK(operations(dir)["SDecode"]["blocked_on"][0]["ns"].integer() == 90 * 20 * ms);
  CHECK(contains(
      run({"stats", dir.path()}).out,
      "Decode waits for the lock decoder_mutex held by Decode on other threads during 67 % "));
  CHECK(run({"diagnose", dir.path(), "--fail-if", "lock-bound"}).status == 3);
}
