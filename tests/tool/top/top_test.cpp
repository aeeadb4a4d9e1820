// Tests lotus-tool top if it prints its screen only once, as it does without a terminal.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "catch.hpp"
#include "commands/top/screen.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

std::int64_t now_ns() {
  return lotus::tool::time_of(CLOCK_REALTIME);
}

/// Writes a run in which the consumer waits during 9 ms of every 10 ms for batches that one worker
/// builds in 9 ms.
/// @param ago_ns  how long ago the run ended.
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

/// Returns the number of batches per second in the line of rates.
double batches_per_s(const std::string& out) {
  const std::size_t behind = out.find(" batches/s, ", out.find("\nlast "));
  REQUIRE(behind != std::string::npos);
  return std::stod(out.substr(out.rfind(' ', behind - 1)));
}

/// Returns the number of seconds that comes after `text`.
double seconds_behind(const std::string& out, const std::string& text) {
  const std::size_t at = out.find(text);
  REQUIRE(at != std::string::npos);
  std::size_t digits = 0;
  const std::string number = out.substr(at + text.size());
  const double seconds = std::stod(number, &digits);
  REQUIRE(number.compare(digits, 2, " s") == 0);
  return seconds;
}

/// A child process that records to `prefix` and then waits until it is killed.
class recording_child {
 public:
  /// @param waits  whether the process finally waits for a batch that never arrives.
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
    usleep(400'000);  // waits until the drains shortly after start() are over
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
    std::optional<lotus::batch_wait> waiting;
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

TEST_CASE("top shows what operations wait for, with and without batches") {
  for (const bool with_batches : {true, false}) {
    CAPTURE(with_batches);
    const temp_dir dir;
    const std::int64_t begin = now_ns() - 2'000'000'000;
    std::string samples = "object,1,decoder_mutex\nobject,2,/data/train.tar\n";
    if (with_batches) {
      write_run(dir, "run", 200, 0);
    } else {
      std::string worker;
      for (int i = 0; i < 200; ++i) {
        worker += "SDecode," + std::to_string(begin + i * 10'000'000) + ",9000000\n";
      }
      dir.file("run/lotustrace_log_worker_pid_11", worker);
    }
    const auto sample = [&](int i, const std::string& rest) {
      // Within Decode, which takes the first 6 or 9 ms of every 10 ms.
      samples += "look," + std::to_string(begin + i * 10'000'000 + 3'000'000) + ",11," + rest +
                 ",4000000\n";
    };
    for (int i = 0; i < 150; ++i) sample(i, "lock,1,5540,0");
    for (int i = 150; i < 199; ++i) sample(i, "file,2,0,0");
    dir.file("run/.lotus_waits_1_a", samples);
    const result r = run({"top", dir.path(), "--once"});
    CHECK(r.status == 0);
    INFO(r.out);
    const std::size_t at = r.out.find("\n  why operations wait\n");
    REQUIRE(at != std::string::npos);
    const std::string waits = r.out.substr(at);
    CHECK(contains(waits, "  Decode waits for the lock decoder_mutex during "));
    CHECK(contains(waits, " of its time and waits for the"));
  }
}

TEST_CASE("top shows verdict, rates, stages, operations and slowest batches of the last seconds") {
  const temp_dir dir;
  write_run(dir, "run", 500, 0);
  const result r = run({"top", dir.path() + "/run", "--window", "2s"});
  INFO(r.out << r.err);
  CHECK(r.status == 0);
  CHECK(contains(r.out, "preprocessing-bound"));
  CHECK(contains(r.out, "90 %"));  // share of the consumer's time that it waited
  // The printed rate must be that of the window; the run has 500 batches in total.
  CHECK(batches_per_s(r.out) == Approx(100).epsilon(0.2));
  CHECK(contains(r.out, "\n  Decode "));
  CHECK(contains(r.out, "\n  Crop%1B "));  // an escape sequence must not reach the terminal
  CHECK_FALSE(contains(r.out, "\x1b"));
  CHECK(contains(r.out, "\n  preprocess "));
  CHECK(contains(r.out, "slowest batches"));
  CHECK(r.out.find("\n  Decode ") < r.out.find("\n  Crop"));
  const result by_calls = run({"top", dir.path() + "/run", "--sort", "max"});
  CHECK(contains(by_calls.out, "operation (by max) "));
}

TEST_CASE("top gives no verdict if there are too few batches") {
  const temp_dir dir;
  // The run ended a second ago, which is longer than the window of 150 ms. So the window must end
  // with the run instead of at the present time.
  write_run(dir, "run", 500, 1'000'000'000);
  const result r = run({"top", dir.path(), "--window", "150ms"});
  INFO(r.out << r.err);
  CHECK(contains(r.out, "no verdict: too few batches in the window (1"));
  CHECK_FALSE(contains(r.out, "bound"));
}

TEST_CASE("top shows the last seconds of a run that has ended") {
  const temp_dir dir;
  write_run(dir, "run", 500, 3'600'000'000'000);
  const result r = run({"top", dir.path(), "--once"});
  INFO(r.out << r.err);
  CHECK(batches_per_s(r.out) == Approx(100).epsilon(0.02));
  CHECK(seconds_behind(r.out, "\nno batch for ") >= 3600);
  CHECK(contains(r.out, "usually one every 10.00 ms"));
}

TEST_CASE("repeated batch numbers are not mixed up at the beginning of the window") {
  const temp_dir dir;
  // The run has ended, so every window ends with the run, even if the commands take long to start.
  const std::int64_t begin = now_ns() - 9'000'000'000;
  std::string worker;
  std::string main;
  // Epochs have 30 batches. Four batches are always ready, and a step takes 10 ms.
  for (std::int64_t n = 0; n < 600; ++n) {
    const std::string number = '_' + std::to_string(n % 30) + ',';
    const std::int64_t taken = begin + n * 10'000'000;
    worker += "SBatchPreprocessed" + number + std::to_string(taken - 40'000'000) + ",5000000\n";
    main += "SBatchWait" + number + std::to_string(taken) + ",2000\nSBatchConsumed" + number +
            std::to_string(taken + 3000) + ",1000\n";
  }
  dir.file("run/lotustrace_log_worker_pid_11", worker);
  dir.file("run/lotustrace_log_main_pid_10", main);
  for (const char* const window : {"2s", "1.5s", "600ms"}) {
    const result r = run({"top", dir.path(), "--once", "--window", window});
    INFO(r.out << r.err);
    CHECK((contains(r.out, "consumer-bound: ") ||
           contains(r.out, "no verdict from the last seconds alone; ")));
    CHECK_FALSE(contains(r.out, "before made"));
    CHECK(contains(r.out, "consumer waits 0 % of its time, "));
  }
}

TEST_CASE("top shows several runs side by side") {
  const temp_dir dir;
  const std::int64_t begin = now_ns();
  write_run(dir, "rank0", 500, 0);
  write_run(dir, "rank1", 50, 4'000'000'000);
  const result r = run({"top", dir.path() + "/rank0", dir.path() + "/rank1", "--once"});
  const double lasted_s = static_cast<double>(now_ns() - begin) / 1e9;
  INFO(r.out << r.err);
  CHECK(contains(r.out, "  batches/s  consumer waits  batches ready  "));
  CHECK(contains(r.out, "rank0"));
  const double ago_s = seconds_behind(r.out, "/rank1        100            90 %              0  ");
  CHECK(ago_s >= 4);
  CHECK(ago_s <= 4.01 + lasted_s);
}

TEST_CASE("top reads the ring of a running process, and reports a killed one as killed") {
  const support::temp_directory place;
  recording_child child(place.prefix());
  const result running = run({"top", place.path().string(), "--once"});
  INFO(running.out << running.err);
  CHECK(contains(running.out, ": running\n"));
  CHECK(contains(running.out, "\n  Hidden "));
  CHECK(contains(running.out, "\n  queue "));
  usleep(1'200'000);
  const result hanging = run({"top", place.path().string(), "--once"});
  INFO(hanging.out);
  CHECK(seconds_behind(hanging.out, "\nno batch for ") >= 1);
  child.die();
  const result killed = run({"top", place.path().string(), "--once"});
  INFO(killed.out);
  CHECK(contains(killed.out, ": was killed"));
  CHECK(contains(killed.out, "records not yet in the logs"));
  CHECK_FALSE(contains(killed.out, "no batch for"));
}

TEST_CASE("top reports a wait that hangs while it lasts") {
  const support::temp_directory place;
  recording_child child(place.prefix(), true);
  const std::int64_t begin = now_ns();
  const result early = run({"top", place.path().string(), "--once"});
  INFO(early.out);
  CHECK((!contains(early.out, "the consumer has waited for a batch for ") ||
         now_ns() - begin > 500'000'000));
  usleep(1'200'000);
  const result hanging = run({"top", place.path().string(), "--once"});
  INFO(hanging.out);
  CHECK(seconds_behind(hanging.out, "\nthe consumer has waited for a batch for ") >= 1);
  child.die();
  CHECK_FALSE(
      contains(run({"top", place.path().string(), "--once"}).out, "has waited for a batch"));
}

TEST_CASE("top says that the clock was set, and what that changes") {
  const auto screen = [](std::int64_t set_ns) {
    lotus::tool::live_run run;
    run.clock_set_ns = set_ns;
    std::string lines;
    for (const std::string& line : lotus::tool::draw_screen({run}, {})) lines += line + '\n';
    return lines;
  };
  CHECK_FALSE(contains(screen(0), "clock"));
  CHECK(contains(screen(90'000'000'000), "\nthe clock was set forward by 90.00 s\n"));
  CHECK(contains(screen(-90'000'000'000),
                 "\nthe clock was set back by 90.00 s; records of the times that come twice are "
                 "mixed\n"));
}

TEST_CASE("directories and arguments that top cannot use are reported in one line") {
  const temp_dir dir;
  CHECK(run({"top", dir.path() + "/nowhere"}).status == 1);
  const result nothing = run({"top", dir.path()});
  CHECK(nothing.status == 0);
  CHECK(contains(nothing.out, "nothing has been recorded in this folder yet"));
  CHECK(run({"top"}).status == 2);
  CHECK(run({"top", dir.path(), "--window", "0"}).status == 2);
  CHECK(run({"top", dir.path(), "--sort", "name"}).status == 2);
}

TEST_CASE("several busy threads take more than 100 % of the time, and one never does") {
  const temp_dir dir;
  // The last span ends after the command begins, so the window ends with this span.
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
  // This span began long before the window.
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
