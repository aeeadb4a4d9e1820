// A loader whose throughput depends on its settings, for tests of lotus-tool tune. All its work is
// sleeping, so that its throughput does not depend on the machine.
// Usage: tuned_program WORKERS PREFETCH [MODE [ARGUMENT]]
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <lotus/lotus.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// Workers that build batches, and a consumer that receives them in order. At most PREFETCH batches
/// per worker are in flight.
class loader {
 public:
  struct kind {
    bool ordered = true;
    /// Time to build a batch. Every eighth batch takes the time `slow` instead.
    std::chrono::milliseconds build = 16ms;
    std::chrono::milliseconds slow = 40ms;
    bool total = false;    ///< whether PREFETCH limits the batches of all workers together
    bool starves = false;  ///< whether workers get no batch if fewer than all can be in flight
  };
  loader(std::size_t workers, std::size_t prefetch, kind what)
      : what_(what), in_flight_(what.total ? prefetch : workers * prefetch) {
    for (std::size_t w = 0; w < workers && (w < in_flight_ || !what.starves); ++w) {
      threads_.emplace_back([this] { work(); });
    }
  }

  /// Consumes batches forever.
  void consume(std::chrono::microseconds step) {
    for (std::uint64_t n = 0;; ++n) {
      receive(n);
      std::this_thread::sleep_for(step);
    }
  }

 private:
  void receive(std::uint64_t n) {
    lotus::batch_wait wait;
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = [&] {
      return what_.ordered ? std::find(ready_.begin(), ready_.end(), n) : ready_.begin();
    };
    changed_.wait(lock, [&] { return found() != ready_.end(); });
    const std::uint64_t i = *found();
    ready_.erase(found());
    ++taken_;
    changed_.notify_all();
    wait.consumed(i);
  }

  void work() {
    while (true) {
      std::uint64_t i = 0;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return begun_ < taken_ + in_flight_; });
        i = begun_++;
      }
      {
        LOTUS_BATCH_PREPROCESSED(i);
        LOTUS_SCOPE("Read");
        // One batch in eight takes longer, so that prefetching more than one batch helps.
        std::this_thread::sleep_for(i % 8 == 0 ? what_.slow : what_.build);
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(i);
      changed_.notify_all();
    }
  }

  kind what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> ready_;
  std::uint64_t begun_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t in_flight_;
  std::vector<std::thread> threads_;
};

/// A queue of at most four numbers.
class queue {
 public:
  void put(std::uint64_t i) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return items_.size() < 4; });
    items_.push_back(i);
    changed_.notify_all();
  }
  std::uint64_t take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !items_.empty(); });
    const std::uint64_t i = items_.front();
    items_.pop_front();
    changed_.notify_all();
    return i;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> items_;
};

/// Runs two stages with threads of their own: "Read" takes 12 ms per batch, and "Decode" takes 24
/// ms. Without a consumer, a batch is finished when "Decode" ends.
void run_stages(std::size_t readers, std::size_t decoders, bool consumer) {
  static queue to_decode;
  static queue decoded;
  static std::atomic<std::uint64_t> next{0};
  for (std::size_t r = 0; r < readers; ++r) {
    std::thread([] {
      while (true) {
        const std::uint64_t i = next++;
        {
          LOTUS_STAGE("Read", i);
          std::this_thread::sleep_for(12ms);
        }
        to_decode.put(i);
      }
    }).detach();
  }
  for (std::size_t d = 0; d < decoders; ++d) {
    std::thread([consumer] {
      while (true) {
        const std::uint64_t i = to_decode.take();
        {
          LOTUS_STAGE("Decode", i);
          std::this_thread::sleep_for(24ms);
        }
        if (consumer) decoded.put(i);
      }
    }).detach();
  }
  while (!consumer) pause();
  while (true) {
    lotus::batch_wait wait;
    const std::uint64_t i = decoded.take();
    wait.consumed(i);
    std::this_thread::sleep_for(6ms);
  }
}

