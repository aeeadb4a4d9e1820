// Tests the stacks of waiting threads, with programs that wait in known functions.
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "tool/stats/stats_test.hpp"
#include "tool/tool_test.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/stacks/unwound_stacks.hpp"

using namespace lotus::tool_test;
namespace fs = std::filesystem;
namespace tool = lotus::tool;

namespace {

/// For each reason for waiting, the function of the test program that waits for this reason.
const std::map<std::string, std::string> waiting_functions{{"lock", "lock_decoder"},
                                                           {"condition", "await_change"},
                                                           {"sleep", "pause_reader"},
                                                           {"pipe", "read_frame"}};

std::vector<std::string> programs() {
  std::vector<std::string> all;
  std::istringstream text(STACKS_PROGRAMS);
  for (std::string one; std::getline(text, one, ',');) all.push_back(one);
  return all;
}

std::string program_named(const std::string& end) {
  for (const std::string& one : programs()) {
    if (one.size() >= end.size() && one.compare(one.size() - end.size(), end.size(), end) == 0) {
      return one;
    }
  }
  FAIL("no program " << end);
  return {};
}

/// Removes the build id from a copy of a program, as if its linker had stored none.
void remove_build_id(const std::string& program) {
  constexpr char note[]{3, 0, 0, 0, 'G', 'N', 'U', 0};  // its type and its owner
  std::string text = read_file(program);
  const std::size_t at = text.find(std::string(note, sizeof note));
  if (at == std::string::npos) return;  // it has none
  text[at] = 'x';
  std::ofstream(program, std::ios::binary) << text;
}

int run_program(const std::string& program, const temp_dir& dir, const std::string& seconds,
                const std::string& samples_per_s, const std::string& end) {
  const std::string command = '\'' + program + "' '" + dir.path() + "/run/lotustrace_log' " +
                              seconds + ' ' + samples_per_s + ' ' + end;
  return std::system(command.c_str());
}

std::string run_of(const temp_dir& dir) {
  return dir.path() + "/run";
}

/// A run of each program, all recorded at the same time, because they hardly use the CPUs.
class runs_of_all {
 public:
  runs_of_all(const std::string& seconds, const std::string& samples_per_s, const std::string& end)
      : programs_(programs()), dirs_(programs_.size()) {
    std::vector<std::future<int>> status;
    for (std::size_t i = 0; i < dirs_.size(); ++i) {
      status.push_back(std::async(std::launch::async, [this, i, seconds, samples_per_s, end] {
        return run_program(programs_[i], dirs_[i], seconds, samples_per_s, end);
      }));
    }
    for (std::future<int>& one : status) REQUIRE(one.get() == 0);
  }

  std::size_t count() const { return programs_.size(); }
  const std::string& program(std::size_t i) const { return programs_[i]; }
  const temp_dir& dir(std::size_t i) const { return dirs_[i]; }

 private:
  std::vector<std::string> programs_;
  std::vector<temp_dir> dirs_;
};

/// A run whose batches are limited by a lock, recorded once for all test cases.
std::string run_limited_by_lock() {
  static const temp_dir dir;
  static const int status = run_program(program_named("stacks_o2"), dir, "2", "4000", "batches");
  REQUIRE(status == 0);
  return run_of(dir);
}

std::vector<std::string> stack_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(".lotus_stacks_", 0) == 0) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Number of all stacks, of those that contain the function that waits, and of those that also
/// contain the callers of this function.
struct reached {
  int all = 0;
  int function = 0;
  int callers = 0;
};

/// @return by reason.
std::map<std::string, reached> reached_functions(const std::string& folder) {
  std::ostringstream err;
  tool::diagnostic_log diagnostics(err, false);
  const std::vector<tool::run_files> runs =
      tool::find_runs(folder, tool::default_prefix, diagnostics);
  REQUIRE(runs.size() == 1);
  const std::vector<tool::process_waits> processes = tool::read_waits(runs[0], diagnostics);
  tool::unwound_stacks stacks(runs[0], diagnostics);
  for (const tool::process_waits& process : processes) {
    for (const tool::wait_sample& sample : process.samples) {
      if (sample.stack != 0) stacks.add(process.ending, sample.stack);
    }
  }
  stacks.name_all();
  std::map<std::string, reached> found;
  std::map<std::uint64_t, std::string> reason_of_thread;
  for (const tool::process_waits& process : processes) {
    for (const tool::wait_sample& sample : process.samples) {
      const std::string reason =
          lotus::detail::wait_reason_words[static_cast<std::size_t>(sample.reason)];
      const auto function = waiting_functions.find(reason);
      if (sample.stack == 0 || function == waiting_functions.end()) continue;
      const std::vector<std::string> calls = stacks.of(process.ending, sample.stack);
      const bool is_start = std::find(calls.begin(), calls.end(), "lotus::start") != calls.end();
      if (is_start || sample.tid == 0) continue;
      reached& to = found[reason];
      ++to.all;
      const auto at = std::find(calls.begin(), calls.end(), function->second);
      if (at == calls.end()) continue;
      ++to.function;
      const std::string outer = "outer_" + function->second;
      if (calls.end() - at >= 4 && std::count(at + 1, at + 4, outer) == 3) ++to.callers;
    }
  }
  CHECK(err.str().empty());
  return found;
}

