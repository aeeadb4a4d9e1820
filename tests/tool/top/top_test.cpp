// lotus-tool top, as it prints once.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "catch.hpp"
#include "commands/top/clock_time.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

std::int64_t now_ns() {
  return lotus::tool::time_of(CLOCK_REALTIME);
}

/// A run whose consumer waits 9 ms of 10 for batches of 9 ms, made by one worker; `ago` its end.
void write_run(const temp_dir& dir, const std::string& folder, std::int64_t batches,
               std::int64_t ago_ns) {
  constexpr std::int64_t period_ns = 10'000'000;
  const std::int64_t begin = now_ns() - ago_ns - batches * period_ns;
  std::string worker;
  std::string main;
  const auto line = [](const std::string& name, std::int64_t start, std::int64_t duration) {
    return name + ',' + std::to_string(start) + ',' + std::to_string(duration) + '\n';
  };
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::int64_t at = begin + i * period_ns;
    const std::string number = std::to_string(i);
    worker += line("SDecode", at, 6'000'000);
    worker += line("SCrop%1B", at + 6'000'000, 3'000'000);
    worker += line("SBatchPreprocessed_" + number, at, 9'000'000);
    main += line("SBatchWait_" + number, at, 9'000'100);
    main += line("SBatchConsumed_" + number, at + 9'000'200, 1000);
  }
  dir.file(folder + "/lotustrace_log_worker_pid_11", worker);
  dir.file(folder + "/lotustrace_log_main_pid_10", main);
}

/// As the line of rates has it.
double batches_per_s(const std::string& out) {
  const std::size_t behind = out.find(" batches/s, ", out.find("\nlast "));
  REQUIRE(behind != std::string::npos);
  return std::stod(out.substr(out.rfind(' ', behind - 1)));
}

/// The seconds that stand behind `text`.
double seconds_behind(const std::string& out, const std::string& text) {
  const std::size_t at = out.find(text);
  REQUIRE(at != std::string::npos);
  std::size_t digits = 0;
  const std::string number = out.substr(at + text.size());
  const double seconds = std::stod(number, &digits);
  REQUIRE(number.compare(digits, 2, " s") == 0);
  return seconds;
}

