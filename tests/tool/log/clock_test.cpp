// Tests that the analysis notices if the computer's clock was set while a run was recorded.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t start_ns = 1'700'000'000'000 * ms;
constexpr std::int64_t eleven_hours_ns = 39'594'000 * ms;

struct span {
  std::string name;
  std::int64_t start;
  std::int64_t duration;
};

using logs = std::map<std::string, std::vector<span>>;

/// Adds an epoch of 60 batches that begins at `from`: four workers build batches in 180 to 220 ms,
/// at most 8 ahead of the consumer, whose step takes 10 ms. Returns when it ends.
/// @param first_worker  number of the first worker's log.
/// @param pause  how much longer the step after batch 28 takes.
std::int64_t add_epoch(logs& to, std::int64_t from, int first_worker, std::int64_t pause) {
  constexpr int workers = 4;
  std::vector<std::int64_t> free_at(workers, from);
  std::vector<std::int64_t> taken;
  std::int64_t now = from;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t asked = i < 2 * workers ? from : taken[std::size_t(i - 2 * workers)];
    const int worker = i % workers;
    const std::int64_t begin = std::max(free_at[std::size_t(worker)], asked);
    const std::int64_t build = (180 + i * 17 % 41) * ms;
    std::vector<span>& log =
        to["lotustrace_log_worker_pid_" + std::to_string(first_worker + worker)];
    const std::string number = std::to_string(i);
    log.push_back({"SDecode", begin, build / 10 * 9});
    log.push_back({"SBatchPreprocessed_" + number, begin, build});
    const std::int64_t built = begin + build;
    free_at[std::size_t(worker)] = built;
    std::vector<span>& main = to["lotustrace_log_main_pid_100"];
    main.push_back({"SBatchWait_" + number, now, std::max<std::int64_t>(built - now, 2000)});
    now = std::max(now, built);
    main.push_back({"SBatchConsumed_" + number, now, 1000});
    taken.push_back(now);
    now += 10 * ms + (i == 28 ? pause : 0);
  }
  return now;
}

/// How the clock is set during the recording of a run.
struct setting {
  std::int64_t by;
  std::int64_t at;    ///< after the start of the run
  bool in_durations;  ///< whether durations are differences of two times of the clock
};

void set_clock(logs& of, const setting& s) {
  for (auto& [name, lines] : of) {
    for (span& line : lines) {
      const std::int64_t at = start_ns + s.at;
      if (line.start >= at) {
        line.start += s.by;
      } else if (s.in_durations && line.start + line.duration >= at) {
        line.duration += s.by;
      }
    }
  }
}

result diagnose(const logs& of, const temp_dir& dir, const std::string& command = "diagnose") {
  for (const auto& [name, lines] : of) {
    std::string text;
    for (const span& line : lines) {
      text +=
          line.name + ',' + std::to_string(line.start) + ',' + std::to_string(line.duration) + '\n';
    }
    dir.file("run/" + name, text);
  }
  return run({command, dir.path() + "/run"});
}

/// Returns the duration that diagnose says the run took, in s.
double seconds(const result& r) {
  const std::string before = " batches in ";
  const std::size_t at = r.out.find(before);
  return at == std::string::npos ? -1 : std::stod(r.out.substr(at + before.size()));
}

logs steady() {
  logs all;
  add_epoch(all, start_ns, 101, 0);
  return all;
}

