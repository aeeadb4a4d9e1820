// Tests the recorded time off the CPU, by comparing it with readings of the thread's CPU clock.
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../faults/recording.hpp"
#include "catch.hpp"
#include "cpu_accounts.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "lotus/store/run_queue_account.hpp"
#include "support.hpp"

namespace {

using lotus::detail::clock_ns;
using support::account;
using support::call;

void burn(std::int64_t ns) {
  const std::int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

std::int64_t off_ns_of_this_thread() {
  return clock_ns(CLOCK_MONOTONIC_RAW) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/// Returns how long this thread has waited for a CPU.
std::int64_t queue_ns_of_this_thread() {
  std::ifstream in{"/proc/thread-self/schedstat"};
  std::int64_t queue_ns = 0;
  in >> queue_ns >> queue_ns;
  return queue_ns;
}

void nap(std::int64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

/// Checks that the mean CPU time of a call is correct within 1 % or 2 us. The time of an empty
/// operation is subtracted, and the time that the hypervisor has stolen is tolerated.
void check(const std::string& name, const account& truth, const account& empty_truth,
           const std::map<std::string, account>& logged, const account& empty,
           std::int64_t stolen_ns) {
  CAPTURE(name);
  REQUIRE(logged.count("S" + name) == 1);
  const account& found = logged.at("S" + name);
  REQUIRE(found.calls == truth.calls);
  const auto mean = [](std::int64_t sum, std::int64_t calls) {
    return static_cast<double>(sum) / static_cast<double>(calls);
  };
  const double readings =
      mean(empty_truth.cpu_ns, empty_truth.calls) - mean(empty.cpu_ns, empty.calls);
  const double want = mean(truth.cpu_ns, truth.calls) - readings;
  const double have = mean(found.cpu_ns, found.calls);
  CAPTURE(want, have, readings, mean(found.wall_ns, found.calls));
  const double stolen = mean(stolen_ns, truth.calls);
  CAPTURE(stolen);
  CHECK(std::abs(have - want) <= std::max(2000.0, want * 0.01) + stolen);
}

std::vector<std::string> info_lines(const support::fs::path& run, const std::string& key) {
  std::vector<std::string> lines;
  for (const auto& entry : support::fs::directory_iterator(run)) {
    if (entry.path().filename().string().rfind(".lotus_info_", 0) != 0) continue;
    std::ifstream in{entry.path()};
    for (std::string line; std::getline(in, line);) {
      if (line.rfind(key + ' ', 0) == 0) lines.push_back(line.substr(key.size() + 1));
    }
  }
  return lines;
}

std::string last_info_line(const support::fs::path& run, const std::string& key) {
  const std::vector<std::string> lines = info_lines(run, key);
  return lines.empty() ? std::string() : lines.back();
}

struct cpu_reading {
  std::int64_t time_ns;
  std::int64_t cpu_ns;
  std::int64_t idle_ns;
};

std::vector<cpu_reading> cpu_readings(const support::fs::path& run) {
  std::vector<cpu_reading> all;
  for (const std::string& line : info_lines(run, "cpu_time")) {
    std::istringstream in{line};
    cpu_reading r{};
    REQUIRE(in >> r.time_ns >> r.cpu_ns >> r.idle_ns);
    all.push_back(r);
  }
  return all;
}

/// Runs operations that compute, sleep, read a file, and wait for a lock.
void work_of_all_kinds(std::map<std::string, account>& truth, const std::string& file,
                       std::mutex& lock, int calls) {
  for (int i = 0; i < calls; ++i) {
    call("Empty", truth["Empty"], [] {});
    call("Burn", truth["Burn"], [] { burn(1'000'000); });
    call("Sleep", truth["Sleep"], [] { nap(1'000'000); });
    call("Mixed", truth["Mixed"], [] {
      burn(300'000);
      nap(300'000);
      burn(300'000);
    });
    call("Read", truth["Read"], [&] {
      const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      std::vector<char> bytes(std::size_t{1} << 20);
      while (read(fd, bytes.data(), bytes.size()) > 0) {
      }
      close(fd);
    });
    call("Lock", truth["Lock"], [&] { const std::lock_guard<std::mutex> hold{lock}; });
  }
}

}  // namespace

TEST_CASE("CPU time is right for every operation, thread and worker, even on crowded CPUs") {
  const support::temp_directory run;
  const std::string file = (run.path() / "data").string();
  std::ofstream{file} << std::string(std::size_t{4} << 20, 'x');
  REQUIRE(lotus::start(support::options_for(run)));
  if (last_info_line(run.path(), "cpu") != "switches") {
    lotus::stop();
    WARN("threads cannot notice here that they are switched out: nothing is tested");
    return;
  }
  const bool forked = GENERATE(false, true);
  CAPTURE(forked);
  const auto work = [&](const support::fs::path& results) {
    constexpr int threads = 4;  // usually more threads than this machine has CPUs
    std::vector<std::map<std::string, account>> truths(threads);
    std::mutex lock;
    std::atomic<bool> done{false};
    std::thread holder{[&] {
      while (!done) {
        {
          const std::lock_guard<std::mutex> hold{lock};
          nap(500'000);
        }
        // Otherwise, this thread may take the lock again before one that waits has woken up.
        nap(50'000);
      }
    }};
    std::vector<std::thread> workers;
    for (auto& truth : truths) {
      workers.emplace_back([&] { work_of_all_kinds(truth, file, lock, 60); });
    }
    for (std::thread& t : workers) t.join();
    done = true;
    holder.join();
    std::ofstream out{results};
    for (const auto& truth : truths) {
      for (const auto& [name, of] : truth)
        out << name << ' ' << of.cpu_ns << ' ' << of.calls << ' ' << of.stolen_ns << '\n';
    }
  };
  const support::fs::path results = run.path() / "results";
  const std::int64_t stolen_before_ns = support::stolen_of_all_cpus_ns();
  if (forked) {
    REQUIRE(support::status_of_child([&] { work(results); }) == 0);
  } else {
    work(results);
  }
  lotus::stop();
  std::map<std::string, account> truth;
  // If a context switch occurs during a call, the clocks of the thread do not show how much of the
  // time the hypervisor stole. So the time stolen from all CPUs is tolerated as well.
  std::int64_t stolen_ns = support::stolen_of_all_cpus_ns() - stolen_before_ns;
  // The kernel reports stolen time in whole ticks, so one more tick may have been stolen.
  if (stolen_before_ns > 0) stolen_ns += 1'000'000'000 / sysconf(_SC_CLK_TCK);
  std::ifstream in{results};
  std::string name;
  for (account of; in >> name >> of.cpu_ns >> of.calls >> of.stolen_ns;) {
    truth[name].cpu_ns += of.cpu_ns;
    truth[name].calls += of.calls;
    stolen_ns += of.stolen_ns;
  }
  const auto logged = support::read_accounts(run.path());
  REQUIRE(truth.size() == 6);
  for (const auto& [op, of] : truth) {
    check(op, of, truth.at("Empty"), logged, logged.at("SEmpty"), stolen_ns);
  }
  // The time of waiting for a CPU (b) must be a part of the time off the CPU (a).
  for (const auto& o : support::read_side_log(run.path(), "off_cpu")) CHECK(o.b <= o.a);
}

TEST_CASE("a thread that only computes is never blocked, and waits only for CPUs") {
  const support::temp_directory run;
  REQUIRE(lotus::start(support::options_for(run)));
  if (last_info_line(run.path(), "cpu") != "switches") {
    lotus::stop();
    WARN("threads cannot notice here that they are switched out: nothing is tested");
    return;
  }
  // Even such a thread may be blocked for a moment: at a page fault, or if the hypervisor takes its
  // CPU.
  std::atomic<std::int64_t> true_blocked_ns{0};
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 4 * std::max(1U, std::thread::hardware_concurrency()); ++t) {
    workers.emplace_back([&] {
      { LOTUS_SCOPE("First"); }   // creates files after it has ended
      { LOTUS_SCOPE("Second"); }  // has the time for which these blocked the thread
      // In this order, time between the two readings can only be counted as blocked, not
      // subtracted.
      true_blocked_ns -= off_ns_of_this_thread();
      true_blocked_ns += queue_ns_of_this_thread();
      // The loop runs for so long without a system call that the kernel often takes the CPU away at
      // the next system call, which is the clock read at the end of the scope.
      for (int i = 0; i < 15; ++i) {
        LOTUS_SCOPE("Burn");
        volatile double sum = 1;
        for (int k = 0; k < 1'500'000; ++k) sum = sum * 1.0000001;
      }
      true_blocked_ns -= queue_ns_of_this_thread();
      true_blocked_ns += off_ns_of_this_thread();
    });
  }
  for (std::thread& t : workers) t.join();
  lotus::stop();
  std::map<std::uint32_t, std::int64_t> begins_ns;
  for (const auto& l : support::read_logs(run.path())) {
    if (l.name == "SSecond") begins_ns[l.tid] = l.end_ns();
  }
  std::int64_t off_ns = 0;
  std::int64_t run_queue_ns = 0;
  for (const auto& o : support::read_side_log(run.path(), "off_cpu")) {
    if (o.time_ns <= begins_ns[o.tid]) continue;
    off_ns += o.a;
    run_queue_ns += o.b;
  }
  CAPTURE(off_ns, run_queue_ns, true_blocked_ns.load());
  CHECK(off_ns > 0);
  CHECK(off_ns - run_queue_ns <= off_ns / 20 + true_blocked_ns);
}

TEST_CASE("after a long time off the CPU the kernel is asked whether the thread waited for a CPU") {
  lotus::detail::run_queue_clock clock;
  for (const std::int64_t off_ns : {4'000'000, 6'000'000}) {
    lotus::detail::run_queue_account account;
    clock.begin(account);
    if (account.queue_ns < 0) {
      WARN("the kernel does not say how long threads wait for CPUs: nothing is tested");
      return;
    }
    // The time looks like a wait for something else, and all earlier predictions had been right.
    // But where it is so long that the kernel is asked, the thread had waited for a CPU.
    const bool is_asked = off_ns > 5'000'000;
    if (is_asked) account.recorded_ns -= off_ns;
    account.right_predictions = 100;
    account.due_ticks = UINT64_MAX;
    lotus::detail::extrapolated_clock wall;
    const std::uint64_t waited_ns = clock.part(account, off_ns, false, 1, 0, 0, wall);
    CHECK(waited_ns == (is_asked ? static_cast<std::uint64_t>(off_ns) : 0));
    CHECK((account.unread_off_ns == 0) == is_asked);
    clock.give_up(account);
  }
}

TEST_CASE(
    "the sums are right for threads that are switched out too often to read clocks each time") {
  const support::temp_directory run;
  REQUIRE(lotus::start(support::options_for(run)));
  if (last_info_line(run.path(), "cpu") != "switches") {
    lotus::stop();
    WARN("threads cannot notice here that they are switched out: nothing is tested");
    return;
  }
  std::int64_t true_off_ns = 0;
  std::int64_t true_queue_ns = 0;
  std::thread{[&] {
    const auto op = [](const char* name, std::int64_t nap_ns) {
      LOTUS_SCOPE_DYNAMIC(name);
      nap(nap_ns);
    };
    op("First", 1'000'000);
    true_off_ns -= off_ns_of_this_thread();
    true_queue_ns -= queue_ns_of_this_thread();
    for (int i = 0; i < 20'000; ++i) op("Short", 10'000);
    op("Long", 20'000'000);  // so long that the clocks are read after it
    true_off_ns += off_ns_of_this_thread();
    true_queue_ns += queue_ns_of_this_thread();
  }}.join();
  lotus::stop();
  std::int64_t recorded_off_ns = 0;
  std::int64_t recorded_queue_ns = 0;
  const auto lines = support::read_logs(run.path());
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return l.name == "SFirst"; });
  REQUIRE(first != lines.end());
  for (const auto& o : support::read_side_log(run.path(), "off_cpu")) {
    if (o.time_ns <= first->end_ns()) continue;
    recorded_off_ns += o.a;
    recorded_queue_ns += o.b;
  }
  CAPTURE(true_off_ns, recorded_off_ns, true_queue_ns, recorded_queue_ns);
  CHECK(std::abs(recorded_off_ns - true_off_ns) < true_off_ns / 1000 + 100'000);
  // Between two readings it is predicted which time was a wait for a CPU.
  CHECK(std::abs(recorded_queue_ns - true_queue_ns) < true_queue_ns / 100 + true_off_ns / 500);
}

TEST_CASE("the CPU time of a process contains threads that record nothing") {
  const support::temp_directory run;
  REQUIRE(lotus::start(support::options_for(run)));
  const std::int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  std::thread{[] { burn(50'000'000); }}.join();
  { LOTUS_SCOPE("Op"); }
  const std::int64_t after_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  lotus::stop();
  const std::vector<cpu_reading> readings = cpu_readings(run.path());
  REQUIRE(readings.size() >= 2);
  CHECK(readings.front().cpu_ns <= before_ns);
  CHECK(readings.back().cpu_ns >= after_ns);
  CHECK(readings.back().cpu_ns - readings.front().cpu_ns >= 50'000'000);
  const auto cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_CONF));
  const cpu_reading& first = readings.front();
  const cpu_reading& last = readings.back();
  const auto passed_ns = static_cast<double>(last.time_ns - first.time_ns);
  // The kernel reports the idle time of each CPU in whole ticks, so each may be off by a few ticks.
  const double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
  CHECK(last.idle_ns >= first.idle_ns);
  CHECK(static_cast<double>(last.idle_ns - first.idle_ns) <= cpus * (passed_ns + 2 * tick_ns));
}

TEST_CASE("the CPU time of a killed process is known up to a moment before the kill") {
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    lotus::options chosen = support::options_for(run);
    chosen.drain_interval_ms = 5;
    if (!lotus::start(chosen)) _exit(1);
    // Record until the library has reported that the process used at least 200 ms of CPU time.
    std::thread([] {
      for (;;) burn(1'000'000);
    }).detach();
    while (cpu_readings(run.path()).back().cpu_ns < 200'000'000) {
      LOTUS_SCOPE("Op");
      nap(1'000'000);
    }
    kill(getpid(), SIGKILL);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(cpu_readings(run.path()).size() > 2);
}

TEST_CASE("no CPU time is recorded if it is switched off") {
  const support::temp_directory run;
  lotus::options chosen = support::options_for(run);
  chosen.cpu_time = false;
  REQUIRE(lotus::start(chosen));
  for (int i = 0; i < 3; ++i) {
    LOTUS_SCOPE("Sleep");
    nap(1'000'000);
  }
  lotus::stop();
  CHECK(support::log_files(run.path(), true).empty());
  CHECK(last_info_line(run.path(), "cpu") == "off");
  CHECK(cpu_readings(run.path()).empty());
  // CPU time was switched off only for the first recording, so the next one must measure it again.
  const support::temp_directory next;
  REQUIRE(lotus::start(support::options_for(next)));
  for (int i = 0; i < 3; ++i) {
    LOTUS_BATCH_PREPROCESSED(i);
    nap(1'000'000);
  }
  lotus::stop();
  CHECK(support::read_side_log(next.path(), "off_cpu").size() >= 3);
  CHECK_FALSE(last_info_line(next.path(), "cpus").empty());
}

TEST_CASE("without rseq, time off the CPU is known for batches") {
  // The library notices context switches by means of a memory area that glibc registers with rseq.
  // glibc decides about rseq when a program starts, so the test starts a program without it.
  const support::temp_directory run;
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
    setenv("LOTUS_LOG_FILE", run.prefix().c_str(), 1);
    support::exec_program("/proc/self/exe", {"test", "[.batches-only]"});
  }
  int status = -1;
  waitpid(pid, &status, 0);
  REQUIRE(status == 0);
  CHECK(last_info_line(run.path(), "cpu") == "batches");
  const auto off = support::read_side_log(run.path(), "off_cpu");
  const auto lines = support::read_logs(run.path());
  std::size_t batches = 0;
  for (const auto& l : lines) {
    if (l.name.rfind("SBatchPreprocessed_", 0) != 0) continue;
    ++batches;
    std::int64_t off_ns = 0;
    std::int64_t queue_ns = 0;
    for (const auto& o : off) {
      if (o.time_ns <= l.start_ns || o.time_ns > l.end_ns()) continue;
      off_ns += o.a;
      queue_ns += o.b;
    }
    CAPTURE(l.name, l.duration_ns, off_ns, queue_ns);
    CHECK(off_ns >= 2'000'000);
    // The thread may wait for a CPU between the reading of its clocks and the begin of the batch.
    CHECK(l.duration_ns - (off_ns - queue_ns) >= 900'000);
  }
  CHECK(batches == 3);
}

TEST_CASE("helper process that records batches without rseq", "[.batches-only]") {
  for (int i = 0; i < 3; ++i) {
    LOTUS_BATCH_PREPROCESSED(i);
    LOTUS_SCOPE("Op");
    nap(2'000'000);
    burn(1'000'000);
  }
}

TEST_CASE("if others overwrite the library's rseq area, CPU time is measured per batch") {
  const support::temp_directory run;
  REQUIRE(lotus::start(support::options_for(run)));
  std::thread{[] {
    std::uint64_t* const area = lotus::detail::sequence_pointer();
    if (area == nullptr) return;
    for (int i = 0; i < 20'000; ++i) {
      LOTUS_SCOPE("Op");
      __atomic_store_n(area, 0, __ATOMIC_RELAXED);  // as if another library used the same area
    }
    CHECK(lotus::detail::this_cpu_watch.per_batch);
  }}.join();
  lotus::stop();
  CHECK(support::count_named(support::read_logs(run.path()), "SOp") == 20'000);
  if (lotus::detail::sequence_pointer() != nullptr)
    CHECK(last_info_line(run.path(), "cpu") == "batches");
}
