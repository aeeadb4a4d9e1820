// Tests recording at maximum speed on two threads: no record may be lost, and memory use must stay
// bounded.
//
// Usage: sustained [--seconds S]. The exit status is 0 on success. The logs grow by a gigabyte per
// second, so the test deletes them during the run: it opens and deletes each log, and counts the
// lines until the library has noticed the deletion and created a new log.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../support.hpp"
#include "lotus/lotus.hpp"

namespace {

/// Counts the lines of all logs in a folder, and deletes the logs.
class log_counter {
 public:
  explicit log_counter(support::fs::path folder) : folder_{std::move(folder)} {}

  void take() {
    for (const auto& entry : support::fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().rfind("lotustrace_log_worker", 0) != 0) continue;
      const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      unlink(entry.path().c_str());
      logs_.push_back({fd, 0});
    }
    for (auto log = logs_.begin(); log != logs_.end();) {
      const std::uint64_t before = lines_;
      count(log->descriptor);
      log->quiet_rounds = lines_ == before ? log->quiet_rounds + 1 : 0;
      if (log->quiet_rounds < 20) {
        ++log;
      } else {
        close(log->descriptor);
        log = logs_.erase(log);
      }
    }
  }

  std::uint64_t lines() const { return lines_; }

 private:
  struct taken_log {
    int descriptor;
    int quiet_rounds;
  };

  void count(int fd) {
    ssize_t n = 0;
    while ((n = read(fd, buffer_.data(), buffer_.size())) > 0) {
      const char* at = buffer_.data();
      const char* end = at + n;
      while ((at = static_cast<const char*>(
                  std::memchr(at, '\n', static_cast<std::size_t>(end - at)))) != nullptr) {
        ++lines_;
        ++at;
      }
    }
  }

  support::fs::path folder_;
  std::vector<taken_log> logs_;
  std::vector<char> buffer_ = std::vector<char>(1 << 20);
  std::uint64_t lines_ = 0;
};

/// Returns how much memory of this process is in RAM, in KiB.
std::uint64_t memory_kib() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  std::uint64_t sum = 0;
  std::uint64_t value = 0;
  while (status >> word) {
    if ((word == "RssAnon:" || word == "RssFile:" || word == "RssShmem:") && status >> value) {
      sum += value;
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  int seconds = 3;
  if (argc == 3 && std::strcmp(argv[1], "--seconds") == 0) seconds = std::atoi(argv[2]);
  const support::temp_directory run;
  if (!lotus::start(run.prefix())) return 1;

  std::atomic<bool> stop{false};
  std::uint64_t ended[2] = {};
  std::vector<std::thread> threads;
  for (std::uint64_t& own : ended) {
    threads.emplace_back([&own, &stop] {
      std::uint64_t count = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        for (int i = 0; i < 1000; ++i) LOTUS_SCOPE("Sustained");
        count += 1000;
      }
      own = count;
    });
  }

  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  log_counter logs{run.path()};
  std::uint64_t early_kib = 0;
  std::uint64_t max_kib = 0;
  while (clock::now() - begin < std::chrono::seconds(seconds)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    logs.take();
    max_kib = std::max(max_kib, memory_kib());
    if (early_kib == 0 && clock::now() - begin > std::chrono::seconds(1)) early_kib = max_kib;
  }
  stop = true;
  for (auto& t : threads) t.join();
  lotus::stop();
  logs.take();

  const std::uint64_t all = ended[0] + ended[1];
  const std::uint64_t grown_kib = max_kib - early_kib;
  std::printf(
      "%llu scopes in %d s, %llu lines, %llu dropped; memory %llu KiB after a second, at most %llu "
      "KiB\n",
      static_cast<unsigned long long>(all), seconds, static_cast<unsigned long long>(logs.lines()),
      static_cast<unsigned long long>(lotus::dropped()), static_cast<unsigned long long>(early_kib),
      static_cast<unsigned long long>(max_kib));
  return all == logs.lines() && lotus::dropped() == 0 && grown_kib < 16'384 ? 0 : 1;
}
