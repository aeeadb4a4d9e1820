// Tests logs with a size limit: only the oldest records may be deleted, and they must be counted.

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::read_logs;

namespace {

namespace fs = std::filesystem;

/// Records that the batches from `first` to `last - 1` were received.
void consume(std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) LOTUS_BATCH_CONSUMED(i);
}

lotus::options small_rings(const support::temp_directory& run) {
  lotus::options o;
  o.log_file = run.prefix();
  o.ring_records = 256;
  o.cpu_time = false;
  o.on_message = [](const char*) {};
  return o;
}

/// Returns the numbers of all batches in the logs, and checks that each is there only once.
std::set<std::int64_t> batches(const fs::path& run) {
  std::set<std::int64_t> found;
  for (const auto& line : read_logs(run)) {
    if (line.name.rfind("SBatchConsumed_", 0) != 0) continue;
    const bool once = found.insert(std::stoll(line.name.substr(15))).second;
    CHECK(once);
  }
  return found;
}

std::uint64_t bytes_of_logs(const fs::path& run) {
  std::uint64_t bytes = 0;
  for (const bool hidden : {false, true}) {
    for (const fs::path& file : support::log_files(run, hidden)) bytes += fs::file_size(file);
  }
  return bytes;
}

struct deleted_totals {
  unsigned long long files = 0;
  unsigned long long bytes = 0;
  long long until_ns = 0;
};

/// Returns how many files and bytes were deleted, and up to which time, as stored in the
/// information files.
deleted_totals forgotten(const fs::path& run) {
  deleted_totals sum;
  for (const auto& entry : fs::directory_iterator(run)) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      deleted_totals one;
      if (std::sscanf(line.c_str(), "forgotten %llu %llu %lld", &one.files, &one.bytes,
                      &one.until_ns) != 3) {
        continue;
      }
      sum.files += one.files;
      sum.bytes += one.bytes;
      sum.until_ns = std::max(sum.until_ns, one.until_ns);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a size limit keeps the newest records without a gap, and counts the deleted ones") {
  const support::temp_directory run;
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_bytes = 500'000;
  REQUIRE(lotus::start(o));
  constexpr std::int64_t all = 200'000;
  consume(0, all);
  lotus::stop();
  const std::set<std::int64_t> kept = batches(run.path());
  REQUIRE(!kept.empty());
  CHECK(*kept.rbegin() == all - 1);
  CHECK(static_cast<std::int64_t>(kept.size()) == all - *kept.begin());
  CHECK(*kept.begin() > 0);
  const deleted_totals gone = forgotten(run.path());
  CHECK(gone.files > 0);
  CHECK(bytes_of_logs(run.path()) < 750'000);
  // Every line has at least 38 bytes, including those that were deleted.
  std::uint64_t bytes = bytes_of_logs(run.path()) + gone.bytes;
  CHECK(bytes > all * 38);
}

TEST_CASE("nothing is deleted below the size limit, however many parts there are") {
  const support::temp_directory run;
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_bytes = 20'000'000;
  REQUIRE(lotus::start(o));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] { consume(t * 100'000, (t + 1) * 100'000); });
  }
  for (auto& t : threads) t.join();
  lotus::stop();
  CHECK(batches(run.path()).size() == 300'000);
  CHECK(support::log_files(run.path(), false).size() > 6);
  CHECK(forgotten(run.path()).files == 0);
}

TEST_CASE("parts older than the age limit are deleted even if nothing new is recorded") {
  const support::temp_directory run;
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_ms = 1000;
  o.drain_interval_ms = 20;
  REQUIRE(lotus::start(o));
  consume(0, 100);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (bytes_of_logs(run.path()) > 0 || forgotten(run.path()).files == 0) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  consume(100, 200);
  lotus::stop();
  CHECK(batches(run.path()).size() == 100);
  CHECK(forgotten(run.path()).files == 1);
}

TEST_CASE("a size limit also covers the logs of a process that was killed before") {
  const support::temp_directory run;
  const auto record_and_die = [&](std::int64_t first, std::int64_t last) {
    const pid_t child = fork();
    if (child == 0) {
      lotus::options o = small_rings(run);
      o.format = lotus::log_format::text;
      o.keep_bytes = 500'000;
      lotus::start(o);
      consume(first, last);
      lotus::flush();
      raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
  };
  for (std::int64_t life = 0; life < 6; ++life) record_and_die(life * 20'000, (life + 1) * 20'000);
  CHECK(bytes_of_logs(run.path()) < 900'000);
  const std::set<std::int64_t> kept = batches(run.path());
  REQUIRE(!kept.empty());
  CHECK(*kept.rbegin() == 119'999);
  CHECK(forgotten(run.path()).files > 0);
}

TEST_CASE("new parts are numbered after an older part whose number lies in the future") {
  const support::temp_directory run;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t ahead_ms = std::int64_t{now.tv_sec} * 1000 + 60'000;
  const fs::path old =
      run.path() / ("lotustrace_log_part" + std::to_string(ahead_ms) + "_worker_pid_1");
  std::ofstream lines(old);
  for (int i = 0; i < 10'000; ++i) lines << "SOld,1,1\n";
  lines.close();
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_bytes = 300'000;
  REQUIRE(lotus::start(o));
  consume(0, 30'000);
  lotus::stop();
  CHECK_FALSE(fs::exists(old));
  const std::set<std::int64_t> kept = batches(run.path());
  REQUIRE(!kept.empty());
  CHECK(*kept.rbegin() == 29'999);
  CHECK(static_cast<std::int64_t>(kept.size()) == 30'000 - *kept.begin());
  CHECK(bytes_of_logs(run.path()) < 450'000);
}

TEST_CASE("limits do not delete other runs or other files of the directory") {
  const support::temp_directory run;
  const fs::path steps = run.path() / "steps_0_5";
  fs::create_directory(steps);
  const auto write = [](const fs::path& at) { std::ofstream(at) << std::string(300'000, 'x'); };
  const std::vector<fs::path> others{
      steps / ".lotus_info_1_1", steps / "lotustrace_log_part5_worker_pid_1",
      run.path() / "lotustrace_log_notes", run.path() / "other_log_part5_worker_pid_1",
      run.path() / "model.bin"};
  for (const fs::path& other : others) write(other);
  fs::create_symlink(run.path() / "model.bin", run.path() / "lotustrace_log_part6_worker_pid_1");
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_bytes = 100'000;
  REQUIRE(lotus::start(o));
  consume(0, 50'000);
  lotus::stop();
  CHECK(forgotten(run.path()).files > 0);
  for (const fs::path& other : others) CHECK(fs::file_size(other) == 300'000);
  CHECK(fs::is_symlink(run.path() / "lotustrace_log_part6_worker_pid_1"));
}

TEST_CASE("a size limit also covers loaders' directories and hidden logs") {
  const support::temp_directory run;
  lotus::options o = small_rings(run);
  o.format = lotus::log_format::text;
  o.keep_bytes = 300'000;
  REQUIRE(lotus::start(o));
  for (std::int64_t i = 0; i < 20'000; ++i) {
    LOTUS_LOADER("val");
    { LOTUS_STAGE("Decode", i); }
    LOTUS_BATCH_CONSUMED(i);
  }
  lotus::stop();
  CHECK(bytes_of_logs(run.path()) + bytes_of_logs(run.path() / "val") < 600'000);
  CHECK(*batches(run.path() / "val").rbegin() == 19'999);
}