/// Reads a password from the terminal. Without a terminal, prints an error and returns 6.
int ask_for_password() {
  std::ifstream terminal("/dev/tty");
  std::string word;
  if (terminal >> word) return 0;
  std::cerr << "no terminal to ask for a password" << std::endl;
  return 6;
}

/// Limits the memory of this process to 512 MiB, and allocates until the limit is reached.
void use_all_memory() {
  const rlimit little{512U << 20U, 512U << 20U};
  setrlimit(RLIMIT_AS, &little);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::vector<std::vector<char>> kept;
  while (true) kept.emplace_back(1U << 20U, 'x');
}

/// Starts a process that does not end by itself, and writes its id to a file.
/// @param apart  whether the process has a session and a process group of its own, and is not a
/// child of this process.
void leave_a_process(const char* file, bool apart) {
  // The new process may be killed before it runs, so its parent writes its id.
  const auto note = [file](pid_t id) { std::ofstream(file, std::ios::app) << id << std::endl; };
  const pid_t child = fork();
  if (child != 0) {
    if (apart) {
      waitpid(child, nullptr, 0);
    } else {
      note(child);
    }
    return;
  }
  if (apart) {
    setsid();
    const pid_t stays = fork();
    if (stays != 0) {
      note(stays);
      _exit(0);
    }
  }
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t workers = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const std::size_t prefetch = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  const std::string mode = argc > 3 ? argv[3] : "";
  if (mode == "fails") {
    std::cerr << "no such dataset" << std::endl;
    return 3;
  }
  if (mode == "fails-with-3" && workers == 3) return 4;
  if (mode == "nothing") {
    while (true) pause();
  }
  if (mode == "hangs") {
    { LOTUS_SCOPE("Open"); }
    while (true) pause();
  }
  if (mode == "terminal") return ask_for_password();
  if (mode == "input") {
    std::string line;
    if (!std::getline(std::cin, line)) std::cerr << "expected a list of files" << std::endl;
    return 5;
  }
  if (mode == "memory") use_all_memory();
  // Lets threads run as soon as they wake, even if other programs keep all CPUs busy. Users without
  // privileges may not do this.
  const sched_param before_others{1};
  sched_setscheduler(0, SCHED_RR, &before_others);
  if (mode == "stages") run_stages(workers, prefetch, true);
  if (mode == "pushes") run_stages(workers, prefetch, false);
  if (mode == "daemon") {
    leave_a_process(argv[4], true);
    return 0;
  }
  if (mode == "rate") {
    // Prints a rate that is highest with at least 3 workers, and that doubles if the variable FAST
    // is "2".
    const char* const fast = std::getenv("FAST");
    const double factor = fast != nullptr && std::string(fast) == "2" ? 2 : 1;
    for (int i = 0;; ++i) {
      const double rate = factor * (i < 3 ? 1.0 : workers > 3 ? 90.0 : 30.0 * double(workers));
      std::cout << "step " << i << ": " << rate << " it/s" << std::endl;
      std::this_thread::sleep_for(10ms);
    }
  }
  if (mode == "prints") {
    const std::string line(1000, 'x');
    for (int i = 0; i < 20'000; ++i) std::cout << line << '\n';
    for (int i = 0; i < 20'000; ++i) std::cout << line;
  }
  if (mode == "ignores-and-forks") {
    std::signal(SIGTERM, SIG_IGN);
    leave_a_process(argv[4], true);
    leave_a_process(argv[4], false);
  }
  loader::kind what;
  what.starves = mode == "starves";
  what.total = what.starves || mode == "total";
  if (mode == "order") what = {std::string(argv[4]) == "1", 16ms, 120ms};
  std::chrono::microseconds step = 5ms;
  if (mode == "batch") {
    // The time to build a batch grows with the batch size, but 16 ms of it do not depend on the
    // size.
    const long size = std::strtol(argv[4], nullptr, 10);
    what.build = what.slow = 16ms + std::chrono::milliseconds(size / 2);
    step = 2ms;
  }
  loader batches(workers, prefetch, what);
  batches.consume(step);
}
