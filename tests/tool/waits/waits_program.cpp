// A program that waits in several ways, and measures how long. Usage: waits_program LOG_FILE
// SECONDS SAMPLES_PER_S [END], where END is "stop", "kill" or "fork". Prints a line "OPERATION
// REASON NS" for each reason: how long the program was blocked; waits for a CPU do not count. With
// END "sleepers", builds batches on two threads that sleep instead; with "helpers", each batch is
// built by another thread, which sleeps.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"

// This mutex is a global variable, so that the logs contain its name.
std::mutex decoder_mutex;  // NOLINT(misc-use-internal-linkage)

namespace {

constexpr int workers = 3;

std::atomic<bool> stopping{false};
// A thread that wakes other threads must continue until these threads have ended.
std::atomic<bool> fed_have_ended{false};
std::mutex truth_mutex;
std::map<std::string, std::int64_t> truth_ns;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

/// Returns how long this thread has run and how long it has waited for a CPU, in ns.
std::int64_t run_and_queue_ns() {
  char text[96] = "";
  const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) std::abort();
  char* end = nullptr;
  const std::int64_t ran = std::strtoll(text, &end, 10);
  return ran + std::strtoll(end, nullptr, 10);
}

/// Measures for how long `wait` is blocked.
template <class Wait>
void measured(const std::string& reason, Wait wait) {
  const std::int64_t before_ns = run_and_queue_ns();
  const std::int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
  wait();
  const std::int64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
  const std::int64_t blocked_ns = wall_ns - (run_and_queue_ns() - before_ns);
  const std::lock_guard<std::mutex> hold{truth_mutex};
  truth_ns[reason] += blocked_ns > 0 ? blocked_ns : 0;
}

void nap(long us) {
  const timespec time{0, us * 1000};
  nanosleep(&time, nullptr);
}

struct channels {
  int pipe_ends[2] = {};
  int socket_ends[2] = {};
  std::mutex mutex;
  std::condition_variable changed;
  int changes = 0;

  channels() {
    if (pipe(pipe_ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) != 0) std::abort();
  }

  void wait_for_change() {
    std::unique_lock<std::mutex> hold{mutex};
    const int before = changes;
    changed.wait(hold, [&] { return changes != before; });
  }

  /// Ends the waits of other threads; each kind of wait takes a different time.
  void feed() {
    while (!fed_have_ended) {
      nap(3000);
      if (write(pipe_ends[1], "x", 1) != 1) std::abort();
      nap(2000);
      if (write(socket_ends[1], "x", 1) != 1) std::abort();
      nap(1000);
      const std::lock_guard<std::mutex> hold{mutex};
      ++changes;
      changed.notify_all();
    }
  }
};

/// Runs in another thread: holds the lock in one operation, and rests without it in the next one.
void hold_and_rest() {
  while (!stopping) {
    {
      LOTUS_SCOPE("Hold");
      const std::lock_guard<std::mutex> hold{decoder_mutex};
      nap(4000);
    }
    LOTUS_SCOPE("Rest");
    nap(4000);
  }
}

