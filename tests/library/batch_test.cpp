#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using support::count_named;
using support::log_line;

TEST_CASE("batch records go to the right logs in the documented format") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  std::uint32_t worker_tid = 0;
  std::thread{[&] {
    worker_tid = static_cast<std::uint32_t>(gettid());
    LOTUS_BATCH_PREPROCESSED(7);
    LOTUS_SCOPE("Loader");
  }}.join();
  LOTUS_BATCH_QUEUED(8U);
  {
    LOTUS_BATCH_WAIT(std::size_t{6});
    LOTUS_BATCH_ARRIVED(7);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  LOTUS_BATCH_CONSUMED(6);
  lotus::stop();

  const auto lines = support::read_logs(run.path());
  REQUIRE(lines.size() == 6);
  const auto find = [&](const std::string& name) {
    for (const log_line& l : lines) {
      if (l.name == name) return l;
    }
    FAIL("no " << name);
    return log_line{};
  };
  const auto main_tid = static_cast<std::uint32_t>(gettid());
  CHECK(find("SBatchPreprocessed_7").role == "worker");
  CHECK(find("SBatchPreprocessed_7").tid == worker_tid);
  CHECK(find("SLoader").tid == worker_tid);
  for (const char* name : {"SBatchQueued_8", "SBatchWait_6", "SBatchWait_7", "SBatchConsumed_6"}) {
    CHECK(find(name).role == "main");
    CHECK(find(name).tid == main_tid);
  }
  CHECK(find("SBatchWait_6").duration_ns >= 2'000'000);
  CHECK(find("SBatchWait_7").duration_ns == 1000);
  CHECK(find("SBatchConsumed_6").duration_ns == 1000);
  CHECK(find("SBatchQueued_8").duration_ns == 1000);
  CHECK(find("SBatchWait_6").start_ns <= find("SBatchWait_7").start_ns);
  CHECK(find("SBatchWait_6").end_ns() <= find("SBatchConsumed_6").start_ns);
}

TEST_CASE("a batch may get its number late, or be discarded") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (std::uint64_t i = 0; i < 4; ++i) {
    lotus::batch_preprocessed batch;
    LOTUS_SCOPE("Read");
    if (i == 3) {
      batch.discard();  // as if the end of the data had been reached
    } else if (i != 2) {
      batch.number(99);
      batch.number(10 + i);
    }
  }
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(lines.size() == 6);
  CHECK(count_named(lines, "SRead") == 4);
  for (const char* name : {"SBatchPreprocessed_10", "SBatchPreprocessed_11"}) {
    REQUIRE(count_named(lines, name) == 1);
    for (const log_line& l : lines) {
      if (l.name != name) continue;
      CHECK(l.role == "worker");
      CHECK(std::any_of(lines.begin(), lines.end(), [&](const log_line& read) {
        return read.name == "SRead" && l.start_ns <= read.start_ns && read.end_ns() <= l.end_ns();
      }));
    }
  }
}

TEST_CASE("a thread that preprocesses and consumes has a worker log and a main log") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 3; ++i) {
    LOTUS_BATCH_WAIT(i);
    LOTUS_BATCH_PREPROCESSED(i);
  }
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(lines.size() == 6);
  CHECK(support::count_files(run.path(), "lotustrace_log_main_pid_") == 1);
  CHECK(support::count_files(run.path(), "lotustrace_log_worker_pid_") == 1);
}

TEST_CASE("batch macros do nothing while nothing is recorded") {
  const std::uint64_t before = lotus::dropped();
  LOTUS_BATCH_WAIT(1);
  LOTUS_BATCH_PREPROCESSED(1);
  LOTUS_BATCH_ARRIVED(1);
  LOTUS_BATCH_CONSUMED(1);
  LOTUS_BATCH_QUEUED(1);
  CHECK(lotus::dropped() == before);
}

TEST_CASE("a batch number that is too large is dropped, counted and reported once") {
  support::collected_messages::clear();
  const support::temp_directory run;
  lotus::options o;
  o.log_file = run.prefix();
  o.on_message = &support::collected_messages::add;
  const std::uint64_t before = lotus::dropped();
  REQUIRE(lotus::start(o));
  constexpr std::uint64_t most = (std::uint64_t{1} << 56) - 1;
  LOTUS_BATCH_CONSUMED(most);
  LOTUS_BATCH_CONSUMED(most + 1);
  { LOTUS_BATCH_WAIT(-1); }
  { LOTUS_BATCH_PREPROCESSED(-1); }
  LOTUS_BATCH_ARRIVED(-2);
  LOTUS_BATCH_QUEUED(-2);
  lotus::stop();
  const auto lines = support::read_logs(run.path());
  CHECK(lines.size() == 1);
  CHECK(count_named(lines, "SBatchConsumed_72057594037927935") == 1);
  CHECK(lotus::dropped() - before == 5);
  const auto messages = support::collected_messages::all();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].find("batch number 72057594037927936 ") == 0);
  CHECK(messages[1] == "5 records were dropped");
  // While no recording runs, no record may count as dropped.
  LOTUS_BATCH_CONSUMED(-1);
  CHECK(lotus::dropped() - before == 5);
}
