// Tests calls that running processes count instead of recording: top must show them with the
// recorded operations, each exactly once.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "catch.hpp"
#include "commands/top/live_runs.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::contains;
using lotus::tool_test::run;
using lotus::tool_test::temp_dir;

namespace {

constexpr std::int64_t second = 1'000'000'000;

/// A child process that calls `step(n)` for each number n that it receives, and then sends an
/// answer.
class stepping_child {
 public:
  template <class Step>
  stepping_child(const std::string& prefix, Step&& step) {
    REQUIRE(pipe(reported_) == 0);
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(250);
    lotus::options o;
    o.log_file = prefix;
    o.drain_interval_ms = 60'000;
    lotus::start(o);
    for (int n = 0; read(reported_[0], &n, sizeof(n)) == sizeof(n) && n >= 0;) {
      step(n);
      if (write(done_[1], "", 1) != 1) _exit(1);
    }
    lotus::stop();
    _exit(0);
  }
  ~stepping_child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {reported_[0], reported_[1], done_[0], done_[1]}) close(fd);
  }
  stepping_child(const stepping_child&) = delete;
  stepping_child& operator=(const stepping_child&) = delete;

  void step(int n) const {
    char byte = 0;
    REQUIRE(write(reported_[1], &n, sizeof(n)) == sizeof(n));
    REQUIRE(read(done_[0], &byte, 1) == 1);
  }
  void stop() const {
    const int n = -1;
    REQUIRE(write(reported_[1], &n, sizeof(n)) == sizeof(n));
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = -1;
  int reported_[2] = {};
  int done_[2] = {};
};

void call(int n) {
  for (int i = 0; i < n; ++i) LOTUS_SCOPE_AGGREGATED("Token");
}

const live_operation* aggregated(const live_run& of, const std::string& name) {
  const auto at =
      std::find_if(of.now.operations.begin(), of.now.operations.end(),
                   [&](const live_operation& op) { return op.aggregated && op.name == name; });
  return at == of.now.operations.end() ? nullptr : &*at;
}

std::uint64_t calls(const live_runs& runs, std::size_t chosen, const std::string& name) {
  if (chosen >= runs.all().size()) return 0;
  const live_operation* const op = aggregated(runs.all()[chosen], name);
  return op == nullptr ? 0 : op->calls;
}

counted_calls counted(std::uint64_t count) {
  return {count, 10 * count, count, {{10, count}}};
}

}  // namespace

TEST_CASE("counted calls of a running process are shown exactly, as they occur") {
  const temp_dir dir;
  const stepping_child child(dir.path() + "/lotustrace_log", [](int n) {
    LOTUS_SCOPE("Sentence");
    call(n);
  });
  child.step(300);
  live_runs runs({dir.path()}, std::string(default_prefix), 3600 * second);
  runs.look(0);
  // All calls count, because the process is younger than the window.
  CHECK(calls(runs, 0, "Token") == 300);
  child.step(1000);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 1300);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 1300);
  REQUIRE(aggregated(runs.all()[0], "Token") != nullptr);
  const live_operation& op = *aggregated(runs.all()[0], "Token");
  CHECK(op.total_ns > 0);
  CHECK(op.self_ns <= op.total_ns);
  CHECK(op.max_ns > 0);
  CHECK(op.max_ns <= op.total_ns);
  const auto& all = runs.all()[0].now.operations;
  CHECK(std::any_of(all.begin(), all.end(), [](const live_operation& o) {
    return o.name == "Sentence" && !o.aggregated && o.calls == 2;
  }));
}

TEST_CASE("for a process older than the window, only calls between two readings are shown") {
  const temp_dir dir;
  const stepping_child child(dir.path() + "/lotustrace_log", call);
  child.step(5000);
  usleep(120'000);
  live_runs runs({dir.path()}, std::string(default_prefix), second / 10);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 0);
  CHECK(runs.needs_second_reading());
  child.step(70);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 70);
  CHECK_FALSE(runs.needs_second_reading());
}

