#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::read_logs;

namespace {

std::vector<std::string> messages;
void keep_message(const char* message) {
  messages.emplace_back(message);
}

lotus::options quiet(const std::string& log_file) {
  messages.clear();
  lotus::options o;
  o.log_file = log_file;
  o.on_message = keep_message;
  return o;
}

void record(const char* name, int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE_DYNAMIC(name);
}

}  // namespace

TEST_CASE("start creates the directory and its parents") {
  const support::temp_directory run;
  const auto deep = run.path() / "a" / "b c";
  REQUIRE(lotus::start(quiet((deep / "lotustrace_log").string())));
  record("x", 1);
  lotus::stop();
  CHECK(read_logs(deep).size() == 1);
  CHECK(messages.empty());
}

TEST_CASE("the name of a directory alone means that directory") {
  const support::temp_directory run;
  REQUIRE(lotus::start(quiet(run.path().string())));
  record("x", 1);
  CHECK(lotus::start(quiet(run.prefix())));  // the same location
  lotus::stop();
  CHECK(read_logs(run.path()).size() == 1);
  // A name that is no directory is the beginning of the logs' names, as before.
  REQUIRE(lotus::start(quiet((run.path() / "other").string())));
  record("y", 1);
  lotus::stop();
  CHECK_FALSE(support::fs::exists(run.path() / "other"));
  CHECK(read_logs(run.path()).size() == 2);
}

TEST_CASE("start appends to existing logs and reports that") {
  const support::temp_directory run;
  REQUIRE(lotus::start(quiet(run.prefix())));
  record("first", 2);
  lotus::stop();
  REQUIRE(lotus::start(quiet(run.prefix())));
  record("second", 3);
  lotus::stop();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("exist already") != std::string::npos);
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "Sfirst") == 2);
  CHECK(count_named(lines, "Ssecond") == 3);
}

TEST_CASE("a program that starts repeatedly reports existing logs once") {
  const support::temp_directory run;
  const support::temp_directory other;
  const auto record_in = [](const support::temp_directory& place, int times) {
    const lotus::options chosen = quiet(place.prefix());
    for (int i = 0; i < times; ++i) {
      REQUIRE(lotus::start(chosen));
      record("x", 1);
      lotus::stop();
    }
  };
  record_in(run, 4);
  CHECK(messages.size() == 1);
  record_in(other, 4);  // the message is different for another directory
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find(other.prefix()) != std::string::npos);
  CHECK(read_logs(run.path()).size() == 4);
}

TEST_CASE("settings that contradict each other are reported once, when the recording starts") {
  for (const bool contradict : {true, false}) {
    const support::temp_directory run;
    auto o = quiet(run.prefix());
    o.drain_interval_ms = 200;
    o.keep_ms = contradict ? 100 : 300'000;
    o.keep_bytes = 1 << 24;
    setenv("LOTUS_KEEP_BYTES", contradict ? "1000000" : "16777216", 1);
    const bool started = lotus::start(o);
    unsetenv("LOTUS_KEEP_BYTES");
    REQUIRE(started);
    const std::vector<std::string> at_start = messages;
    record("x", 3);
    lotus::flush();
    lotus::stop();
    CHECK(messages == at_start);
    if (!contradict) {
      CHECK(at_start == std::vector<std::string>());
      continue;
    }
    REQUIRE(at_start.size() == 2);
    CHECK(at_start[0].find("LOTUS_KEEP_BYTES=1000000 is not used, because the program sets "
                           "options::keep_bytes to 16777216") != std::string::npos);
    CHECK(at_start[1].find("options::keep_ms is 100, less than drain_interval_ms, which is 200") !=
          std::string::npos);
  }
}

TEST_CASE("start that cannot write reports it once and returns false") {
  const support::temp_directory run;
  { std::ofstream{run.path() / "file"} << "not a directory"; }
  const std::string impossible = (run.path() / "file" / "lotustrace_log").string();
  messages.clear();
  for (int i = 0; i < 3; ++i) {
    lotus::options o;
    o.log_file = impossible;
    o.on_message = keep_message;
    CHECK_FALSE(lotus::start(o));
    record("unrecorded", 10);
  }
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("Not a directory") != std::string::npos);
  CHECK(messages[0].find(impossible) != std::string::npos);
}