void check_corrected(const setting& s, const std::string& said) {
  CAPTURE(s.by);
  CAPTURE(s.at);
  CAPTURE(s.in_durations);
  const temp_dir straight;
  const double right = seconds(diagnose(steady(), straight));
  logs all = steady();
  set_clock(all, s);
  const temp_dir dir;
  const result found = diagnose(all, dir);
  CHECK(found.status == 0);
  CHECK(contains(found.err, "note: " + dir.path() + "/run: the clock was set " + said));
  CHECK(!contains(found.err, "negative"));
  CHECK(contains(found.out, "Preprocessing is the bottleneck"));
  CHECK(std::abs(seconds(found) - right) < 0.01 * right);
  CHECK(contains(run({"diagnose", dir.path() + "/run", "--json"}).out, "\"clock-set\""));
  const result stats = run({"stats", dir.path() + "/run"});
  CHECK(stats.status == 0);
  // Only the check says how far the clock was set.
  const std::size_t first = stats.out.find("3959");
  CHECK((first == std::string::npos || stats.out.find("3959", first + 1) == std::string::npos));
  const result compared = run({"compare", straight.path() + "/run", dir.path() + "/run"});
  CHECK(!contains(compared.out, "3959"));
}

void check_unchanged(const logs& all, double right) {
  const temp_dir dir;
  const result found = diagnose(all, dir);
  CHECK(!contains(found.err, "clock"));
  CHECK(!contains(run({"diagnose", dir.path() + "/run", "--json"}).out, "clock-set"));
  CHECK(std::abs(seconds(found) - right) < 0.01 * right);
}

}  // namespace

TEST_CASE("a clock that was set back is corrected") {
  for (const std::int64_t at : {1500 * ms, 1604 * ms, 900 * ms}) {
    check_corrected({-eleven_hours_ns, at, false}, "back by 3959");
    check_corrected({-eleven_hours_ns, at, true}, "back by 3959");
    check_corrected({-1000 * ms, at, false}, "back by ");
    check_corrected({-1000 * ms, at, true}, "back by ");
  }
}

TEST_CASE("a clock that was set forward, or a suspended computer, is corrected") {
  for (const std::int64_t at : {1500 * ms, 1604 * ms, 900 * ms}) {
    check_corrected({eleven_hours_ns, at, false}, "forward by 3959");
    check_corrected({eleven_hours_ns, at, true}, "forward by 3959");
  }
}

TEST_CASE("if the clock was set more than once, no verdict is given") {
  for (const auto& [first, second] : std::map<std::int64_t, std::int64_t>{
           {-eleven_hours_ns, eleven_hours_ns}, {eleven_hours_ns, 3 * eleven_hours_ns}}) {
    CAPTURE(first);
    logs all = steady();
    set_clock(all, {second, 2000 * ms, false});
    set_clock(all, {first, 1000 * ms, false});
    const temp_dir dir;
    const result found = diagnose(all, dir);
    CHECK(contains(found.out, "No verdict: the clock was set more than once"));
    CHECK(!contains(found.out, "bottleneck"));
  }
}

TEST_CASE("pauses of the program and small corrections of the clock stay as they are") {
  logs paused;
  check_unchanged(paused,
                  double(add_epoch(paused, start_ns, 101, eleven_hours_ns) - start_ns) / 1e9);

  logs epochs;
  const std::int64_t half = add_epoch(epochs, start_ns, 101, 0);
  const std::int64_t end = add_epoch(epochs, half + 3'600'000 * ms, 201, 0);
  const temp_dir dir;
  const result two = diagnose(epochs, dir);
  CHECK(!contains(two.err, "clock"));
  static_cast<void>(end);

  logs slewed = steady();
  set_clock(slewed, {-34'000, 1500 * ms, true});
  const temp_dir straight;
  check_unchanged(slewed, seconds(diagnose(steady(), straight)));
}

TEST_CASE("threads that wait for the same disk for hours are no clock that was set") {
  // All threads are in a call when the disk stops to answer, and all go on when it does again.
  logs all = steady();
  const std::int64_t stop = start_ns + 1500 * ms;
  for (auto& [name, lines] : all) {
    for (span& line : lines) {
      if (line.start > stop) {
        line.start += eleven_hours_ns;
      } else if (line.start + line.duration > stop) {
        line.duration = stop + eleven_hours_ns - line.start;
      }
    }
  }
  const temp_dir dir;
  CHECK(!contains(diagnose(all, dir).err, "clock"));
}