/// A child that records into `prefix` and waits to be killed.
class recording_child {
 public:
  /// @param waits  at the end for a batch that does not come.
  explicit recording_child(const std::string& prefix, bool waits = false) {
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ != 0) {
      char byte = 0;
      REQUIRE(read(done_[0], &byte, 1) == 1);
      return;
    }
    lotus::options o;
    o.log_file = prefix;
    o.drain_interval_ms = 60'000;
    lotus::start(o);
    usleep(400'000);  // the early drains are over
    for (std::int64_t i = 0; i < 30; ++i) {
      {
        LOTUS_BATCH_PREPROCESSED(i);
        LOTUS_SCOPE("Hidden");
        usleep(2000);
      }
      { LOTUS_BATCH_WAIT(i); }
      LOTUS_BATCH_CONSUMED(i);
      LOTUS_COUNTER("queue", i);
    }
    std::optional<lotus::wait_for_batch> waiting;
    if (waits) waiting.emplace();
    if (write(done_[1], "", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  ~recording_child() {
    die();
    close(done_[0]);
    close(done_[1]);
  }
  recording_child(const recording_child&) = delete;
  recording_child& operator=(const recording_child&) = delete;

  void die() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int done_[2] = {};
};

}  // namespace

TEST_CASE("the last seconds: verdict, rates, stages, operations, slowest batches") {
  const temp_dir dir;
  write_run(dir, "run", 500, 0);
  const result r = run({"top", dir.path() + "/run", "--window", "2s"});
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  CHECK(contains(r.out, "preprocessing-bound"));
  CHECK(contains(r.out, "90 %"));                           // waits
  CHECK(batches_per_s(r.out) == Approx(100).epsilon(0.2));  // there were 500 in all
  CHECK(contains(r.out, "\n  Decode "));
  CHECK(contains(r.out, "\n  Crop%1B "));  // no escape reaches a terminal
  CHECK_FALSE(contains(r.out, "\x1b"));
  CHECK(contains(r.out, "\n  preprocess "));
  CHECK(contains(r.out, "slowest batches"));
  CHECK(r.out.find("\n  Decode ") < r.out.find("\n  Crop"));
  const result by_calls = run({"top", dir.path() + "/run", "--sort", "max"});
  CHECK(contains(by_calls.out, "*max"));
}

TEST_CASE("without enough batches there is no verdict") {
  const temp_dir dir;
  write_run(dir, "run", 500, 0);
  const result r = run({"top", dir.path(), "--window", "150ms"});
  INFO(r.out << r.err);
  CHECK(contains(r.out, "no verdict: too few batches in the window (1"));
  CHECK_FALSE(contains(r.out, "bound"));
}

TEST_CASE("of a run that is over the last seconds are told") {
  const temp_dir dir;
  write_run(dir, "run", 500, 3'600'000'000'000);
  const result r = run({"top", dir.path(), "--once"});
  INFO(r.out << r.err);
  CHECK(batches_per_s(r.out) == Approx(100).epsilon(0.02));
  CHECK(contains(r.out, "no batch for 360"));
  CHECK(contains(r.out, "usually every 10.00 ms"));
}

TEST_CASE("numbers that come again are not mixed up where the window begins") {
  const temp_dir dir;
  const std::int64_t begin = now_ns() - 6'000'000'000;
  std::string worker;
  std::string main;
  for (std::int64_t n = 0; n < 600; ++n) {  // epochs of 30, four batches lie ready, a step is 10 ms
    const std::string number = '_' + std::to_string(n % 30) + ',';
    const std::int64_t taken = begin + n * 10'000'000;
    worker += "SBatchPreprocessed" + number + std::to_string(taken - 40'000'000) + ",5000000\n";
    main += "SBatchWait" + number + std::to_string(taken) + ",2000\nSBatchConsumed" + number +
            std::to_string(taken + 3000) + ",1000\n";
  }
  dir.file("lotustrace_log_worker_pid_11", worker);
  dir.file("lotustrace_log_main_pid_10", main);
  for (const char* const window : {"2s", "1.5s", "600ms"}) {
    const result r = run({"top", dir.path(), "--once", "--window", window});
    INFO(r.out << r.err);
    CHECK((contains(r.out, "consumer-bound: the consumer waits 0.0") ||
           contains(r.out, "no verdict: these seconds do not tell")));
    CHECK_FALSE(contains(r.out, "before made"));
    CHECK(contains(r.out, "consumer waits 0 %, "));
  }
}

TEST_CASE("several runs stand beside each other") {
  const temp_dir dir;
  const std::int64_t begin = now_ns();
  write_run(dir, "rank0", 500, 0);
  write_run(dir, "rank1", 50, 4'000'000'000);
  const result r = run({"top", dir.path() + "/rank0", dir.path() + "/rank1", "--once"});
  const double lasted_s = static_cast<double>(now_ns() - begin) / 1e9;
  INFO(r.out << r.err);
  CHECK(contains(r.out, "  batches/s  waits  ready"));
  CHECK(contains(r.out, "rank0"));
  const double ago_s = seconds_behind(r.out, "/rank1        100   90 %      0  ");
  CHECK(ago_s >= 4);
  CHECK(ago_s <= 4.01 + lasted_s);
}

TEST_CASE("a living process is seen by its ring, and one that was killed as that") {
  const support::temp_directory place;
  recording_child child(place.prefix());
  const result living = run({"top", place.path().string(), "--once"});
  INFO(living.out << living.err);
  CHECK(contains(living.out, ": lives\n"));
  CHECK(contains(living.out, "\n  Hidden "));
  CHECK(contains(living.out, "\n  queue "));
  usleep(1'200'000);
  const result hanging = run({"top", place.path().string(), "--once"});
  INFO(hanging.out);
  CHECK(seconds_behind(hanging.out, "\nno batch for ") >= 1);
  child.die();
  const result killed = run({"top", place.path().string(), "--once"});
  INFO(killed.out);
  CHECK(contains(killed.out, ": was killed"));
  CHECK(contains(killed.out, "records in no log"));
  CHECK_FALSE(contains(killed.out, "no batch for"));
}

TEST_CASE("a wait that hangs is told of while it lasts") {
  const support::temp_directory place;
  recording_child child(place.prefix(), true);
  const std::int64_t begin = now_ns();
  const result early = run({"top", place.path().string(), "--once"});
  INFO(early.out);
  CHECK((!contains(early.out, "a wait for a batch lasts") || now_ns() - begin > 500'000'000));
  usleep(1'200'000);
  const result hanging = run({"top", place.path().string(), "--once"});
  INFO(hanging.out);
  CHECK(seconds_behind(hanging.out, "\na wait for a batch lasts ") >= 1);
  child.die();
  CHECK_FALSE(contains(run({"top", place.path().string(), "--once"}).out, "a wait for a batch"));
}

TEST_CASE("what cannot be shown is told in a line") {
  const temp_dir dir;
  CHECK(run({"top", dir.path() + "/nowhere"}).status == 1);
  const result nothing = run({"top", dir.path()});
  CHECK(nothing.status == 0);
  CHECK(contains(nothing.out, "nothing has been recorded in this folder yet"));
  CHECK(run({"top"}).status == 2);
  CHECK(run({"top", dir.path(), "--window", "0"}).status == 2);
  CHECK(run({"top", dir.path(), "--sort", "name"}).status == 2);
}

TEST_CASE("several busy threads take more than one thread's time, one never does") {
  const temp_dir dir;
  // The window ends with the last span, because that ends later than the command begins.
  const std::int64_t end = now_ns() + 60'000'000'000;
  const auto line = [](const std::string& name, std::int64_t start, std::int64_t duration) {
    return name + ',' + std::to_string(start) + ',' + std::to_string(duration) + '\n';
  };
  for (int thread = 0; thread < 8; ++thread) {
    std::string log;
    for (std::int64_t at = 1000; at > 0; --at)
      log += line("SSpin", end - at * 2'000'000, 2'000'000);
    dir.file("lotustrace_log_worker_pid_" + std::to_string(thread), log);
  }
  // It began long before the window.
  dir.file("lotustrace_log_worker_pid_9", line("SLong", end - 60'000'000'000, 60'000'000'000 - 1));
  const result r = run({"top", dir.path(), "--once", "--window", "1s"});
  INFO(r.out << r.err);
  const auto share_of = [&](const std::string& name) {
    const std::size_t at = r.out.find(name);
    REQUIRE(at != std::string::npos);
    const std::string row = r.out.substr(at, r.out.find('\n', at) - at);
    const std::size_t behind = row.find(" %");
    REQUIRE(behind != std::string::npos);
    return std::stod(row.substr(row.rfind(' ', behind - 1)));
  };
  CHECK(share_of("Spin ") == Approx(800).epsilon(0.05));
  CHECK(share_of("Long ") == 100);
}
