// Tests that a snapshot contains each complete record of the run exactly once, while the recording
// continues.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "faults/small_disk.hpp"
#include "kept/snapshot_run.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

using namespace std::chrono_literals;
using support::consume;
using support::has_end;
using support::names_in;
using support::snapshot_run;

namespace fs = std::filesystem;

TEST_CASE("a snapshot has each complete record once, and the run keeps them all") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.keep_bytes = GENERATE(0U, 50'000'000U);
  if (o.keep_bytes != 0 && std::getenv("LOTUS_TEST_UNPACK") == nullptr) {
    lotus_test::skip("LOTUS_TEST_UNPACK names no lotus-tool");
    return;
  }
  REQUIRE(lotus::start(o));
  std::vector<std::thread> threads;
  for (int t = 1; t <= 3; ++t) threads.emplace_back([t] { consume(t * 1000, t * 1000 + 500); });
  for (auto& t : threads) t.join();
  consume(0, 500);
  REQUIRE(lotus::snapshot("it's slow/now"));
  consume(500, 700);
  REQUIRE(lotus::snapshot("again"));
  lotus::stop();
  const auto found = here.snapshots();
  REQUIRE(found.size() == 2);
  CHECK(found[0].filename().string().rfind("run.snapshot-20", 0) == 0);
  CHECK(has_end(found[0], "Z-it-s-slow-now"));
  CHECK(has_end(found[1], "Z-again"));
  CHECK(names_in(found[0]).size() == 2000);
  CHECK(names_in(found[0]).count("SBatchConsumed_499") == 1);
  CHECK(names_in(found[0]).count("SBatchConsumed_500") == 0);
  CHECK(names_in(found[1]).size() == 2200);
  CHECK(names_in(here.run).size() == 2200);
}

TEST_CASE("a snapshot during recording has whole lines, each once, and the run loses nothing") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.format = lotus::log_format::text;
  o.keep_bytes = 1'000'000'000;
  o.ring_records = 128;
  REQUIRE(lotus::start(o));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  std::atomic<std::int64_t> done[3] = {};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; !over; ++i) {
        LOTUS_BATCH_CONSUMED((std::int64_t{1} << 40) * t + i);
        done[t] = i + 1;
        if (i % 64 == 0) std::this_thread::sleep_for(100us);
      }
    });
  }
  std::vector<std::int64_t> before;
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(20ms);
    before.push_back(done[0] + done[1] + done[2]);
    REQUIRE(lotus::snapshot("s" + std::to_string(i)));
  }
  over = true;
  for (auto& t : threads) t.join();
  lotus::stop();
  const auto found = here.snapshots();
  REQUIRE(found.size() == 10);
  for (const fs::path& snapshot : found) {
    const std::multiset<std::string> names = names_in(snapshot);
    const std::set<std::string> different(names.begin(), names.end());
    CHECK(different.size() == names.size());
    const auto i = static_cast<std::size_t>(snapshot.string().back() - '0');
    CHECK(static_cast<std::int64_t>(names.size()) >= before[i]);
  }
  CHECK(static_cast<std::int64_t>(names_in(here.run).size()) == done[0] + done[1] + done[2]);
}

TEST_CASE("snapshots of a run in the working directory are stored there, apart from the run") {
  const support::temp_directory here;
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  lotus::options o = snapshot_run().options();
  o.log_file = "lotustrace_log";
  REQUIRE(lotus::start(o));
  consume(0, 10);
  REQUIRE(lotus::snapshot("x"));
  REQUIRE(lotus::snapshot("y"));
  lotus::stop();
  fs::current_path(before);
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(here.path())) {
    if (entry.path().filename().string().rfind("lotustrace_log.snapshot-", 0) != 0) continue;
    ++found;
    CHECK(names_in(entry.path()).size() == 10);
    for (const auto& in : fs::directory_iterator(entry.path())) CHECK_FALSE(in.is_directory());
  }
  CHECK(found == 2);
}

