// A probe program with operations whose functions the tests know. Usage: lotus_map_probe MODE
//
//   ops             three operations, one of which has a name with special characters
//   flow            regions that are left in every way; prints the passes that ran
//   nested          nested regions, more pauses than resumes, detach twice
//   fence           a pure function, which must run inside its region
//   scopes          scopes, a batch and a chain of operations, for annotation
//   numbers         a batch, a stage and an asynchronous operation, for annotation
//   fork MS         operations in this process and a forked one, for MS milliseconds
//   fork_in_region  a region whose work is shared with a forked process
//   decoder MS      operations: one waits for threads without scopes, one sleeps, one computes
//   handler MS      scopes, and scopes of a signal handler, for MS milliseconds
//   fork_meanwhile  forks while a thread resumes; prints the child's exit status
//   sleep           sleeps until the process is killed
//   by_hand         resumes and pauses without a region
//   region NAME     one region with this name
//   exit STATUS     prints, and exits with this status
//   seccomp MODE    runs MODE with perf_event_open forbidden, as in containers
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lotus/lotus.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "arithmetic.hpp"

namespace {

using steady_clock = std::chrono::steady_clock;

void spin(double cpu_ms) {
  timespec ran{};
  volatile double x = 1;
  while (static_cast<double>(ran.tv_sec) * 1e3 + static_cast<double>(ran.tv_nsec) / 1e6 < cpu_ms) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    for (int i = 0; i < 2000; ++i) x = x * 1.0000001;
  }
}

inline double inlined_part(int rounds) {
  return arithmetic<7>(rounds);
}

constexpr int rounds = 8'000'000;
__attribute__((noinline)) double hot_beta() {
  return arithmetic<1>(rounds);
}
__attribute__((noinline)) double hot_gamma() {
  return inlined_part(rounds);
}
__attribute__((noinline)) double shared_part() {
  return arithmetic<3>(rounds / 2);
}

volatile double sink = 0;

void run_ops() {
  LOTUS_MAP_REGION("Beta") {
    sink = hot_beta() + shared_part();
  }
  LOTUS_MAP_REGION("../Gamma 100%, \"x\"") {
    sink = hot_gamma() + shared_part();
  }
  LOTUS_MAP_REGION("Empty") {}
}

int leave_by_return() {
  LOTUS_MAP_REGION("Return") {
    return 7;
  }
  return 0;
}

void run_flow(int which) {
  int runs = 0;
  switch (which) {
    case 1:
      LOTUS_MAP_REGION("Plain")++ runs;
      break;
    default:
      break;
  }
  std::printf("plain %d\n", runs);
  LOTUS_MAP_REGION("Break") {
    break;
  }
  std::printf("return %d\n", leave_by_return());
  try {
    LOTUS_MAP_REGION("Throw") {
      throw std::runtime_error("thrown");
    }
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
  }
  int made = 0;
  LOTUS_MAP_REGION("Later", made) {
    made = 5;
  }
  std::printf("made %d\n", made);
}

void run_nested() {
  LOTUS_PAUSE();
  LOTUS_RESUME();
  LOTUS_RESUME();
  LOTUS_PAUSE();
  std::printf("inner\n");
  LOTUS_PAUSE();
  LOTUS_PAUSE();
  LOTUS_RESUME();
  LOTUS_PAUSE();
  LOTUS_DETACH();
  LOTUS_DETACH();
  LOTUS_RESUME();
  LOTUS_PAUSE();
}

int passes_inside = 0;
bool inside = false;
// The attribute `const` claims that the result depends only on the argument, so the compiler may
// move calls. The function reads `inside` nevertheless, to detect a call that was moved out of the
// region.
__attribute__((noinline, const)) int pure_function(int x) {
  if (inside) ++passes_inside;
  return x * 3 + 1;
}

void run_by_hand() {
  LOTUS_RESUME();
  sink = hot_beta();
  LOTUS_PAUSE();
}

void run_region(const std::string& name) {
  LOTUS_MAP_REGION(name) {
    sink = hot_beta();
  }
}

void run_fence(int x) {
  int out = 0;
  LOTUS_MAP_REGION("Pure", x, out) {
    inside = true;
    lotus::detail::fence_memory();
    out = pure_function(x);
    lotus::detail::fence_value(&out);
    inside = false;
  }
  std::printf("%d inside %d\n", out, passes_inside);
}

