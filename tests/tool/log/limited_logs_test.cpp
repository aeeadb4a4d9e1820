// Tests runs whose beginning was deleted because of size limits, and snapshots: conclusions must
// use only the period for which all records exist.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using lotus::tool_test::json;
using lotus::tool_test::run;

namespace {

/// Simulates a training until `over` is true. Two workers take 4 ms per batch with many small
/// operations; the consumer takes 1 ms. So the workers are the bottleneck.
void train(const std::atomic<bool>& over) {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::int64_t> ready;
  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 2; ++w) {
    workers.emplace_back([&] {
      while (!over) {
        const std::int64_t i = next++;
        {
          LOTUS_BATCH_PREPROCESSED(i);
          for (int k = 0; k < 100; ++k) LOTUS_SCOPE("Crop");
          LOTUS_SCOPE("Decode");
          std::this_thread::sleep_for(4ms);
        }
        const std::lock_guard hold(lock);
        ready.push_back(i);
        changed.notify_one();
      }
    });
  }
  while (!over) {
    lotus::batch_wait wait;
    std::unique_lock hold(lock);
    changed.wait_for(hold, 100ms, [&] { return !ready.empty(); });
    if (ready.empty()) continue;
    const std::int64_t i = ready.front();
    ready.pop_front();
    hold.unlock();
    wait.consumed(static_cast<std::uint64_t>(i));
    std::this_thread::sleep_for(1ms);
  }
  for (std::thread& worker : workers) worker.join();
}

/// A child process that records to `run` until end() is called or the process is killed.
class training {
 public:
  explicit training(const fs::path& run) {
    REQUIRE(pipe(reported_) == 0);
    pid_ = fork();
    if (pid_ != 0) return;
    lotus::options o;
    o.log_file = (run / "lotustrace_log").string();
    o.keep_bytes = 150'000;
    o.drain_interval_ms = 20;
    lotus::start(o);
    static std::atomic<bool> over{false};
    std::thread([this] {
      char byte = 0;
      if (read(reported_[0], &byte, 1) >= 0) over = true;
    }).detach();
    train(over);
    lotus::stop();
    _exit(0);
  }
  training(const training&) = delete;
  training& operator=(const training&) = delete;
  ~training() {
    kill(SIGKILL);
    for (const int fd : reported_) close(fd);
  }