/// Memory whose pages arrive when another thread delivers them, like those of a slow disk.
class slow_pages {
 public:
  slow_pages() {
    // Without O_NONBLOCK, poll() on a userfaultfd reports an error immediately, and read() blocks.
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    uffdio_api api{};
    api.api = UFFD_API;
    if (fd_ < 0 || ioctl(fd_, UFFDIO_API, &api) != 0) return;
    memory_ = static_cast<char*>(
        mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uffdio_register range{};
    range.range = {reinterpret_cast<std::uint64_t>(memory_), page_bytes};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    there_ = memory_ != MAP_FAILED && ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
  }
  bool there() const { return there_; }
  void touch() {
    madvise(memory_, page_bytes, MADV_DONTNEED);
    measured("Pages page-fault", [this] { *static_cast<volatile char*>(memory_) = 1; });
  }
  void deliver() {
    while (!fed_have_ended) {
      pollfd ready{fd_, POLLIN, 0};
      uffd_msg message{};
      if (poll(&ready, 1, 100) != 1 || read(fd_, &message, sizeof(message)) <= 0) continue;
      nap(2000);
      uffdio_zeropage page{};
      page.range = {reinterpret_cast<std::uint64_t>(memory_), page_bytes};
      ioctl(fd_, UFFDIO_ZEROPAGE, &page);
    }
  }

 private:
  static constexpr std::size_t page_bytes = 4096;
  int fd_ = -1;
  char* memory_ = nullptr;
  bool there_ = false;
};

void work(channels& to) {
  while (!stopping) {
    LOTUS_SCOPE("Mixed");
    measured("Mixed lock", [] { const std::lock_guard<std::mutex> hold{decoder_mutex}; });
    measured("Mixed condition", [&] { to.wait_for_change(); });
    char byte = 0;
    measured("Mixed pipe", [&] {
      while (!stopping && read(to.pipe_ends[0], &byte, 1) < 0) {
      }
    });
    measured("Mixed socket", [&] {
      while (!stopping && recv(to.socket_ends[0], &byte, 1, 0) < 0) {
      }
    });
    measured("Mixed sleep", [] { nap(3000); });
    measured("Mixed poll", [] { poll(nullptr, 0, 2); });
  }
}

void spawn() {
  while (!stopping) {
    LOTUS_SCOPE("Spawn");
    pid_t child = 0;
    char name[] = "sleep";
    char time[] = "0.01";
    char* arguments[] = {name, time, nullptr};
    if (posix_spawnp(&child, name, nullptr, nullptr, arguments, environ) != 0) return;
    measured("Spawn process", [&] { waitpid(child, nullptr, 0); });
  }
}

void print_truth() {
  for (const auto& [reason, ns] : truth_ns) {
    std::printf("%s %lld\n", reason.c_str(), static_cast<long long>(ns));
  }
  std::fflush(stdout);
}

void run_for(double seconds) {
  channels to;
  slow_pages pages;
  std::vector<std::thread> threads;
  std::vector<std::thread> feeders;
  feeders.emplace_back([&] { to.feed(); });
  for (int i = 0; i < workers; ++i) threads.emplace_back([&] { work(to); });
  threads.emplace_back(hold_and_rest);
  threads.emplace_back(spawn);
  if (pages.there()) {
    feeders.emplace_back([&] { pages.deliver(); });
    threads.emplace_back([&] {
      while (!stopping) {
        LOTUS_SCOPE("Pages");
        pages.touch();
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stopping = true;
  for (std::thread& thread : threads) thread.join();
  fed_have_ended = true;
  for (std::thread& feeder : feeders) feeder.join();
}

void build_batches(double seconds, bool with_helpers) {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::uint64_t> built;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stopping) {
        const std::uint64_t number = next++;
        const auto us = static_cast<long>(2000 + std::mt19937_64(number)() % 8000);
        {
          LOTUS_BATCH_PREPROCESSED(number);
          {
            LOTUS_SCOPE("Fill");
            if (with_helpers) {
              std::thread([us] { nap(us); }).join();
            } else {
              nap(us);
            }
          }
          LOTUS_SCOPE("Check");
          nap(us / 2 + 500);
        }
        const std::lock_guard<std::mutex> hold{mutex};
        built.push_back(number);
        ready.notify_one();
      }
    });
  }
  const std::int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + std::int64_t(seconds * 1e9);
  while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
    lotus::batch_wait wait;
    std::unique_lock<std::mutex> hold{mutex};
    ready.wait(hold, [&] { return !built.empty(); });
    wait.consumed(built.front());
    built.pop_front();
  }
  stopping = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string end = argc > 4 ? argv[4] : "stop";
  lotus::options chosen;
  chosen.log_file = argv[1];
  chosen.wait_samples_per_s = std::atoi(argv[3]);
  if (!lotus::start(chosen)) return 1;
  if (end == "fork") {
    {
      LOTUS_SCOPE("Before");
      nap(50'000);
    }
    const pid_t child = fork();
    if (child == 0) {
      run_for(std::atof(argv[2]));
      lotus::stop();
      print_truth();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    lotus::stop();
    return status == 0 ? 0 : 1;
  }
  if (end == "sleepers" || end == "helpers") {
    build_batches(std::atof(argv[2]), end == "helpers");
    lotus::stop();
    return 0;
  }
  run_for(std::atof(argv[2]));
  print_truth();
  if (end == "kill") {
    kill(getpid(), SIGKILL);
  }
  lotus::stop();
  return 0;
}
