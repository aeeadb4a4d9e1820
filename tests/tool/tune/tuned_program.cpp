// A loader whose throughput depends on its settings, for tests of lotus-tool tune. All its work is
// sleeping, so that its throughput does not depend on the machine.
// tuned_program WORKERS PREFETCH [MODE]
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
  loader(std::size_t workers, std::size_t prefetch) : in_flight_(workers * prefetch) {
    for (std::size_t w = 0; w < workers; ++w) {
      threads_.emplace_back([this] { work(); });
    }
  }

  /// Consumes batches forever.
  void consume(std::chrono::microseconds step) {
    for (std::uint64_t i = 0;; ++i) {
      {
        LOTUS_BATCH_WAIT(i);
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this, i] { return i < ready_.size() && ready_[i]; });
        ++taken_;
      }
      changed_.notify_all();
      LOTUS_BATCH_CONSUMED(i);
      std::this_thread::sleep_for(step);
    }
  }

 private:
  void work() {
    while (true) {
      std::uint64_t i = 0;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return begun_ < taken_ + in_flight_; });
        i = begun_++;
        ready_.resize(begun_);
      }
      {
        LOTUS_BATCH_PREPROCESSED(i);
        LOTUS_SCOPE("Read");
        // One batch in eight takes longer, so that prefetching more than one batch helps.
        std::this_thread::sleep_for(i % 8 == 0 ? 40ms : 16ms);
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      ready_[i] = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ready_;
  std::uint64_t begun_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t in_flight_;
  std::vector<std::thread> threads_;
};

/// Starts a process that ignores SIGTERM, and writes its id to a file.
/// @param apart  whether it belongs to no session and process group of ours, and has another
/// parent.
void leave_a_process(const char* file, bool apart) {
  const pid_t child = fork();
  if (child != 0) {
    if (apart) waitpid(child, nullptr, 0);
    return;
  }
  if (apart) {
    setsid();
    if (fork() != 0) _exit(0);
  }
  std::ofstream(file, std::ios::app) << getpid() << std::endl;
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
  if (mode == "rate") {
    // Best with 3 workers, and twice as fast if the variable FAST is "2".
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
  }
  if (mode == "ignores-and-forks") {
    std::signal(SIGTERM, SIG_IGN);
    leave_a_process(argv[4], true);
    leave_a_process(argv[4], false);
  }
  loader batches(workers, prefetch);
  batches.consume(5ms);
}