TEST_CASE("start rejects a name that is too long for a path") {
  CHECK_FALSE(lotus::start(quiet(std::string(5000, 'x') + "/log")));
  CHECK_FALSE(lotus::start(quiet("run/" + std::string(300, 'x'))));
}

TEST_CASE("starting the same run twice is allowed, and starting another one is rejected") {
  const support::temp_directory run;
  REQUIRE(lotus::start(quiet(run.prefix())));
  CHECK(lotus::start(quiet(run.prefix())));
  CHECK_FALSE(lotus::start(quiet(run.prefix() + "2")));
  lotus::stop();
  lotus::stop();
}

TEST_CASE("flush writes all complete records during recording") {
  const support::temp_directory run;
  auto o = quiet(run.prefix());
  o.drain_interval_ms = 1'000'000;
  REQUIRE(lotus::start(o));
  record("a", 5);
  lotus::flush();
  CHECK(count_named(read_logs(run.path()), "Sa") == 5);
  record("a", 1);
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Sa") == 6);
}

TEST_CASE("the drain thread writes records without a flush") {
  const support::temp_directory run;
  auto o = quiet(run.prefix());
  o.drain_interval_ms = 10;
  REQUIRE(lotus::start(o));
  record("background", 5);
  std::size_t seen = 0;
  for (int i = 0; i < 1000 && seen < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    seen = count_named(read_logs(run.path()), "Sbackground");
  }
  CHECK(seen == 5);
  lotus::stop();
}

