// A program whose threads measure how they spend their time. sampled_shares.py compares this with
// what lotus-tool measures from another process.
//
// Usage: sampled_shares SECONDS PLUGIN. Prints lines "thread START KIND NAME NS" for each thread:
// the time in ns that it spent in NAME. KIND is cpu, wait, queue or all.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sampled_work.hpp"

#define OWN_FUNCTION __attribute__((noinline, noclone))

namespace {

std::uint64_t end_ns;
std::mutex print_lock;

bool goes_on() {
  return clock_ns(CLOCK_MONOTONIC) < end_ns;
}

/// The time now, and the CPU time and run queue time of the calling thread.
struct times {
  std::uint64_t wall = clock_ns(CLOCK_MONOTONIC);
  std::uint64_t cpu = 0;
  std::uint64_t queue = 0;
};

/// Measures how one thread spends its time. The destructor prints the result.
class account {
 public:
  explicit account(std::string start) : start_(std::move(start)), file_(open_file()) {
    begin_ = now();
  }
  ~account() {
    const times end = now();
    const std::lock_guard<std::mutex> hold(print_lock);
    for (const auto& [what, ns] : sums_) {
      std::printf("thread %s %s %llu\n", start_.c_str(), what.c_str(),
                  static_cast<unsigned long long>(ns));
    }
    std::printf("thread %s queue - %llu\nthread %s all - %llu\n", start_.c_str(),
                static_cast<unsigned long long>(end.queue - begin_.queue), start_.c_str(),
                static_cast<unsigned long long>(end.wall - begin_.wall));
    close(file_);
  }

  /// Calls a function and adds its CPU time and its waiting time to the sums for `name`.
  template <class Function>
  void call(const char* name, Function&& function) {
    const times before = now();
    function();
    const times after = now();
    const std::uint64_t cpu = after.cpu - before.cpu;
    const std::uint64_t queue = after.queue - before.queue;
    const std::uint64_t wall = after.wall - before.wall;
    sums_[std::string("cpu ") + name] += cpu;
    sums_[std::string("wait ") + name] += wall > cpu + queue ? wall - cpu - queue : 0;
  }

 private:
  static int open_file() { return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }
  times now() const {
    times t;
    char text[64] = {};
    if (pread(file_, text, sizeof text - 1, 0) > 0) {
      char* end = nullptr;
      t.cpu = std::strtoull(text, &end, 10);
      t.queue = std::strtoull(end, nullptr, 10);
    }
    return t;
  }

  std::string start_;
  int file_;
  times begin_;
  std::map<std::string, std::uint64_t> sums_;
};

class Loader {
 public:
  OWN_FUNCTION int next() {
    std::unique_lock<std::mutex> hold(mutex_);
    not_empty_.wait(hold, [this] { return !ready_.empty(); });
    const int batch = ready_.front();
    ready_.pop_front();
    return batch;
  }
  void put(int batch) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      ready_.push_back(batch);
    }
    not_empty_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<int> ready_;
};

std::mutex shared_lock;

}  // namespace

OWN_FUNCTION void train_step() {
  LOTUS_USE_CPU(2);
}
OWN_FUNCTION void decode() {
  LOTUS_USE_CPU(6);
}
OWN_FUNCTION void resize() {
  LOTUS_USE_CPU(3);
}
OWN_FUNCTION void rest(unsigned us) {
  usleep(us);
  // Prevents a tail call, which would hide this function in stack traces.
  asm volatile("" ::: "memory");
}
OWN_FUNCTION void read_disk() {
  usleep(12'000);
  asm volatile("" ::: "memory");
}
OWN_FUNCTION void hold_shared() {
  const std::lock_guard<std::mutex> hold(shared_lock);
  usleep(8'000);
}
OWN_FUNCTION void want_shared() {
  const std::lock_guard<std::mutex> hold(shared_lock);
  asm volatile("" ::: "memory");
}
OWN_FUNCTION void read_pipe(int fd) {
  char c = 0;
  while (read(fd, &c, 1) < 0) {
  }
  asm volatile("" ::: "memory");
}

using plugin_function = void (*)(int);

OWN_FUNCTION void worker_loop(Loader& loader, plugin_function plugin) {
  account own("worker_loop");
  while (goes_on()) {
    own.call("decode", decode);
    own.call("resize", resize);
    own.call("decode_in_plugin", [plugin] { plugin(1); });
    own.call("read_disk", read_disk);
    loader.put(1);
  }
  loader.put(-1);
}

OWN_FUNCTION void lock_loop() {
  account own("lock_loop");
  while (goes_on()) {
    own.call("hold_shared", hold_shared);
    own.call("rest", [] { rest(3'000); });
  }
}

OWN_FUNCTION void wanting_loop() {
  account own("wanting_loop");
  while (goes_on()) {
    own.call("want_shared", want_shared);
    own.call("rest", [] { rest(1'000); });
  }
}

OWN_FUNCTION void pipe_loop(int fd) {
  account own("pipe_loop");
  while (goes_on()) own.call("read_pipe", [fd] { read_pipe(fd); });
}

OWN_FUNCTION void feeding_loop(int fd) {
  account own("feeding_loop");
  while (goes_on()) {
    own.call("rest", [] { rest(4'000); });
    if (write(fd, "x", 1) != 1) break;
  }
  close(fd);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  end_ns = clock_ns(CLOCK_MONOTONIC) +
           static_cast<std::uint64_t>(std::strtod(arguments[1], nullptr) * 1e9);
  void* const library = dlopen(arguments[2], RTLD_NOW);
  if (library == nullptr) return 3;
  const auto plugin = reinterpret_cast<plugin_function>(dlsym(library, "decode_in_plugin"));
  int ends[2];
  if (plugin == nullptr || pipe(ends) != 0) return 3;
  Loader loader;
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int i = 0; i < 2; ++i) threads.emplace_back(worker_loop, std::ref(loader), plugin);
  threads.emplace_back(lock_loop);
  threads.emplace_back(wanting_loop);
  threads.emplace_back(pipe_loop, ends[0]);
  threads.emplace_back(feeding_loop, ends[1]);
  {
    account own("main");
    int left = 2;
    while (left > 0) {
      own.call("Loader::next", [&] { left -= loader.next() < 0 ? 1 : 0; });
      own.call("train_step", train_step);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
