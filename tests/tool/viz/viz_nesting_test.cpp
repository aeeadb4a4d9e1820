// Tests that the slices of a track nest or follow each other in every format, even after a viewer
// has converted their times to doubles.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;

namespace {

/// A slice with the times that a viewer calculates with, as doubles.
struct seen_slice {
  double start = 0;
  double end = 0;
};

using seen_track = std::vector<seen_slice>;

/// Returns the tracks of a Chrome trace.
/// @param rebased  whether to subtract the first start of a track from all its starts before adding
///   durations, as speedscope does.
std::vector<seen_track> chrome_tracks(const std::string& text, bool rebased) {
  std::map<std::int64_t, std::vector<std::pair<double, double>>> of_tid;  // starts and durations
  const json document = parse_json(text);
  for (const json& event : document["traceEvents"].array()) {
    if (event["ph"].text() != "X") continue;
    const std::string category = event.has("cat") ? event["cat"].text() : "";
    if (category != "op" && category != "batch") continue;  // an event of the profiler
    of_tid[event["tid"].integer()].emplace_back(event["ts"].number(), event["dur"].number());
  }
  std::vector<seen_track> tracks;
  for (const auto& [tid, events] : of_tid) {
    double first = events.front().first;
    for (const auto& [start, duration] : events) first = std::min(first, start);
    seen_track track;
    for (const auto& [start, duration] : events) {
      const double from = rebased ? start - first : start;
      track.push_back({from, from + duration});
    }
    tracks.push_back(std::move(track));
  }
  return tracks;
}

/// Returns how many slices of a track overlap only partly with another one.
std::size_t partial_overlaps(seen_track track) {
  std::stable_sort(track.begin(), track.end(), [](const seen_slice& a, const seen_slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::size_t found = 0;
  std::vector<double> open;
  for (const seen_slice& slice : track) {
    while (!open.empty() && open.back() <= slice.start) open.pop_back();
    if (!open.empty() && slice.end > open.back()) ++found;
    open.push_back(slice.end);
  }
  return found;
}

void check_chrome(const std::string& dir, const std::vector<std::string>& more = {}) {
  INFO(dir);
  const std::string text = drawn(dir, more);
  for (const bool rebased : {false, true}) {
    for (const seen_track& track : chrome_tracks(text, rebased)) {
      INFO((rebased ? "rebased" : "as they stand"));
      CHECK(partial_overlaps(track) == 0);
    }
  }
}

/// Returns the sorted names of threads, and the sum of all slices' durations in ns.
std::pair<std::vector<std::string>, std::int64_t> chrome_threads(const std::string& dir) {
  std::vector<std::string> names;
  std::int64_t total = 0;
  const json document = parse_json(drawn(dir, {}));
  for (const json& event : document["traceEvents"].array()) {
    if (event["name"].text() == "thread_name") names.push_back(event["args"]["name"].text());
    if (event["ph"].text() == "X") total += std::llround(event["dur"].number() * 1000);
  }
  std::sort(names.begin(), names.end());
  return {names, total};
}

/// A log of nested operations without gaps between neighbors: each operation begins when the
/// previous one ends.
class seamless_log {
 public:
  seamless_log(std::uint64_t seed, std::int64_t at_ns) : random_(seed), now_ns_(at_ns) {}

  /// Appends an operation after the operations inside it, as in a log.
  void operation(int depth) {
    const std::int64_t start = now_ns_;
    const std::uint64_t children = depth == 0 ? 0 : below(5);
    for (std::uint64_t i = 0; i < children; ++i) operation(depth - 1);
    if (children == 0 || below(2) == 0) now_ns_ += static_cast<std::int64_t>(below(400'000));
    text_ += "SDepth" + std::to_string(depth) + ',' + std::to_string(start) + ',' +
             std::to_string(now_ns_ - start) + '\n';
    total_ns_ += now_ns_ - start;
  }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  const std::string& text() const { return text_; }
  std::int64_t total_ns() const { return total_ns_; }

 private:
  std::mt19937_64 random_;
  std::int64_t now_ns_;
  std::int64_t total_ns_ = 0;
  std::string text_;
};

}  // namespace

TEST_CASE("slices of real runs nest in the double arithmetic of viewers") {
  std::vector<std::string> dirs{traces() + "/c_ooo_w4"};
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent; one run drawn");
  } else {
    for (const auto* name :
         {"a_preproc_w1", "c_ooo_w4", "d_consumer_w2", "g_profiled_w2", "h_epochs2_w2"}) {
      dirs.push_back(shared_traces() + '/' + name);
    }
  }
  for (const std::string& dir : dirs) {
    check_chrome(dir);
    check_chrome(dir, {"--coarse"});
  }
}

TEST_CASE("slices whose ends meet do not overlap by rounding, however long the run is") {
  constexpr std::int64_t epoch = 1'700'000'000'000'000'000;
  constexpr std::int64_t hour = 3'600'000'000'000;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    const temp_dir dir;
    // The output counts times from the first record. This early wait makes the other times longer
    // by some digits.
    dir.file("lotustrace_log_main_pid_1", "SBatchWait_0," + std::to_string(epoch) + ",2000\n");
    seamless_log log(seed, epoch + static_cast<std::int64_t>(seed * seed * seed / 8) * hour);
    for (int i = 0; i < 300; ++i) log.operation(4);
    dir.file("lotustrace_log_worker_pid_2", log.text());
    check_chrome(dir.path());
    const auto [threads, total] = chrome_threads(dir.path());
    CHECK(threads == std::vector<std::string>{"main 1", "worker 2"});
    CHECK(total == log.total_ns() + 2000);
  }
}

TEST_CASE("slices nest after merging into a trace of the old form with absolute times") {
  const temp_dir dir;
  seamless_log log(99, 1'700'000'000'000'000'000);
  for (int i = 0; i < 300; ++i) log.operation(4);
  dir.file("lotustrace_log_worker_pid_2", log.text());
  dir.file(
      "t.json",
      R"({"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1700000000000000,"dur":5}]})");
  check_chrome(dir.path());
}

TEST_CASE("a slice that overlaps others partly is drawn whole on a track of its own") {
  const temp_dir dir;
  // A scope that moved between threads begins inside one operation and ends inside the next. A step
  // ends after the scope in which it began.
  dir.file("lotustrace_log_worker_pid_5",
           "SInner,1000,100\nSFirst,1000,1000\nSAstray,1500,1000\nSBelow,1600,100\n"
           "SSecond,2000,1000\nSAgain,2600,1000\n");
  dir.file("lotustrace_log_main_pid_6",
           "SBatchWait_0,1000,100\nSBatchConsumed_0,1050,10\nSBatchWait_1,3000,100\n");
  check_chrome(dir.path());
  constexpr std::int64_t whole = 100 + 1000 + 1000 + 100 + 1000 + 1000 + 100 + 1950 + 100;
  const auto [threads, total] = chrome_threads(dir.path());
  CHECK(threads == std::vector<std::string>{"main 6", "main 6 (overlapping)", "worker 5",
                                            "worker 5 (overlapping)"});
  CHECK(total == whole);
}

TEST_CASE("slices that overlap on that track get further tracks") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SA,1000,100\nSB,1030,100\nSC,1060,100\nSD,2000,5\n");
  check_chrome(dir.path());
  const auto [threads, total] = chrome_threads(dir.path());
  CHECK(threads ==
        std::vector<std::string>{"worker 5", "worker 5 (overlapping 2)", "worker 5 (overlapping)"});
  CHECK(total == 305);
}
