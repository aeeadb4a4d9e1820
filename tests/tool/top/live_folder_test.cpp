// Tests processes that record while top reads their records: each record must be seen exactly once,
// in a ring or in a log.
#include "commands/top/live_folder.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "commands/top/live_runs.hpp"
#include "log/log_reader.hpp"
#include "log/side_line.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using namespace std::chrono_literals;

namespace {

std::int64_t now_ns() {
  return lotus::tool::time_of(CLOCK_REALTIME);
}

/// @param set_ns  how far the clock was set forward.
void look(live_folder& folder, std::int64_t steady_ns, std::int64_t set_ns = 0) {
  folder.look(steady_ns + set_ns, steady_ns);
}

const std::vector<lotus::log_format> formats{lotus::log_format::text, lotus::log_format::compact};
constexpr std::int64_t whole_run_ns = 3'600'000'000'000;

std::int64_t start_of(const log_line& line) {
  return line.start_ns;
}
std::int64_t start_of(const side_line& line) {
  return line.time_ns;
}

/// Returns how often `folder` contains each record, by the beginning of the record's line.
std::map<std::string, int> held(const live_folder& folder) {
  std::map<std::string, int> found;
  for (const run_files& run : folder.runs()) {
    for (const auto* files : {&run.files, &run.side_files}) {
      for (const log_file& file : *files) {
        const auto count = [&](const auto& record) {
          if (!run.window->read.has(start_of(record), record.end_ns())) return;
          std::string line;
          append_text(record, line);
          ++found[line.substr(0, line.find(','))];
        };
        if (files == &run.files) read_lines<log_line>(file, nullptr, count);
        if (files == &run.side_files) read_lines<side_line>(file, nullptr, count);
      }
    }
  }
  return found;
}

/// Returns how often the most frequent batch record occurs. Batch records differ by their numbers,
/// so each should occur once.
int max_of_one(const std::map<std::string, int>& found) {
  int most = 0;
  for (const auto& [name, count] : found) {
    if (name.rfind("SBatch", 0) == 0) most = std::max(most, count);
  }
  return most;
}

std::size_t batches(const std::map<std::string, int>& found) {
  std::size_t count = 0;
  for (const auto& [name, times] : found) {
    if (name.rfind("SBatchConsumed_", 0) == 0) ++count;
  }
  return count;
}

/// A child process that records and then waits. It ends normally when the test sends it a byte.
class recording_child {
 public:
  template <class Work>
  recording_child(const std::string& prefix, std::uint32_t drain_interval_ms, Work&& work,
                  std::uint32_t ring_records = 8192,
                  lotus::log_format format = lotus::log_format::text,
                  std::uint64_t keep_bytes = 0) {
    REQUIRE(pipe(reported_) == 0);
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ != 0) return;
    lotus::options o;
    o.log_file = prefix;
    o.drain_interval_ms = drain_interval_ms;
    o.ring_records = ring_records;
    o.format = format;
    o.keep_bytes = keep_bytes;
    lotus::start(o);
    // Waits until the drains shortly after start() are over.
    if (drain_interval_ms > 1000) usleep(400'000);
    work();
    char byte = 0;
    if (write(done_[1], &byte, 1) != 1 || read(reported_[0], &byte, 1) != 1) _exit(1);
    lotus::stop();
    _exit(0);
  }
  ~recording_child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {reported_[0], reported_[1], done_[0], done_[1]}) close(fd);
  }
  recording_child(const recording_child&) = delete;
  recording_child& operator=(const recording_child&) = delete;

  void wait_until_recorded() const {
    char byte = 0;
    REQUIRE(read(done_[0], &byte, 1) == 1);
  }
  void end() const {
    const char byte = 0;
    REQUIRE(write(reported_[1], &byte, 1) == 1);
    waitpid(pid_, nullptr, 0);
  }
  void die() const {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  int reported_[2] = {};
  int done_[2] = {};
};

void consume(std::int64_t first, std::int64_t last, int pause_us) {
  for (std::int64_t i = first; i < last; ++i) {
    { LOTUS_STAGE("Decode", i); }
    { LOTUS_BATCH_WAIT(i); }
    LOTUS_BATCH_CONSUMED(i);
    if (pause_us > 0) usleep(static_cast<unsigned>(pause_us));
  }
}

}  // namespace

