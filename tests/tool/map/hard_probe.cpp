// A probe program with cases that are difficult for sampling. Usage: lotus_map_hard_probe CASE
//
//   pinned             the first thread is bound to one CPU, another thread is not
//   older_thread       a thread that ran before all regions starts another one inside a region
//   objects A B        loads object A, then B at the same address, then A inside a region
//   nested             a region inside a region
//   neighbours         regions of two threads at the same time
//   forks              regions also in a forked process; all processes end by _exit
//   left               a region that is left during its warm-up, and one after LOTUS_DETACH
//   fork_at_once       forks while threads begin to record; prints the child's wait status
//   fork_handler WHEN  records for the first time in a fork handler of the program (WHEN: prepare,
//                      parent or child); prints the child's wait status
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <lotus/lotus.hpp>
#include <string>
#include <thread>
#include <vector>

#include "arithmetic.hpp"

namespace {

constexpr int rounds = 20'000'000;
std::atomic<double> sink{0};

__attribute__((noinline)) double hot_alpha() {
  return arithmetic<1>(rounds);
}
__attribute__((noinline)) double hot_beta() {
  return arithmetic<2>(rounds);
}
__attribute__((noinline)) double hot_gamma() {
  return arithmetic<3>(rounds);
}

void keep_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

void run_pinned() {
  keep_to(0);
  LOTUS_MAP_REGION("Op") {
    std::thread other{[] {
      keep_to(1);
      sink = hot_beta();
    }};
    sink = hot_alpha();
    other.join();
  }
}

void run_older_thread() {
  std::atomic<int> asked{0};
  std::atomic<int> done{0};
  std::atomic<bool> end{false};
  std::thread older{[&] {
    while (!end) {
      usleep(1000);
      if (asked == done) continue;
      std::thread{[] { sink = hot_beta(); }}.join();
      ++done;
    }
  }};
  LOTUS_MAP_REGION("Op") {
    sink = hot_alpha();
    for (++asked; asked != done;) usleep(1000);
  }
  end = true;
  older.join();
}

class object {
 public:
  explicit object(const char* path)
      : handle_{dlopen(path, RTLD_NOW)},
        run_{reinterpret_cast<double (*)()>(dlsym(handle_, "run_object"))} {}
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  ~object() { dlclose(handle_); }
  void run() const { sink = run_(); }

 private:
  void* handle_;
  double (*run_)();
};

void run_objects(const char* first, const char* second) {
  {
    const object loaded{first};
    LOTUS_MAP_REGION("First") {
      loaded.run();
    }
  }
  {
    const object loaded{second};
    LOTUS_MAP_REGION("Second") {
      loaded.run();
    }
  }
  LOTUS_MAP_REGION("Within") {
    const object loaded{first};
    loaded.run();
  }
}

void run_nested() {
  LOTUS_MAP_REGION("Outer") {
    sink = hot_alpha();
    LOTUS_MAP_REGION("Inner") {
      sink = hot_beta();
    }
    sink = hot_gamma();
  }
}

void run_neighbours() {
  std::thread one{[] {
    LOTUS_MAP_REGION("One") {
      sink = hot_alpha();
    }
  }};
  std::thread other{[] {
    LOTUS_MAP_REGION("Other") {
      sink = hot_beta();
    }
  }};
  one.join();
  other.join();
}

void run_forks() {
  LOTUS_MAP_REGION("Around") {
    const pid_t child = fork();
    if (child == 0) {
      sink = hot_alpha();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  const pid_t child = fork();
  if (child == 0) {
    LOTUS_MAP_REGION("Within") {
      sink = hot_beta();
    }
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  LOTUS_MAP_REGION("Last") {
    sink = hot_gamma();
  }
  _exit(0);
}

void run_left() {
  int passes = 0;
  LOTUS_MAP_REGION("Left") {
    ++passes;
    break;
  }
  std::printf("left %d\n", passes);
  LOTUS_DETACH();
  passes = 0;
  LOTUS_MAP_REGION("Detached")++ passes;
  std::printf("detached %d\n", passes);
}

void run_fork_at_once() {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++ready;
      LOTUS_MAP_REGION("Thread")
      LOTUS_SCOPE("thread");
    });
  }
  while (ready == 0) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    LOTUS_MAP_REGION("Child")
    LOTUS_SCOPE("child");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  for (std::thread& t : threads) t.join();
  std::printf("child %d\n", status);
}

std::string handler_that_records;
void record_in_handler(const char* handler) {
  if (handler_that_records == handler) LOTUS_SCOPE("handler");
}
// These handlers are registered before the library's own, so they run after the library has
// prepared for the fork.
__attribute__((constructor(101))) void register_fork_handlers() {
  pthread_atfork([] { record_in_handler("prepare"); }, [] { record_in_handler("parent"); },
                 [] { record_in_handler("child"); });
}

void run_fork_handler(const char* handler) {
  handler_that_records = handler;
  alarm(250);
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    for (int i = 0; i < 3; ++i) LOTUS_SCOPE("child");
    std::exit(0);
  }
  LOTUS_SCOPE("parent");
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "pinned") run_pinned();
  if (mode == "older_thread") run_older_thread();
  if (mode == "objects" && argc == 4) run_objects(argv[2], argv[3]);
  if (mode == "nested") run_nested();
  if (mode == "neighbours") run_neighbours();
  if (mode == "forks") run_forks();
  if (mode == "left") run_left();
  if (mode == "fork_at_once") run_fork_at_once();
  if (mode == "fork_handler" && argc == 3) run_fork_handler(argv[2]);
  return 0;
}
