// Tests that a large run, whose logs several threads draw at the same time, is drawn as a small
// one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t base_ns = 1'700'000'000'000'000'000;

std::string line(const std::string& name, std::int64_t start_ns, std::int64_t duration_ns) {
  return name + ',' + std::to_string(base_ns + start_ns) + ',' + std::to_string(duration_ns) + '\n';
}

/// Writes a run of three workers with 20,000 nested operations each, of which a few overlap partly
/// on the second worker, and with batches and counters.
void write_run(const temp_dir& dir) {
  constexpr int workers = 3;
  constexpr int batches = 200;
  constexpr int operations = 100;
  std::string main;
  std::vector<std::string> logs(workers);
  for (int b = 0; b < batches; ++b) {
    std::string& log = logs[static_cast<std::size_t>(b % workers)];
    const std::int64_t start_ns = b / workers * std::int64_t{1'000'000} + b % workers * 777;
    for (int i = 0; i < operations * workers / 2; ++i) {
      const std::int64_t at_ns = start_ns + i * 6'000;
      log += line("SDecode", at_ns + 100, 2'345);
      log += line("SLoad", at_ns, 5'001);
      if (b % workers == 1 && i % 50 == 0) log += line("SAcross", at_ns + 3'000, 4'000);
    }
    log += line("SBatchPreprocessed_" + std::to_string(b), start_ns, 990'000);
    main += line("SBatchWait_" + std::to_string(b), b * std::int64_t{340'000}, 300'000);
    main += line("SBatchConsumed_" + std::to_string(b), b * std::int64_t{340'000} + 300'000, 1'000);
  }
  dir.file("lotustrace_log_main_pid_10", main);
  for (int w = 0; w < workers; ++w) {
    dir.file("lotustrace_log_worker_pid_" + std::to_string(11 + w),
             logs[static_cast<std::size_t>(w)]);
  }
}

/// Returns the lines of the events of each track, in their order, and sorted those that belong to
/// no thread.
std::map<std::string, std::vector<std::string>> by_track(const std::string& text) {
  std::map<std::string, std::vector<std::string>> tracks;
  for (std::size_t at = text.find('\n') + 1; text[at] == '{';) {
    const std::size_t end = text.find('\n', at);
    std::string event = text.substr(at, end - at);
    if (event.back() == ',') event.pop_back();
    const std::size_t tid = event.find("\"tid\":");
    const std::string track =
        tid == std::string::npos ? "" : event.substr(tid, event.find_first_of(",}", tid) - tid);
    tracks[track].push_back(std::move(event));
    at = end + 1;
  }
  std::sort(tracks[""].begin(), tracks[""].end());
  return tracks;
}

}  // namespace

TEST_CASE("logs that are drawn at the same time look like logs drawn one after another") {
  const temp_dir dir;
  write_run(dir);
  const std::string text = drawn(dir.path());
  CHECK(parse_json(text)["traceEvents"].size() > 60'000);
  // A list of operations makes the tool draw one log after another.
  const std::string one_by_one =
      drawn(dir.path(), {"--op", "Load", "--op", "Decode", "--op", "Across"});
  const auto expected = by_track(one_by_one);
  const auto found = by_track(text);
  REQUIRE(found.size() == expected.size());
  CHECK(found.size() == 6);  // without a track, four logs, and a track for those that overlap
  for (const auto& [track, events] : expected) {
    INFO(track);
    CHECK(found.at(track) == events);
  }
  CHECK(text != one_by_one);
  CHECK(drawn(dir.path()) == text);
}

TEST_CASE("a large run is also drawn at once into a file of several runs") {
  const temp_dir dir;
  write_run(dir);
  const std::string alone = drawn(dir.path());
  const temp_dir both;
  for (const std::string copy : {"a/", "b/"}) {
    for (const std::string& name : dir.names()) {
      both.file(copy + name, read_file(dir.path() + '/' + name));
    }
  }
  const json document = parse_json(drawn(both.path()));
  CHECK(document["traceEvents"].size() == 2 * parse_json(alone)["traceEvents"].size());
}