TEST_CASE("loaders, threads and names that appear later are shown separately") {
  const temp_dir dir;
  const stepping_child child(dir.path() + "/lotustrace_log", [](int n) {
    const std::string name = "N" + std::to_string(n);
    LOTUS_SCOPE_AGGREGATED(name);
    {
      LOTUS_LOADER("val");
      LOTUS_SCOPE_AGGREGATED("InVal");
    }
    // In the ring file, the ring of a new thread comes after the blocks of earlier threads.
    std::thread([] {
      LOTUS_SCOPE("Threads");
      call(2);
    }).join();
  });
  live_runs runs({dir.path()}, std::string(default_prefix), 3600 * second);
  for (int n = 0; n < 3; ++n) child.step(n);
  for (const bool again : {false, true}) {
    CAPTURE(again);
    runs.look(0);
    const std::string first = runs.all()[0].loader;
    CAPTURE(first);
    runs.look(1);
    REQUIRE(runs.all().size() == 2);
    const std::size_t val = runs.all()[0].loader == "val" ? 0 : 1;
    runs.look(val);
    CHECK(calls(runs, val, "InVal") == 3);
    CHECK(calls(runs, val, "Token") == 0);
    runs.look(1 - val);
    CHECK(calls(runs, 1 - val, "Token") == 6);
    CHECK(calls(runs, 1 - val, "N1") == 1);
    const auto& all = runs.all()[1 - val].now.operations;
    CHECK(std::any_of(all.begin(), all.end(),
                      [](const live_operation& o) { return o.name == "Threads" && o.calls == 3; }));
  }
}

TEST_CASE("calls of several processes are added up once, and those of an ended one stay") {
  const temp_dir dir;
  const stepping_child one(dir.path() + "/lotustrace_log", call);
  const stepping_child other(dir.path() + "/lotustrace_log", call);
  one.step(10);
  other.step(200);
  live_runs runs({dir.path(), dir.path()}, std::string(default_prefix), 3600 * second);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 210);
  one.stop();
  other.step(1000);
  runs.look(0);
  CHECK(calls(runs, 0, "Token") == 1210);
}

TEST_CASE("top --once marks counted calls and lists them by self time among the operations") {
  const temp_dir dir;
  const stepping_child child(dir.path() + "/lotustrace_log", [](int n) {
    for (int i = 0; i < 20; ++i) {
      LOTUS_SCOPE("Sentence");
      for (int k = 0; k < n; ++k) {
        LOTUS_SCOPE_AGGREGATED("Tok\033en");
        usleep(100);
      }
    }
  });
  child.step(5);
  const auto r = run({"top", dir.path(), "--once"});
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  CHECK(contains(r.out, " (aggregated"));
  CHECK_FALSE(contains(r.out, "\033"));
  CHECK(contains(r.out, " aggregated calls/s"));
  CHECK(contains(r.out, "Sentence"));
  CHECK(r.out.find("(aggregated") < r.out.find("Sentence"));
  usleep(150'000);
  const auto between =
      run({"top", dir.path(), "--once", "--window", "100ms", "--interval", "50ms"});
  CHECK_FALSE(contains(between.out, "(aggregated"));  // no calls were made in this time
}

TEST_CASE("the window of readings has no more readings than it needs, and nothing before it") {
  counted_window window(8 * second);
  const std::pair<std::string, std::string> token{"", "SToken"};
  for (std::int64_t t = 0; t <= 100; ++t) {
    window.add(-1000 * second, 1000 * second + t * second / 10,
               {{token, counted(static_cast<std::uint64_t>(t) * 7)}});
  }
  const auto last = window.since(1002 * second);
  REQUIRE(last);
  const counted_calls& came = last->calls.at(token);
  CHECK(last->ns >= 8 * second);
  CHECK(last->ns <= 9 * second);
  CHECK(came.count == static_cast<std::uint64_t>(last->ns / (second / 10)) * 7);
  CHECK(came.total_ticks == 10 * came.count);
  REQUIRE(came.buckets.size() == 1);
  CHECK(came.buckets[0].second == came.count);
  // If no more calls are made, the rate must fall to zero.
  for (std::int64_t t = 1; t <= 200; ++t) {
    window.add(-1000 * second, 1010 * second + t * second / 10, {{token, counted(700)}});
  }
  const auto quiet = window.since(1022 * second);
  REQUIRE(quiet);
  CHECK(quiet->calls.empty());
  CHECK(quiet->ns == 8 * second);
}