void run_scopes() {
  LOTUS_SCOPE("Outer");
  {
    LOTUS_BATCH_PREPROCESSED(3);
    LOTUS_SCOPE_DYNAMIC(std::string("Inner"));
  }
  auto transform = lotus::compose(lotus::operation{"Add", [](int x) { return x + 1; }},
                                  lotus::operation{"Double", [](int x) { return x * 2; }});
  sink = transform(1);
  const lotus::range whole{"iteration_7"};
}

/// Runs an asynchronous operation whose second segment ends on another thread than it began.
void run_numbers() {
  lotus::async_scope load{"Load"};
  {
    LOTUS_BATCH_WAIT(41);
    LOTUS_STAGE("Decode", 7);
  }
  load.suspend();
  load.resume();
  std::thread([&] { load.suspend(); }).join();
  load.suspend();
}

void work_for(double ms) {
  const auto start = steady_clock::now();
  while (std::chrono::duration<double, std::milli>(steady_clock::now() - start).count() < ms) {
    LOTUS_SCOPE("Outer");
    {
      LOTUS_SCOPE("Beta");
      sink = hot_beta();
    }
    LOTUS_SCOPE("Gamma");
    sink = hot_gamma();
  }
}

void run_fork(double ms) {
  const pid_t child = fork();
  work_for(ms);
  if (child == 0) std::exit(0);
  waitpid(child, nullptr, 0);
}

void run_decoder(double ms) {
  {
    LOTUS_SCOPE("Decode");
    const auto decode = [ms](const char* name) {
      prctl(PR_SET_NAME, name);
      spin(ms);
    };
    std::thread{decode, "av:h264:df0"}.join();
    std::thread{decode, "av:h264:df1"}.join();
  }
  {
    LOTUS_SCOPE("Sleep");
    usleep(static_cast<useconds_t>(ms * 1000));
  }
  LOTUS_SCOPE("Burn");
  spin(ms);
}

void run_fork_in_region() {
  LOTUS_MAP_REGION("Forks") {
    const pid_t child = fork();
    if (child == 0) {
      sink = hot_beta();
      _exit(0);
    }
    sink = hot_gamma();
    waitpid(child, nullptr, 0);
  }
}

void run_handler(double ms) {
  // This first scope loads the profiler's library, because the signal handler must not load it.
  { LOTUS_SCOPE("First"); }
  struct sigaction action {};
  action.sa_handler = [](int) { LOTUS_SCOPE("Handler"); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto start = steady_clock::now();
  while (std::chrono::duration<double, std::milli>(steady_clock::now() - start).count() < ms) {
    for (int i = 0; i < 100; ++i) LOTUS_SCOPE("Interrupted");
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
}

void run_fork_meanwhile() {
  std::thread resuming{[] { LOTUS_RESUME(); }};
  usleep(200'000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    LOTUS_PAUSE();
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  resuming.join();
  std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

void forbid_sampling() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof(code) / sizeof(code[0]), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "ops";
  if (mode == "seccomp") {
    forbid_sampling();
    mode = argc > 2 ? argv[2] : "ops";
  }
  const double number = argc > 2 ? std::atof(argv[2]) : 0;
  if (mode == "ops") run_ops();
  if (mode == "flow") run_flow(1);
  if (mode == "nested") run_nested();
  if (mode == "by_hand") run_by_hand();
  if (mode == "region") run_region(argc > 2 ? argv[2] : "");
  if (mode == "fence") run_fence(argc);
  if (mode == "scopes") run_scopes();
  if (mode == "numbers") run_numbers();
  if (mode == "fork") run_fork(number);
  if (mode == "decoder") run_decoder(number);
  if (mode == "fork_in_region") run_fork_in_region();
  if (mode == "handler") run_handler(number);
  if (mode == "fork_meanwhile") run_fork_meanwhile();
  if (mode == "sleep") {
    LOTUS_MAP_REGION("Sleep") {
      spin(60'000);
    }
  }
  if (mode == "exit") {
    std::printf("said on stdout\n");
    return static_cast<int>(number);
  }
  return 0;
}