/// Returns the entry for `reason` in the list of what an operation was blocked on.
json entry_of(const std::string& folder, const std::string& operation, const std::string& reason) {
  for (const json& one : stats(folder)["runs"][0]["ops"][operation]["blocked_on"].array()) {
    if (one["reason"].text() == reason) return one;
  }
  FAIL(operation << " was not blocked on " << reason);
  return parse_json("{}");
}

std::string snapshot_in(const temp_dir& dir) {
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    if (contains(entry.path().filename().string(), ".snapshot-")) return entry.path().string();
  }
  FAIL("no snapshot");
  return {};
}

std::vector<std::string> texts(const json& list) {
  std::vector<std::string> all;
  for (const json& one : list.array()) all.push_back(one.text());
  return all;
}

}  // namespace

TEST_CASE("stacks of waiting threads reach the functions of the program") {
  const runs_of_all recorded("3", "4000", "stop");
  for (std::size_t i = 0; i < recorded.count(); ++i) {
    const std::string& program = recorded.program(i);
    const bool with_frame_pointer = contains(program, "stacks_o0");
    const double least = with_frame_pointer ? 0.9 : 0.95;
    std::map<std::string, reached> found = reached_functions(run_of(recorded.dir(i)));
    for (const auto& [reason, function] : waiting_functions) {
      const reached of = found[reason];
      CAPTURE(program, reason, of.all, of.function, of.callers);
      CHECK(of.all >= 50);
      CHECK(of.function >= least * of.all);
      CHECK(of.callers >= least * of.all);
    }
  }
}

TEST_CASE("the most frequent calls of each wait are in the JSON of stats") {
  const temp_dir dir;
  REQUIRE(run_program(program_named("stacks_o2"), dir, "1", "4000", "stop") == 0);
  const std::map<std::string, std::pair<std::string, std::string>> operations{
      {"SLock", {"lock", "lock_decoder"}},
      {"SCondition", {"condition", "await_change"}},
      {"SSleep", {"sleep", "pause_reader"}},
      {"SPipe", {"pipe", "read_frame"}}};
  for (const auto& [operation, wait] : operations) {
    const std::vector<std::string> calls =
        texts(entry_of(run_of(dir), operation, wait.first)["stack"]);
    CAPTURE(operation, calls);
    const auto at = std::find(calls.begin(), calls.end(), wait.second);
    REQUIRE(at != calls.end());
    CHECK(at - calls.begin() <= 4);  // before it are only calls of the C++ library
    CHECK(at != calls.begin());
    CHECK(*(at + 1) == "outer_" + wait.second);
  }
}

TEST_CASE("diagnose shows the calls that wait for the lock that limits a run") {
  const std::string folder = run_limited_by_lock();
  const json found = parse_json(run({"diagnose", folder, "--json"}).out);
  REQUIRE(found["verdict"].text() == "lock-bound");
  bool seen = false;
  for (const json& one : found["blocked_on"]["ops"]["Decode"].array()) {
    if (one["reason"].text() != "lock" || !one.has("stack")) continue;
    const std::vector<std::string> calls = texts(one["stack"]);
    seen = seen || std::find(calls.begin(), calls.end(), "decode_under_lock") != calls.end();
  }
  CHECK(seen);
  const std::string details = run({"diagnose", folder, "--details"}).out;
  INFO(details);
  CHECK(contains(details, "Decode waits for the lock decoder_mutex held by Decode on other"));
  CHECK(contains(details, "called by decode_under_lock, called by"));
  // The first screen names the function in which the holder waits, but not the calls.
  CHECK_FALSE(contains(run({"diagnose", folder}).out, ", called by"));
}