  void end() {
    REQUIRE(write(reported_[1], "x", 1) == 1);
    kill(0);
  }
  void kill(int signal) {
    if (pid_ < 0) return;
    if (signal != 0) ::kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// Stops all threads, which takes a while if the CPUs are busy.
  void pause() const {
    ::kill(pid_, SIGSTOP);
    REQUIRE(waitpid(pid_, nullptr, WUNTRACED) == pid_);
  }

 private:
  pid_t pid_ = -1;
  int reported_[2] = {};
};

json diagnosis(const fs::path& of) {
  const auto result = run({"diagnose", of.string(), "--json"});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  return json::parse(result.out);
}

bool says(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

/// Checks that the verdict is correct for the part of the run that still exists.
void check_verdict(const json& d) {
  CAPTURE(d.canonical().substr(0, 2000));
  if (d["verdict"].is_null()) {  // other programs use the CPUs
    CHECK(says(d["screen"]["headline"].text(), "waited for a CPU"));
  } else {
    CHECK(d["verdict"].text() == "preprocessing-bound");
  }
  const double rate = d["achieved_batches_per_s"].number();
  // At most 500 (two workers with 4 ms), which a busy machine reduces; about 70 if the kept batches
  // were divided by the time of all.
  CHECK(rate > 100);
  CHECK(rate < 505);
  for (const json& check : d["checks"].array()) CHECK_FALSE(check["unsafe"].boolean());
}

}  // namespace

TEST_CASE("figures of a run with deleted records use only the period that is complete") {
  const support::temp_directory around;
  const fs::path dir = around.path() / "run";
  training child(dir);
  std::this_thread::sleep_for(4s);
  child.end();
  const json d = diagnosis(dir);
  check_verdict(d);
  CHECK(d["deleted_bytes"].integer() > 0);
  for (const std::string command : {"stats", "diagnose"}) {
    const auto result = run({command, dir.string()});
    CHECK(result.status == 0);
    CHECK(says(result.err, "limits have deleted"));
  }
}

TEST_CASE("snapshot copies a running process's run, and the copy has its own verdict") {
  const support::temp_directory around;
  const fs::path dir = around.path() / "run";
  training child(dir);
  std::this_thread::sleep_for(2s);
  const auto made = run({"snapshot", dir.string(), "--reason", "slow now"});
  CAPTURE(made.err);
  REQUIRE(made.status == 0);
  const fs::path snapshot = made.out.substr(0, made.out.find('\n'));
  CHECK(says(snapshot.filename().string(), "run.snapshot-20"));
  CHECK(says(snapshot.filename().string(), "Z-slow-now"));
  CHECK(fs::is_directory(snapshot));
  check_verdict(diagnosis(snapshot));
  // The snapshot must not grow. It is a run of its own, and not a part of the run or of other runs
  // in the same folder.
  const auto before = diagnosis(snapshot)["batches"].integer();
  std::this_thread::sleep_for(300ms);
  child.end();
  CHECK(diagnosis(snapshot)["batches"].integer() == before);
  // If the tool had found several runs in the folder, the output would contain a list "runs".
  CHECK_FALSE(diagnosis(around.path()).has("runs"));
}

TEST_CASE("snapshot copies what a killed or unresponsive process left") {
  const support::temp_directory around;
  const fs::path dir = around.path() / "run";
  training child(dir);
  std::this_thread::sleep_for(1s);
  const bool killed = GENERATE(true, false);
  if (killed) {
    child.kill(SIGKILL);
  } else {
    child.pause();
  }
  const auto made = run({"snapshot", dir.string()});
  CAPTURE(made.err);
  REQUIRE(made.status == 0);
  CHECK(says(made.err, "does not answer") == !killed);
  check_verdict(diagnosis(made.out.substr(0, made.out.find('\n'))));
  CHECK_FALSE(fs::exists(dir / ".lotus_snapshot_request"));
}

TEST_CASE("snapshot copies counted calls of a running, an unresponsive and an ended process") {
  const support::temp_directory around;
  const fs::path dir = around.path() / "run";
  int done[2] = {};
  REQUIRE(pipe(done) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    lotus::options o;
    o.log_file = (dir / "lotustrace_log").string();
    o.drain_interval_ms = 50;
    lotus::start(o);
    for (int i = 0; i < 400; ++i) LOTUS_SCOPE_AGGREGATED("Token");
    if (write(done[1], "", 1) != 1) _exit(1);
    pause();
  }
  close(done[1]);  // so that reading ends if the child does
  char byte = 0;
  REQUIRE(read(done[0], &byte, 1) == 1);
  for (const int how : {0, SIGSTOP, SIGKILL}) {
    CAPTURE(how);
    if (how != 0) ::kill(child, how);
    if (how != 0) waitpid(child, nullptr, WUNTRACED);  // until all threads have stopped
    const auto made = run({"snapshot", dir.string()});
    CAPTURE(made.err);
    REQUIRE(made.status == 0);
    CHECK(says(made.err, "does not answer") == (how == SIGSTOP));
    const auto reported =
        run({"stats", made.out.substr(0, made.out.find('\n')), "--json", "--quiet"});
    const json document = json::parse(reported.out);
    CHECK(document["runs"][0]["aggregated"]["SToken"]["count"].integer() == 400);
  }
  close(done[0]);
}

TEST_CASE("snapshot reports a directory that contains no run") {
  const support::temp_directory around;
  auto made = run({"snapshot", (around.path() / "none").string()});
  CHECK(made.status == 1);
  CHECK(says(made.err, "No such file"));
  std::ofstream(around.path() / "notes.txt") << "not a log\n";
  made = run({"snapshot", around.path().string()});
  CHECK(made.status == 1);
  CHECK(says(made.err, "no log found"));
}
