// Tests the records of stages, segments and counters, of waits whose batch is known only later, and
// of spans with given times, in logs and side logs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using support::collected_messages;
using support::count_named;
using support::numbers_of;
using support::read_logs;
using support::read_side_log;
using support::side_log_line;

namespace {

/// Returns options for recording to `run` that store all messages in collected_messages.
lotus::options noting(const support::temp_directory& run) {
  collected_messages::clear();
  lotus::options chosen;
  chosen.log_file = run.prefix();
  chosen.on_message = &collected_messages::add;
  return chosen;
}

/// Returns whether the logs contain an operation with the times of this stage or segment.
bool has_operation(const std::vector<support::log_line>& lines, const side_log_line& of) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& l) {
    return l.name == of.name && l.start_ns == of.time_ns && l.duration_ns == of.a &&
           l.tid == of.tid && l.role == "worker";
  });
}

}  // namespace

TEST_CASE("a stage is an operation, and its number is in the side log") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  std::string runtime = "Resize, large";
  const char* const names[] = {"Left", "Right"};
  for (int i = 0; i < 4; ++i) {
    LOTUS_STAGE("Decode", i);
    { LOTUS_STAGE(names[i % 2], i); }
    LOTUS_STAGE(runtime, 0xFFFF'FFFEU);
  }
  lotus::stop();
  const auto lines = read_logs(run.path());
  const auto stages = read_side_log(run.path(), "stage");
  CHECK(lines.size() == 12);
  REQUIRE(stages.size() == 12);
  for (const side_log_line& stage : stages) CHECK(has_operation(lines, stage));
  CHECK(numbers_of(stages, "SDecode") == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(numbers_of(stages, "SLeft") == std::vector<std::int64_t>{0, 2});
  CHECK(numbers_of(stages, "SRight") == std::vector<std::int64_t>{1, 3});
  CHECK(numbers_of(stages, "SResize%2C large") ==
        std::vector<std::int64_t>(4, std::int64_t{0xFFFF'FFFE}));
}

TEST_CASE("a large stage number has a line of its own before the stage") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const std::uint64_t large[] = {0xFFFF'FFFF, std::uint64_t{1} << 32, INT64_MAX};
  for (const std::uint64_t i : large) {
    LOTUS_STAGE("Outer", i);
    LOTUS_STAGE("Inner", i + 1);
    lotus::in_stage("Third", i, [] {});
  }
  { LOTUS_STAGE("Inner", 0xFFFF'FFFE); }
  lotus::stop();
  const auto stages = read_side_log(run.path(), "stage");
  CHECK(stages.size() == 10);
  const auto numbers = read_side_log(run.path(), "number");
  REQUIRE(numbers.size() == 9);
  for (const side_log_line& number : numbers) {
    CHECK(std::count_if(stages.begin(), stages.end(), [&](const side_log_line& stage) {
            return stage.name == number.name && stage.time_ns == number.time_ns && stage.b == -1;
          }) == 1);
  }
  const std::vector<std::int64_t> wanted(large, large + 3);
  CHECK(numbers_of(numbers, "SOuter", &side_log_line::a) == wanted);
  CHECK(numbers_of(numbers, "SThird", &side_log_line::a) == wanted);
  CHECK(numbers_of(numbers, "SInner", &side_log_line::a) ==
        std::vector<std::int64_t>{wanted[1], wanted[1] + 1, INT64_MIN});
  CHECK(count_named(read_logs(run.path()), "SInner") == 4);
}

TEST_CASE("a stage can end before its block, or be discarded") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  {
    lotus::stage stage{"Ended", std::uint64_t{1} << 40};
    stage.end();
    stage.end();
    stage.discard();
    LOTUS_SCOPE("Push");
  }
  {
    lotus::stage stage{"Discarded", 2};
    stage.discard();
    stage.end();
  }
  CHECK(lotus::in_stage("Within", 3, [] { return std::string("result"); }) == "result");
  int value = 0;
  int& same = lotus::in_stage("Within", 4, [&]() -> int& { return value; });
  CHECK(&same == &value);
  CHECK_THROWS_AS(lotus::in_stage("Within", 5, [] { throw std::runtime_error{"broken"}; }),
                  std::runtime_error);
  lotus::stop();
  const auto lines = read_logs(run.path());
  const auto side = read_side_log(run.path(), "stage");
  CHECK(count_named(lines, "SEnded") == 1);
  CHECK(count_named(lines, "SDiscarded") == 0);
  CHECK(numbers_of(side, "SWithin") == std::vector<std::int64_t>{3, 4, 5});
  CHECK(numbers_of(read_side_log(run.path(), "number"), "SEnded", &side_log_line::a) ==
        std::vector<std::int64_t>{std::int64_t{1} << 40});
  const auto ended =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return l.name == "SEnded"; });
  const auto push =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return l.name == "SPush"; });
  REQUIRE(ended != lines.end());
  REQUIRE(push != lines.end());
  CHECK(ended->end_ns() <= push->start_ns);
}

TEST_CASE("LOTUS_BATCH_TAKES and LOTUS_COUNTER write to the side log only") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  LOTUS_BATCH_TAKES(3, (std::uint64_t{1} << 56) - 1);
  LOTUS_BATCH_TAKES(std::uint64_t{1} << 40, 5);
  const std::string runtime = "bytes";
  LOTUS_COUNTER("queue", -17);
  LOTUS_COUNTER(runtime, std::int64_t{1} << 62);
  LOTUS_COUNTER("queue", INT64_MIN);
  lotus::stop();
  CHECK(read_logs(run.path()).empty());
  std::ifstream in{support::log_files(run.path(), true).at(0)};
  std::vector<std::string> ends;
  for (std::string line; std::getline(in, line);) {
    const std::size_t name_end = line.find(',', line.find(',') + 1);
    ends.push_back(line.substr(0, name_end) + line.substr(line.find(',', name_end + 1)));
  }
  CHECK(ends == std::vector<std::string>{"takes,,3,72057594037927935", "takes,,1099511627776,5",
                                         "counter,Squeue,-17,0",
                                         "counter,Sbytes,4611686018427387904,0",
                                         "counter,Squeue,-9223372036854775808,0"});
}

