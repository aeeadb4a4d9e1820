// Waits in known functions. Usage: stacks_program LOG_FILE SECONDS SAMPLES_PER_S END, where END is
// "stop", "kill", "limit" (with limits on the size of logs), "batches" (builds batches under one
// lock), "hang" (a worker never returns from a lock, so that a snapshot is taken) or "processes"
// (the same in forked workers). The waiting
// functions are called by functions named like them, with "outer_" in front, and have a secret text
// on their stacks.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"

#define PLANTED extern "C" __attribute__((noinline))

std::atomic<bool> stopping{false};  // NOLINT(misc-use-internal-linkage)
std::atomic<bool> fed_have_ended{false};
std::mutex decoder_mutex;
std::mutex changed_mutex;
std::condition_variable changed;
int pipe_ends[2];

/// A text on the stack, which must not get into any file. Computed, so that it is nowhere else.
struct secret {
  char text[64];

  __attribute__((noinline)) secret() {
    for (std::size_t i = 0; i < sizeof(text); ++i) text[i] = static_cast<char>("HIDDENxy"[i % 8]);
    asm volatile("" : : "r"(static_cast<void*>(text)) : "memory");
  }
  ~secret() { asm volatile("" : : "r"(static_cast<void*>(text)) : "memory"); }
};

static void nap(long us) {
  const timespec time{us / 1'000'000, us % 1'000'000 * 1000};
  nanosleep(&time, nullptr);
}

static void work_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Keeps a call from becoming a jump, which would leave no frame.
static void no_tail_call() {
  asm volatile("" : : : "memory");
}

PLANTED void lock_decoder() {
  const secret hidden;
  const std::lock_guard<std::mutex> hold{decoder_mutex};
  no_tail_call();
}

PLANTED void await_change() {
  const secret hidden;
  std::unique_lock<std::mutex> hold{changed_mutex};
  changed.wait(hold);
  no_tail_call();
}

PLANTED void pause_reader() {
  const secret hidden;
  nap(3000);
  no_tail_call();
}

PLANTED void read_frame() {
  const secret hidden;
  char byte = 0;
  while (!stopping && read(pipe_ends[0], &byte, 1) < 0) {
  }
  no_tail_call();
}

#define OUTER(name)                      \
  PLANTED void outer_##name(int depth) { \
    const secret hidden;                 \
    if (depth > 0) {                     \
      outer_##name(depth - 1);           \
    } else {                             \
      name();                            \
    }                                    \
    no_tail_call();                      \
  }
// `deep` is volatile, so that the compiler does not know the depth of the calls and cannot build
// special functions for it.
static volatile int deep = 2;
OUTER(lock_decoder)
OUTER(await_change)
OUTER(pause_reader)
OUTER(read_frame)

/// Wakes the waiting threads.
static void feed() {
  while (!fed_have_ended) {
    nap(2000);
    if (write(pipe_ends[1], "x", 1) != 1) std::abort();
    changed.notify_all();
  }
}

static void hold_and_rest() {
  while (!stopping) {
    {
      const std::lock_guard<std::mutex> hold{decoder_mutex};
      nap(4000);
    }
    nap(1000);
  }
}

static void run_for(double seconds) {
  std::thread feeder{feed};
  std::vector<std::thread> threads;
  threads.emplace_back(hold_and_rest);
  threads.emplace_back([] {
    while (!stopping) {
      {
        LOTUS_SCOPE("Lock");
        outer_lock_decoder(deep);
      }
      work_for(std::chrono::microseconds(500));
    }
  });
  threads.emplace_back([] {
    while (!stopping) {
      LOTUS_SCOPE("Condition");
      outer_await_change(deep);
    }
  });
  threads.emplace_back([] {
    while (!stopping) {
      LOTUS_SCOPE("Sleep");
      outer_pause_reader(deep);
    }
  });
  threads.emplace_back([] {
    while (!stopping) {
      LOTUS_SCOPE("Pipe");
      outer_read_frame(deep);
    }
  });
  nap(static_cast<long>(seconds * 1e6));
  stopping = true;
  for (std::thread& thread : threads) thread.join();
  fed_have_ended = true;
  feeder.join();
}

PLANTED void decode_under_lock() {
  const secret hidden;
  const std::lock_guard<std::mutex> hold{decoder_mutex};
  nap(3000);
}

PLANTED void stuck_decoder() {
  const secret hidden;
  const std::lock_guard<std::mutex> hold{decoder_mutex};
  no_tail_call();
}

