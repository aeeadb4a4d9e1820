// Tests several loaders: each must have its records in its own folder, also after a kill, after a
// fork, or when its ring is full.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "../faults/recording.hpp"
#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;
using support::read_side_log;

namespace {

bool no_logs_in(const support::fs::path& folder) {
  return !support::fs::exists(folder) || read_logs(folder).empty();
}

}  // namespace

TEST_CASE("only what ends within a loader's block is in its directory") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  {
    LOTUS_SCOPE("Around");
    LOTUS_LOADER("val");
    { LOTUS_BATCH_PREPROCESSED(0); }
    LOTUS_BATCH_CONSUMED(0);
    { LOTUS_STAGE("Decode", 0); }
    LOTUS_COUNTER("queue", 1);
    {
      LOTUS_LOADER("test");
      { LOTUS_SCOPE("Inner"); }
      {
        LOTUS_LOADER("");
        { LOTUS_SCOPE("Default"); }
      }
    }
    { LOTUS_SCOPE("Val"); }
    std::thread{[] { LOTUS_SCOPE("OtherThread"); }}.join();
  }
  { LOTUS_BATCH_PREPROCESSED(0); }
  lotus::stop();
  const auto outside = read_logs(run.path());
  const auto val = read_logs(run.path() / "val");
  const auto test = read_logs(run.path() / "test");
  CHECK(outside.size() == 4);
  for (const char* name : {"SAround", "SDefault", "SOtherThread", "SBatchPreprocessed_0"}) {
    CHECK(count_named(outside, name) == 1);
  }
  CHECK(val.size() == 4);
  for (const char* name : {"SBatchPreprocessed_0", "SBatchConsumed_0", "SDecode", "SVal"}) {
    CHECK(count_named(val, name) == 1);
  }
  CHECK(test.size() == 1);
  CHECK(count_named(test, "SInner") == 1);
  CHECK(read_side_log(run.path() / "val", "stage").size() == 1);
  CHECK(read_side_log(run.path() / "val", "counter").size() == 1);
  CHECK(read_side_log(run.path(), "stage").empty());
}

TEST_CASE("no loader name leads out of the run directory") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  const std::string longest(5000, '/');
  for (const char* name : {"..", ".", "/", "../../etc", "a/b", ".hidden", longest.c_str()}) {
    LOTUS_LOADER(name);
    LOTUS_SCOPE("Crop");
  }
  lotus::stop();
  std::size_t folders = 0;
  for (const auto& entry : support::fs::recursive_directory_iterator(run.path())) {
    if (!entry.is_directory()) continue;
    ++folders;
    CHECK(entry.path().parent_path() == run.path());
    CHECK(count_named(read_logs(entry.path()), "SCrop") == 1);
  }
  CHECK(folders == 7);
  CHECK(support::fs::exists(run.path() / "%2E."));
  CHECK(support::fs::exists(run.path() / "a%2Fb"));
  CHECK(read_logs(run.path()).empty());
}

TEST_CASE("a loader entered before recording is used, also in the next recording") {
  const support::temp_directory first;
  const support::temp_directory second;
  {
    LOTUS_LOADER("val");
    REQUIRE(lotus::start(options_for(first)));
    { LOTUS_SCOPE("Crop"); }
    lotus::stop();
    REQUIRE(lotus::start(options_for(second)));
    { LOTUS_SCOPE("Crop"); }
  }
  { LOTUS_SCOPE("Crop"); }
  lotus::stop();
  CHECK(no_logs_in(first.path()));
  CHECK(read_logs(first.path() / "val").size() == 1);
  CHECK(read_logs(second.path() / "val").size() == 1);
  CHECK(read_logs(second.path()).size() == 1);
}

TEST_CASE("a forked worker records into the loader that its parent was in") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  {
    LOTUS_LOADER("val");
    { LOTUS_SCOPE("Parent"); }
    support::status_of_child([] {
      { LOTUS_SCOPE("Child"); }
      {
        LOTUS_LOADER("deeper");
        LOTUS_SCOPE("Deeper");
      }
    });
  }
  lotus::stop();
  const auto val = read_logs(run.path() / "val");
  CHECK(count_named(val, "SParent") == 1);
  CHECK(count_named(val, "SChild") == 1);
  CHECK(read_logs(run.path() / "deeper").size() == 1);
  CHECK(no_logs_in(run.path()));
}

TEST_CASE("loaders can change while the ring is full, drained or not") {
  const support::temp_directory run;
  lotus::options chosen = options_for(run);
  chosen.ring_records = 64;
  chosen.when_full = GENERATE(lotus::full_ring::drain, lotus::full_ring::drop);
  chosen.drain_interval_ms = 1'000'000;
  chosen.cpu_time = false;
  REQUIRE(lotus::start(chosen));
  const std::uint64_t before = lotus::dropped();
  for (int round = 0; round < 50; ++round) {
    LOTUS_LOADER(round % 2 == 0 ? "even" : "odd");
    for (int i = 0; i < 40 + round; ++i) {
      LOTUS_SCOPE_DYNAMIC(round % 2 == 0 ? "even" : "odd");
    }
  }
  const std::uint64_t dropped = lotus::dropped() - before;
  lotus::stop();
  const auto even = read_logs(run.path() / "even");
  const auto odd = read_logs(run.path() / "odd");
  CHECK(count_named(even, "Seven") == even.size());
  CHECK(count_named(odd, "Sodd") == odd.size());
  CHECK(even.size() + odd.size() + dropped == 50 * 40 + 49 * 50 / 2);
  if (chosen.when_full == lotus::full_ring::drain) CHECK(dropped == 0);
}

TEST_CASE("a loader's directory that is a link is rejected, and its records are kept") {
  const support::temp_directory run;
  const support::temp_directory elsewhere;
  support::fs::create_directory_symlink(elsewhere.path(), run.path() / "val");
  support::collected_messages::clear();
  lotus::options chosen = options_for(run);
  chosen.on_message = &support::collected_messages::add;
  REQUIRE(lotus::start(chosen));
  {
    LOTUS_LOADER("val");
    LOTUS_SCOPE("Crop");
  }
  lotus::flush();
  support::fs::remove(run.path() / "val");
  lotus::stop();
  CHECK(support::fs::is_empty(elsewhere.path()));
  CHECK(support::collected_messages::count("val") > 0);
  CHECK(read_logs(run.path() / "val").size() == 1);
}

TEST_CASE("after a kill, each loader has all its ended records once") {
  const support::temp_directory run;
  lotus::options chosen = options_for(run);
  chosen.drain_interval_ms = 1'000'000;
  const int status = support::status_of_child([&] {
    lotus::start(chosen);
    for (int round = 0; round < 300; ++round) {
      LOTUS_LOADER(round % 3 == 0 ? "a" : round % 3 == 1 ? "b" : "");
      { LOTUS_STAGE("Decode", round); }
      LOTUS_COUNTER("round", round);
      LOTUS_BATCH_TAKES(round, round);
      if (round == 100) lotus::flush();
      const lotus::async_scope load{"Load"};
    }
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  support::recover_all(run);
  std::size_t sum = 0;
  for (const char* folder : {"a", "b", ""}) {
    const support::fs::path path = *folder == '\0' ? run.path() : run.path() / folder;
    CAPTURE(path);
    const auto lines = read_logs(path);
    CHECK(count_named(lines, "SDecode") == 100);
    CHECK(count_named(lines, "SLoad") == 100);
    for (const char* kind : {"stage", "counter", "takes", "piece"}) {
      CHECK(read_side_log(path, kind).size() == 100);
    }
    sum += lines.size();
  }
  CHECK(sum == 600);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}