TEST_CASE("records in a ring are seen once, and not again when they are drained") {
  const lotus::log_format format = GENERATE(from_range(formats));
  const support::temp_directory place;
  const auto work = [] {
    consume(0, 100, 0);
    LOTUS_LOADER("val");
    consume(100, 150, 0);
  };
  const recording_child child(place.prefix(), 60'000, work, 8192, format);
  child.wait_until_recorded();
  live_folder folder(place.path().string(), "lotustrace_log", whole_run_ns);
  look(folder, now_ns());
  auto found = held(folder);
  CHECK(batches(found) == 150);
  CHECK(max_of_one(found) == 1);
  CHECK(found["SDecode"] == 150);
  CHECK(found["stage"] == 150);
  const auto processes = folder.processes(place.path().string());
  REQUIRE(processes.size() == 1);
  CHECK(processes[0].state == ring_state::running);
  CHECK(processes[0].in_ring > 0);
  look(folder, now_ns());
  CHECK(held(folder) == found);
  child.end();
  look(folder, now_ns());
  CHECK(held(folder) == found);
  CHECK(folder.processes(place.path().string()).empty());
  live_folder short_one(place.path().string(), "lotustrace_log", 10'000'000'000);
  look(short_one, now_ns());
  look(short_one, now_ns() + 60'000'000'000);
  // The process has ended, so the folder must keep the records of the last seconds before its end,
  // even if it is read a minute later.
  CHECK(held(short_one) == found);
}

TEST_CASE("every record of a process that drains all the time is seen once") {
  // The second ring is so small that the process overwrites it while top reads it.
  const std::uint32_t ring_records = GENERATE(8192U, 16U);
  const lotus::log_format format = GENERATE(from_range(formats));
  const support::temp_directory place;
  constexpr std::int64_t all = support::rounds(20'000);
  const auto work = [] {
    std::thread other([] { consume(all, 2 * all, 20); });
    consume(0, all, 20);
    other.join();
  };
  const recording_child child(place.prefix(), 1, work, ring_records, format);
  live_folder folder(place.path().string(), "lotustrace_log", whole_run_ns);
  std::size_t looks = 0;
  std::size_t before = 0;
  int from_rings = 0;
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (before < 2 * all && std::chrono::steady_clock::now() < until) {
    look(folder, now_ns());
    const auto found = held(folder);
    REQUIRE(max_of_one(found) <= 1);
    REQUIRE(batches(found) >= before);
    before = batches(found);
    for (const seen_process& p : folder.processes(place.path().string())) {
      if (p.in_ring > 0) ++from_rings;
    }
    ++looks;
    std::this_thread::sleep_for(1ms);
  }
  CAPTURE(ring_records, looks, from_rings);
  CHECK(from_rings > 0);
  child.wait_until_recorded();
  child.end();
  look(folder, now_ns());
  auto found = held(folder);
  if (format == lotus::log_format::text) {
    CHECK(support::read_side_log(place.path(), "stage").size() == 2 * all);
  }
  CHECK(batches(found) == 2 * all);
  CHECK(max_of_one(found) == 1);
  CHECK(found["SDecode"] == 2 * all);
  CHECK(found["stage"] == 2 * all);
}

TEST_CASE("a killed process is recognized, and its records are not seen again after recovery") {
  const lotus::log_format format = GENERATE(from_range(formats));
  const support::temp_directory place;
  const recording_child child(
      place.prefix(), 60'000, [] { consume(0, 100, 0); }, 8192, format);
  child.wait_until_recorded();
  live_folder folder(place.path().string(), "lotustrace_log", whole_run_ns);
  look(folder, now_ns());
  const auto found = held(folder);
  child.die();
  look(folder, now_ns());
  const auto processes = folder.processes(place.path().string());
  REQUIRE(processes.size() == 1);
  CHECK(processes[0].state == ring_state::dead);
  CHECK(processes[0].in_ring > 0);
  CHECK(held(folder) == found);
  REQUIRE(lotus::tool_test::run({"recover", place.path().string()}).status == 0);
  look(folder, now_ns());
  CHECK(held(folder) == found);
  live_folder later(place.path().string(), "lotustrace_log", whole_run_ns);
  look(later, now_ns());
  CHECK(held(later) == found);
}

TEST_CASE("a damaged ring file causes no crash") {
  const support::temp_directory place;
  const recording_child child(place.prefix(), 60'000, [] { consume(0, 20, 0); });
  child.wait_until_recorded();
  std::filesystem::path ring;
  for (const auto& entry : std::filesystem::directory_iterator(place.path())) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) == 0) ring = entry.path();
  }
  REQUIRE_FALSE(ring.empty());
  const std::string whole = lotus::tool_test::read_file(ring.string());
  child.die();
  unsigned seed = 1;
  for (int round = 0; round < support::rounds(300); ++round) {
    std::string text = whole;
    for (int i = 0; i < 20; ++i) {
      seed = seed * 1'103'515'245 + 12'345;
      // Mainly changes the beginning, because most of the file is unused space for records.
      const std::size_t at = (seed >> 4U) % (i % 2 == 0 ? 40'000 : text.size());
      text[at % text.size()] = static_cast<char>(seed >> 16U);
    }
    if (round % 10 == 0) text.resize(seed % text.size());
    std::ofstream(ring, std::ios::binary) << text;
    live_folder folder(place.path().string(), "lotustrace_log", whole_run_ns);
    look(folder, now_ns());
    look(folder, now_ns());
    static_cast<void>(held(folder));
  }
}

TEST_CASE("a log that appears later is read, and one that was deleted is forgotten") {
  const lotus::tool_test::temp_dir dir;
  const std::int64_t now = now_ns();
  const auto line = [&](const std::string& name) {
    return name + ',' + std::to_string(now - 1'000'000) + ",1000\n";
  };
  dir.file("lotustrace_log_worker_pid_1", line("SOne"));
  live_folder folder(dir.path(), "lotustrace_log", 10'000'000'000);
  look(folder, now);
  CHECK(held(folder).size() == 1);
  const std::string later = dir.file("deeper/lotustrace_log_worker_pid_2", line("STwo"));
  dir.file("other_log_worker_pid_3", line("SThree"));
  look(folder, now);
  CHECK(held(folder).size() == 2);
  std::filesystem::remove(later);
  look(folder, now + 20'000'000'000);
  look(folder, now + 20'000'000'000);
  // No process is running, so the last seconds must remain visible.
  CHECK(folder.end_ns() == now - 1'000'000 + 1000);
  CHECK(held(folder) == std::map<std::string, int>{{"SOne", 1}});
}

TEST_CASE("a clock that is ahead moves the window, and older records leave it") {
  const lotus::tool_test::temp_dir dir;
  const std::int64_t now = now_ns();
  const std::int64_t ahead = now + 3'600'000'000'000;
  dir.file("lotustrace_log_worker_pid_1",
           "SOld," + std::to_string(now) + ",1\nSNew," + std::to_string(ahead) + ",1\n");
  live_folder folder(dir.path(), "lotustrace_log", 10'000'000'000);
  look(folder, now);
  CHECK(folder.end_ns() == ahead + 1);
  CHECK(held(folder) == std::map<std::string, int>{{"SNew", 1}});
}

TEST_CASE("a clock that is set while top runs is said, and the window follows it") {
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t day = 86'400 * second;
  const lotus::tool_test::temp_dir dir;
  const std::int64_t now = now_ns();
  dir.file("lotustrace_log_worker_pid_1", "SOld," + std::to_string(now) + ",1\n");
  live_folder folder(dir.path(), "lotustrace_log", 10 * second);
  look(folder, now + second / 2);
  look(folder, now + second);
  CHECK(folder.clock_set_ns() == 0);
  dir.file("lotustrace_log_worker_pid_2",
           "SNew," + std::to_string(now + 2 * second - day) + ",1\n");
  look(folder, now + 2 * second, -day);
  CHECK(folder.clock_set_ns() == -day);
  CHECK(folder.end_ns() == now + 2 * second - day);
  CHECK(held(folder)["SNew"] == 1);
  look(folder, now + 3 * second, -day);
  CHECK(folder.clock_set_ns() == -day);
  look(folder, now + 4 * second);
  CHECK(folder.clock_set_ns() == day);
}

TEST_CASE("only the end of long logs is read, and a log that was renamed is read to its end") {
  const lotus::tool_test::temp_dir dir;
  const std::int64_t now = now_ns();
  constexpr std::int64_t all = 600'000;
  std::string text;
  // One operation per 10 us, so the window of ten seconds has all of them.
  for (std::int64_t i = 0; i < all; ++i) {
    text += "SOp" + std::to_string(i) + ',' + std::to_string(now - (all - i) * 10'000) + ",9000\n";
  }
  const std::string log = dir.file("lotustrace_log_worker_pid_1", text);
  live_folder folder(dir.path(), "lotustrace_log", 10'000'000'000);
  look(folder, now);
  auto found = held(folder);
  CHECK(found.size() > 200'000);
  CHECK(found.size() < live_folder::max_log_bytes / 30);
  CHECK(found.count("SOp" + std::to_string(all - 1)) == 1);
  // The window is as long as what was read.
  CHECK(folder.end_ns() - folder.begin_ns() < static_cast<std::int64_t>(found.size() + 2) * 10'000);
  std::filesystem::resize_file(log, 0);
  std::ofstream(log, std::ios::app) << "SBefore," << now << ",1\n";
  std::filesystem::rename(log, log + ".1");
  dir.file("lotustrace_log_worker_pid_1", "SAfter," + std::to_string(now + 1) + ",1\n");
  look(folder, now);
  found = held(folder);
  CHECK(found == std::map<std::string, int>{{"SAfter", 1}, {"SBefore", 1}});
}

TEST_CASE("top goes on while a process renames and deletes its logs") {
  for (const lotus::log_format format : formats) {
    const lotus::tool_test::temp_dir dir;
    const recording_child child(
        dir.path() + "/lotustrace_log", 1, [] { consume(0, 1'000'000'000, 100); }, 1024, format,
        1 << 16);
    lotus::tool::live_runs runs({dir.path()}, "lotustrace_log", whole_run_ns);
    std::size_t seen = 0;
    for (const auto until = std::chrono::steady_clock::now() + 1s;
         std::chrono::steady_clock::now() < until;) {
      CHECK_NOTHROW(runs.look(0));
      if (!runs.all().empty()) seen = std::max(seen, runs.all().front().now.batches);
    }
    CHECK(seen > 0);
  }
}