TEST_CASE("a thread drains its own full ring, so that nothing is lost") {
  const support::temp_directory run;
  auto o = quiet(run.prefix());
  o.ring_records = 64;
  o.drain_interval_ms = 1'000'000;
  const std::uint64_t before = lotus::dropped();
  REQUIRE(lotus::start(o));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([] { record("full", 25'000); });
  for (auto& t : threads) t.join();
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Sfull") == 100'000);
  CHECK(lotus::dropped() == before);
}

TEST_CASE("full_ring::drop drops and counts what neither the drain thread nor memory takes") {
  const support::temp_directory run;
  auto o = quiet(run.prefix());
  o.ring_records = 64;
  o.drain_interval_ms = 1'000'000;
  o.when_full = lotus::full_ring::drop;
  o.backlog_bytes = 0;
  o.cpu_time = false;  // CPU time records would also need space in the ring
  const std::uint64_t before = lotus::dropped();
  REQUIRE(lotus::start(o));
  // Waits until the drain shortly after start() is over.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  record("maybe", 100'000);
  lotus::stop();
  const std::size_t kept = count_named(read_logs(run.path()), "Smaybe");
  const std::uint64_t dropped = lotus::dropped() - before;
  CHECK(kept >= 64);
  CHECK(dropped > 0);
  CHECK(kept + dropped == 100'000);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("dropped") != std::string::npos);
}

TEST_CASE("full_ring::drop loses nothing while memory has room for unwritten records") {
  const support::temp_directory run;
  auto o = quiet(run.prefix());
  o.ring_records = 64;
  o.drain_interval_ms = 1'000'000;
  o.when_full = lotus::full_ring::drop;
  o.cpu_time = false;
  const std::uint64_t before = lotus::dropped();
  REQUIRE(lotus::start(o));
  std::size_t recorded = 0;
  std::uint64_t dropped = before;
  for (int i = 0; i < 300; ++i) {
    record("kept", 30);
    recorded += 30;
    // After records were dropped, waits until the drain thread has emptied the ring. On a busy
    // machine, the kernel may run that thread late.
    while (lotus::dropped() != dropped) {
      dropped = lotus::dropped();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      record("kept", 1);
      ++recorded;
    }
  }
  lotus::stop();
  const std::size_t kept = count_named(read_logs(run.path()), "Skept");
  CHECK(kept + (lotus::dropped() - before) == recorded);
  CHECK(kept > recorded / 2);
}

TEST_CASE("a thread can record during many starts and stops") {
  const support::temp_directory run{support::in_memory()};
  std::atomic<bool> done{false};
  std::thread busy{[&] {
    while (!done) record("busy", 10);
  }};
  constexpr int starts = support::rounds(1000);
  for (int i = 0; i < starts; ++i) {
    REQUIRE(lotus::start(quiet(run.prefix())));
    record("mine", 1);
    lotus::stop();
  }
  done = true;
  busy.join();
  CHECK(count_named(read_logs(run.path()), "Smine") == starts);
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

TEST_CASE("start from many threads at once starts one session") {
  const support::temp_directory run;
  std::vector<std::thread> threads;
  std::atomic<int> started{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      lotus::options o;
      const std::string prefix = run.prefix();
      o.log_file = prefix;
      o.on_message = [](const char*) {};
      if (lotus::start(o)) ++started;
      record("each", 100);
    });
  }
  for (auto& t : threads) t.join();
  lotus::stop();
  CHECK(started == 8);
  CHECK(count_named(read_logs(run.path()), "Seach") == 800);
}

TEST_CASE("a run that stops leaves no ring file") {
  const support::temp_directory run;
  REQUIRE(lotus::start(quiet(run.prefix())));
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 1);
  record("x", 1);
  lotus::stop();
  CHECK(support::count_files(run.path(), ".lotus_ring_") == 0);
}

TEST_CASE("thousands of threads reuse rings and lose no record") {
  const support::temp_directory run{support::in_memory()};
  REQUIRE(lotus::start(quiet(run.prefix())));
  for (int t = 0; t < 10'000; ++t) std::thread{[] { record("short", 3); }}.join();
  std::vector<std::thread> threads;
  for (int t = 0; t < 500; ++t) threads.emplace_back([] { record("short", 3); });
  for (auto& t : threads) t.join();
  std::size_t ring_bytes = 0;
  for (const auto& entry : support::fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) == 0) {
      ring_bytes += entry.file_size();
    }
  }
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "Sshort") == 31'500);
  // There must not be many more rings than about twice the maximum number of simultaneous threads.
  CHECK(ring_bytes < 1'100 * (8192 * 24 + 16384));
}

namespace {

struct last_lines {
  ~last_lines() { LOTUS_SCOPE("LastWords"); }
};

}  // namespace

TEST_CASE("records of thread_local destructors are kept") {
  const support::temp_directory run;
  REQUIRE(lotus::start(quiet(run.prefix())));
  for (int t = 0; t < 20; ++t) {
    std::thread{[] {
      static thread_local last_lines at_end;
      (void)at_end;
      record("body", 1);
    }}.join();
  }
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "SLastWords") == 20);
}

// The pages of a sanitizer's shadow memory fault, too, and those of an emulator.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LOTUS_TEST_EMULATOR)
  #define OTHER_PAGES_FAULT
#elif defined(__has_feature)
  #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    #define OTHER_PAGES_FAULT
  #endif
#endif

#ifndef OTHER_PAGES_FAULT
TEST_CASE("a thread that records much stores records without page faults") {
  constexpr int populate_write = 23;
  alignas(4096) static char page[4096];
  if (madvise(page, sizeof(page), populate_write) != 0) {
    WARN("the kernel is too old: nothing is tested");
    return;
  }
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  const support::temp_directory run;
  lotus::options chosen = quiet(run.prefix());
  chosen.drain_interval_ms = 5;
  REQUIRE(lotus::start(chosen));
  record("first", 3000);
  while (count_named(read_logs(run.path()), "Sfirst") < 3000) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  lotus::flush();  // waits until the drain thread is done with this thread
  const long before = faults();
  record("second", 3000);
  const long after = faults();
  lotus::stop();
  // The records of "second" are in 18 pages.
  CHECK(after - before <= 3);
}
#endif