PLANTED void preprocess_batch(std::uint64_t number) {
  LOTUS_BATCH_PREPROCESSED(number);
  LOTUS_SCOPE("Decode");
  decode_under_lock();
}

static void build_batches(double seconds) {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::uint64_t> built;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stopping) {
        const std::uint64_t number = next++;
        preprocess_batch(number);
        const std::lock_guard<std::mutex> hold{mutex};
        built.push_back(number);
        ready.notify_one();
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    lotus::batch_wait wait;
    std::unique_lock<std::mutex> hold{mutex};
    ready.wait(hold, [&] { return !built.empty(); });
    wait.consumed(built.front());
    built.pop_front();
  }
  stopping = true;
  for (std::thread& thread : threads) thread.join();
}

static bool has_snapshot(const std::filesystem::path& run) {
  for (const auto& entry : std::filesystem::directory_iterator(run.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (name.find(".snapshot-") != std::string::npos && entry.path().extension() != ".unfinished") {
      return true;
    }
  }
  return false;
}

/// Forks workers that never return from a lock.
/// @param ready  the pipe to which each worker writes a byte before it waits.
static std::vector<pid_t> fork_stuck_workers(int (&ready)[2]) {
  std::vector<pid_t> workers;
  for (int i = 0; i < 3; ++i) {
    const pid_t worker = fork();
    if (worker != 0) {
      workers.push_back(worker);
      continue;
    }
    {
      LOTUS_SCOPE("First");
      nap(1000);
    }
    LOTUS_SCOPE("Stuck");
    if (write(ready[1], "x", 1) != 1) _exit(1);
    stuck_decoder();
    _exit(0);
  }
  char bytes[3];
  for (char& byte : bytes) {
    if (read(ready[0], &byte, 1) != 1) std::abort();
  }
  return workers;
}

/// Like hang(), but the workers are processes.
static int hang_with_processes(const std::filesystem::path& run, double seconds) {
  int ready[2];
  if (pipe(ready) != 0) return 1;
  decoder_mutex.lock();  // the workers have copies of the locked mutex
  const std::vector<pid_t> workers = fork_stuck_workers(ready);
  { LOTUS_BATCH_WAIT(0); }
  lotus::batch_wait wait;
  bool found = false;
  for (int i = 0; i < static_cast<int>(seconds * 50) && !found; ++i) {
    nap(20'000);
    found = has_snapshot(run);
  }
  for (const pid_t worker : workers) kill(worker, SIGKILL);
  _exit(found ? 0 : 1);
}

/// Waits for a batch that never arrives. Ends the process when the library has taken a snapshot.
[[noreturn]] static void hang(const std::filesystem::path& run, double seconds) {
  const std::lock_guard<std::mutex> hold{decoder_mutex};
  std::thread worker([] {
    {
      LOTUS_SCOPE("First");
      nap(1000);
    }
    LOTUS_SCOPE("Stuck");
    stuck_decoder();
  });
  std::thread spinner([] {
    LOTUS_SCOPE("Spin");
    while (!stopping) no_tail_call();
  });
  std::thread ender([&run, seconds] {
    for (int i = 0; i < static_cast<int>(seconds * 50); ++i) {
      nap(20'000);
      if (has_snapshot(run)) _exit(0);
    }
    _exit(1);
  });
  { LOTUS_BATCH_WAIT(0); }
  lotus::batch_wait wait;
  char byte = 0;
  for (;;) {
    if (read(pipe_ends[0], &byte, 1) < 0) nap(1000);
  }
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string end = argv[4];
  umask(0);  // so that only the mode that the library chooses protects the files
  if (pipe(pipe_ends) != 0) return 1;
  lotus::options chosen;
  chosen.log_file = argv[1];
  chosen.wait_samples_per_s = std::atoi(argv[3]);
  if (end == "limit") chosen.keep_bytes = 1 << 20;
  if (end == "hang" || end == "processes") {
    chosen.snapshot_when_wait_ms = 300;
    chosen.drain_interval_ms = 50;
  }
  if (!lotus::start(chosen)) return 1;
  const double seconds = std::atof(argv[2]);
  if (end == "hang") hang(std::filesystem::path(argv[1]).parent_path(), seconds);
  if (end == "processes") {
    return hang_with_processes(std::filesystem::path(argv[1]).parent_path(), seconds);
  }
  if (end == "batches") {
    build_batches(seconds);
  } else {
    run_for(seconds);
  }
  if (end == "kill") kill(getpid(), SIGKILL);
  lotus::stop();
  return 0;
}