TEST_CASE("a file of stacks has mode 0600 and contains nothing of the program's data") {
  for (const char* const end : {"kill", "limit"}) {
    CAPTURE(end);
    const temp_dir dir;
    run_program(program_named("stacks_o0"), dir, "2", "4000", end);
    const std::vector<std::string> files = stack_files(run_of(dir));
    REQUIRE_FALSE(files.empty());
    for (const std::string& path : files) {
      struct stat status {};
      REQUIRE(::stat(path.c_str(), &status) == 0);
      CHECK((status.st_mode & 0777U) == 0600);
      const std::string text = read_file(path);
      CHECK(contains(text, "\nstack,"));
      CHECK_FALSE(contains(text, "HIDDEN"));
      // The words of the stack are in the file as hexadecimal numbers.
      const std::string secret = "HIDDENxyHIDDENxy";
      for (std::size_t i = 0; i < 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, secret.data() + i, sizeof word);
        std::ostringstream number;
        number << std::hex << word;
        CHECK_FALSE(contains(text, number.str()));
      }
    }
  }
}

TEST_CASE("stacks survive a kill, and unpack keeps them") {
  const temp_dir dir;
  CHECK(run_program(program_named("stacks_o2"), dir, "1", "4000", "kill") != 0);
  const auto calls = [](const std::string& folder) {
    return texts(entry_of(folder, "SLock", "lock")["stack"]);
  };
  const std::vector<std::string> expected = calls(run_of(dir));
  CHECK(std::find(expected.begin(), expected.end(), "lock_decoder") != expected.end());
  const temp_dir text;
  REQUIRE(run({"unpack", run_of(dir), "-o", text.path()}).status == 0);
  CHECK(calls(text.path()) == expected);
}

TEST_CASE("damaged lines of stacks are reported in one line, and nothing else is lost") {
  const temp_dir dir;
  REQUIRE(run_program(program_named("stacks_o2"), dir, "1", "4000", "stop") == 0);
  const std::vector<std::string> files = stack_files(run_of(dir));
  REQUIRE(files.size() == 1);
  const std::string good = stats(run_of(dir))["runs"][0]["ops"].canonical();
  const std::string text = read_file(files[0]);
  // Makes the file end as if the process had been killed while it wrote the last line.
  fs::resize_file(files[0], text.size() - 3);
  CHECK(run({"stats", run_of(dir), "--json"}).err.empty());
  std::ofstream(files[0]) << text << "stack,1,zz,1,1,\nstack,1,1,1,ffff,\nnothing\n"
                          << "stack,fffff,1,1,8, 9:1\ncode,5,1,0,0,/x\n";
  const result told = run({"stats", run_of(dir), "--json"});
  CHECK(contains(told.err, "not a stack; 5 such lines ignored, all others are used"));
  CHECK(stats(run_of(dir))["runs"][0]["ops"].canonical() == good);
}

TEST_CASE("another build of a program gives no wrong names, and the same build gives all") {
  for (const bool has_id : {true, false}) {
#ifdef LOTUS_TEST_BRIEFLY
    if (!has_id) break;
#endif
    CAPTURE(has_id);
    const temp_dir dir;
    const std::string program = dir.path() + "/program";
    const auto replace = [&](const std::string& by) {
      fs::copy_file(by, dir.path() + "/new");
      if (!has_id) remove_build_id(dir.path() + "/new");
      fs::rename(dir.path() + "/new", program);
    };
    replace(program_named("stacks_o2"));
    REQUIRE(run_program(program, dir, "2", "4000", "batches") == 0);
    const auto calls = [&dir] { return texts(entry_of(run_of(dir), "SDecode", "lock")["stack"]); };
    const auto lock = [&dir] { return entry_of(run_of(dir), "SDecode", "lock")["what"].text(); };
    const std::vector<std::string> expected = calls();
    CHECK(std::find(expected.begin(), expected.end(), "decode_under_lock") != expected.end());
    CHECK(contains(lock(), "decoder_mutex"));
    replace(program_named("stacks_o2"));
    CHECK(run({"stats", run_of(dir), "--json"}).err.empty());
    CHECK(calls() == expected);
    replace(program_named("stacks_o0"));
    CHECK(run({"stats", run_of(dir), "--json"}).err ==
          "warning: " + program +
              ": was built again since the recording, so its functions have no "
              "names\n");
    const std::vector<std::string> unknown = calls();
    CHECK(std::find(unknown.begin(), unknown.end(), "decode_under_lock") == unknown.end());
    CHECK(contains(lock(), "program+0x"));
  }
}