TEST_CASE("a snapshot contains the loaders' directories") {
  const snapshot_run here;
  REQUIRE(lotus::start(here.options()));
  {
    LOTUS_LOADER("val");
    consume(0, 10);
  }
  REQUIRE(lotus::snapshot("x"));
  lotus::stop();
  CHECK(names_in(here.snapshots().at(0) / "val").size() == 10);
}

TEST_CASE("the oldest snapshots are deleted if all together exceed their limit") {
  const snapshot_run here;
  lotus::options o = here.options();
  o.snapshots_bytes = 30'000;
  REQUIRE(lotus::start(o));
  for (int i = 0; i < 5; ++i) {
    consume(i * 300, (i + 1) * 300);
    REQUIRE(lotus::snapshot("s" + std::to_string(i)));
  }
  lotus::stop();
  const auto found = here.snapshots();
  REQUIRE(!found.empty());
  CHECK(found.size() < 3);
  CHECK(has_end(found.back(), "-s4"));
}

TEST_CASE("a snapshot without disk space leaves nothing behind and reports why") {
  const support::temp_directory around;
  const support::small_disk disk(around.path() / "disk", 4'000'000);
  if (!disk.mounted()) return;
  const fs::path run = around.path() / "disk" / "run";
  snapshot_run elsewhere;
  lotus::options o = elsewhere.options();
  o.log_file = (run / "lotustrace_log").string();
  REQUIRE(lotus::start(o));
  consume(0, 1000);
  lotus::flush();
  // Writes a log of another process of the run. A snapshot copies such logs too, but this one is
  // too large for the disk.
  std::ofstream(run / "lotustrace_log_worker_pid_1") << std::string(1'500'000, 'x') << '\n';
  support::fill_disk(around.path() / "disk" / "filler");
  CHECK_FALSE(lotus::snapshot("full"));
  fs::remove(around.path() / "disk" / "filler");
  fs::remove(run / "lotustrace_log_worker_pid_1");
  std::size_t others = 0;
  for (const auto& entry : fs::directory_iterator(around.path() / "disk")) {
    others += entry.path() == run ? 0 : 1;
  }
  CHECK(others == 0);
  CHECK(lotus::snapshot("now"));
  lotus::stop();
  const std::vector<std::string> messages = support::collected_messages::all();
  REQUIRE(messages.size() >= 2);
  CHECK(messages[0].find("cannot store a snapshot") != std::string::npos);
  CHECK(messages[0].find("No space left") != std::string::npos);
  CHECK(names_in(run).size() == 1000);
}

TEST_CASE("a forked child can take snapshots, and a process that does not record takes none") {
  const snapshot_run here;
  lotus::options o = here.options();
  CHECK_FALSE(lotus::snapshot("none"));
  REQUIRE(lotus::start(o));
  consume(0, 10);
  const pid_t child = fork();
  if (child == 0) {
    consume(10, 20);
    _exit(lotus::snapshot("child") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  lotus::stop();
  REQUIRE(here.snapshots().size() == 1);
  const auto names = names_in(here.snapshots()[0]);
  CHECK(names.count("SBatchConsumed_15") == 1);
  CHECK(names_in(here.run).count("SBatchConsumed_5") == 1);
}

TEST_CASE("a snapshot deletes the unfinished snapshots of killed processes") {
  const snapshot_run here;
  const auto unfinished = [&](const std::string& reason) {
    const fs::path folder =
        here.around.path() / ("run.snapshot-20260101T000000.000000Z-" + reason + ".unfinished");
    fs::create_directories(folder / "loader");
    std::ofstream(folder / "loader" / "log") << "text";
    return folder;
  };
  const fs::path dead = unfinished("dead");
  const fs::path running = unfinished("living");
  const int held = open(running.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(held, LOCK_EX) == 0);
  const fs::path others =
      here.around.path() / "other.snapshot-20260101T000000.000000Z-x.unfinished";
  fs::create_directory(others);
  REQUIRE(lotus::start(here.options()));
  consume(0, 10);
  REQUIRE(lotus::snapshot("next"));
  lotus::stop();
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(running / "loader" / "log"));
  CHECK(fs::exists(others));
  close(held);
  CHECK(here.snapshots().size() == 3);
}