TEST_CASE("an item or batch number that is too large is dropped, counted and reported once") {
  const support::temp_directory run;
  REQUIRE(lotus::start(noting(run)));
  const std::uint64_t before = lotus::dropped();
  LOTUS_BATCH_TAKES(3, -1);
  LOTUS_BATCH_TAKES(std::uint64_t{1} << 56, 3);
  CHECK(lotus::dropped() - before == 2);
  lotus::stop();
  CHECK(read_side_log(run.path(), "takes").empty());
  // One message is about the item's number, one about the number of dropped records.
  CHECK(collected_messages::all().size() == 2);
}

TEST_CASE("a wait is recorded once its batch is known, and otherwise not at all") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (std::uint64_t i = 0; i < 3; ++i) {
    lotus::batch_wait wait;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (i == 2) break;  // as if the end of the data had been reached
    wait.consumed(i + 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    wait.discard();
  }
  lotus::stop();
  const auto lines = read_logs(run.path());
  REQUIRE(lines.size() == 4);
  for (const char* number : {"10", "11"}) {
    CHECK(count_named(lines, std::string("SBatchWait_") + number) == 1);
    CHECK(count_named(lines, std::string("SBatchConsumed_") + number) == 1);
  }
  for (const auto& l : lines) {
    CHECK(l.role == "main");
    if (l.name.find("Wait") != std::string::npos) CHECK(l.duration_ns >= 3'000'000);
  }
}

TEST_CASE("the segments of an asynchronous operation are recorded on the threads where they ran") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  {
    lotus::async_scope first{"Load"};
    lotus::async_scope second{"Load"};
    first.suspend();
    first.suspend();
    std::thread{[&] {
      first.resume();
      first.resume();
      first.suspend();
    }}.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    first.resume();
  }
  { lotus::async_scope moved_on{"Save"}; }
  lotus::stop();
  const auto lines = read_logs(run.path());
  const auto segments = read_side_log(run.path(), "piece");
  REQUIRE(segments.size() == 5);
  for (const side_log_line& segment : segments) CHECK(has_operation(lines, segment));
  std::map<std::int64_t, std::vector<side_log_line>> by_id;
  for (const side_log_line& segment : segments) by_id[segment.b].push_back(segment);
  REQUIRE(by_id.size() == 3);
  std::multiset<std::size_t> sizes;
  for (const auto& [id, of] : by_id) {
    sizes.insert(of.size());
    std::set<std::uint32_t> threads;
    for (const side_log_line& segment : of) threads.insert(segment.tid);
    CHECK(threads.size() == (of.size() == 3 ? 2 : 1));
  }
  CHECK(sizes == std::multiset<std::size_t>{1, 1, 3});
}

TEST_CASE("asynchronous operations of different threads have different numbers") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) const lotus::async_scope load{"Load"};
    });
  }
  for (std::thread& t : threads) t.join();
  lotus::stop();
  std::set<std::int64_t> ids;
  for (const side_log_line& segment : read_side_log(run.path(), "piece")) ids.insert(segment.b);
  CHECK(ids.size() == 4000);
}

TEST_CASE("record_span records a span with the given times") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const auto begin = std::chrono::steady_clock::now();
  {
    LOTUS_SCOPE("Measured");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto end = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  lotus::record_span("Given", begin, end);
  lotus::stop();
  const auto lines = read_logs(run.path());
  REQUIRE(lines.size() == 2);
  const auto& given = lines[lines[0].name == "SGiven" ? 0 : 1];
  const auto& measured = lines[lines[0].name == "SGiven" ? 1 : 0];
  // The span with the given times must contain the measured span. The conversion between the clocks
  // may be inexact by `off_ns`.
  constexpr std::int64_t off_ns = 20'000;
  CHECK(given.start_ns <= measured.start_ns + off_ns);
  CHECK(given.end_ns() + off_ns >= measured.end_ns());
  CHECK(std::abs(given.duration_ns - std::chrono::nanoseconds(end - begin).count()) <= off_ns);
}

#if !defined(NDEBUG)
TEST_CASE("a scope that ends on another thread is reported once") {
  const support::temp_directory run;
  REQUIRE(lotus::start(noting(run)));
  for (int i = 0; i < 2; ++i) {
    std::optional<lotus::scope> crossing;
    crossing.emplace("Crossing");
    std::thread{[&] { crossing.reset(); }}.join();
  }
  lotus::stop();
  REQUIRE(collected_messages::all().size() == 1);
  CHECK(collected_messages::count("Crossing") == 1);
  CHECK(collected_messages::count("async_scope") == 1);
}
#endif