TEST_CASE("after lotus-tool run, a program that is removed or built again changes nothing") {
  const temp_dir dir;
  const std::string program = dir.path() + "/program";
  fs::copy_file(program_named("stacks_o2"), program);
  REQUIRE(std::system(("'" + std::string(LOTUS_TOOL_PROGRAM) + "' run -q --dir '" + run_of(dir) +
                       "' -- '" + program + "' '" + run_of(dir) + "/lotustrace_log' 2 4000 batches")
                          .c_str()) == 0);
  const auto ops = [&dir] { return stats(run_of(dir))["runs"][0]["ops"].canonical(); };
  const std::string expected = ops();
  CHECK(contains(expected, "decode_under_lock"));
  CHECK(contains(expected, "decoder_mutex"));
  fs::remove(program);
  CHECK(ops() == expected);
  fs::copy_file(program_named("stacks_o0"), program);
  CHECK(run({"stats", run_of(dir), "--json"}).err.empty());
  CHECK(ops() == expected);
}

TEST_CASE("a snapshot because of a hang shows which function hangs, and what all threads do") {
  const runs_of_all recorded("60", "100", "hang");
  for (std::size_t i = 0; i < recorded.count(); ++i) {
    CAPTURE(recorded.program(i));
    const temp_dir& dir = recorded.dir(i);
    const std::string snapshot = snapshot_in(dir);
    for (const std::string& path : stack_files(snapshot)) {
      struct stat status {};
      REQUIRE(::stat(path.c_str(), &status) == 0);
      CHECK((status.st_mode & 0777U) == 0600);
    }
    const json threads = stats(snapshot)["runs"][0]["threads_at_snapshot"];
    CAPTURE(threads.canonical());
    bool waits = false;
    bool hangs = false;
    bool runs = false;
    for (const json& thread : threads.array()) {
      const std::vector<std::string> calls =
          thread.has("stack") ? texts(thread["stack"]) : std::vector<std::string>{};
      const auto has = [&calls](const std::string& name) {
        return std::find(calls.begin(), calls.end(), name) != calls.end();
      };
      waits = waits || (thread.has("batch_wait_ns") && thread["reason"].text() == "pipe");
      if (has("stuck_decoder")) {
        hangs = true;
        CHECK(thread["reason"].text() == "lock");
        CHECK(thread["holder"].integer() > 0);
        CHECK(thread["last_operation"].text() == "First");
      }
      runs = runs || (!thread.has("stack") && thread["running"].canonical() == "true");
    }
    CHECK(waits);
    CHECK(hangs);
    CHECK(runs);
    const std::string table = run({"stats", snapshot}).out;
    CAPTURE(table);
    CHECK(contains(table, "threads when the snapshot was taken"));
    CHECK(contains(table, "stuck_decoder"));
    CHECK(contains(table, "has waited for a batch for"));
    // The program's run directory is not a snapshot, so it has no list of threads at a snapshot.
    CHECK_FALSE(stats(run_of(dir))["runs"][0].has("threads_at_snapshot"));
  }
}

TEST_CASE("a snapshot because of a hang shows the threads of forked workers") {
  const temp_dir dir;
  REQUIRE(run_program(program_named("stacks_o2"), dir, "60", "100", "processes") == 0);
  const std::string snapshot = snapshot_in(dir);
  const json threads = stats(snapshot)["runs"][0]["threads_at_snapshot"];
  CAPTURE(threads.canonical());
  std::set<std::int64_t> stuck;
  std::set<std::int64_t> processes;
  for (const json& thread : threads.array()) {
    processes.insert(thread["pid"].integer());
    const std::vector<std::string> calls =
        thread.has("stack") ? texts(thread["stack"]) : std::vector<std::string>{};
    if (std::find(calls.begin(), calls.end(), "stuck_decoder") == calls.end()) continue;
    stuck.insert(thread["pid"].integer());
    CHECK(thread["reason"].text() == "lock");
    CHECK(thread["last_operation"].text() == "First");
  }
  CHECK(stuck.size() == 3);
  CHECK(processes.size() == 4);
  const std::string table = run({"stats", snapshot}).out;
  CAPTURE(table);
  for (const std::int64_t pid : stuck) CHECK(contains(table, "process " + std::to_string(pid)));
  CHECK_FALSE(fs::exists(run_of(dir) + "/.lotus_moment_request"));
  CHECK_FALSE(fs::exists(snapshot + "/.lotus_moment_request"));
}

TEST_CASE("stats and export name the function in which the holder of a lock waits") {
  const std::string folder = run_limited_by_lock();
  CHECK(entry_of(folder, "SDecode", "lock")["held_in"].text() == "decode_under_lock");
  const temp_dir dir;
  const std::string tables = dir.path() + "/tables";
  REQUIRE(run({"export", folder, "--format", "csv", "-o", tables}).status == 0);
  CHECK(contains(read_file(tables + "/blocked_on.csv"), ",decode_under_lock\n"));
}
