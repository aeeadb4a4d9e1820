// A program that attacks_test.cpp starts, because the attack needs a main() of its own, or must not
// have the threads and files of the test.

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "lotus/lotus.hpp"

namespace {

lotus::options options_for(const std::string& directory) {
  lotus::options o;
  o.log_file = directory + "/lotustrace_log";
  o.cpu_time = false;
  return o;
}

/// main() leaves by pthread_exit, and then the only other thread ends.
int leave(const std::string& directory, bool stops) {
  lotus::start(options_for(directory));
  std::thread{[] {
    { LOTUS_SCOPE("before"); }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    { LOTUS_SCOPE("after"); }
  }}.detach();
  if (stops) lotus::stop();
  pthread_exit(nullptr);
}

/// Records as many scopes as a line of the standard input says, and answers when it is done.
int obey(const std::string& directory) {
  auto o = options_for(directory);
  o.wait_samples_per_s = 0;
  if (!lotus::start(o)) return 3;
  unsigned long done = 0;
  for (unsigned long times = 0; std::cin >> times;) {
    for (; times > 0; --times, ++done) LOTUS_SCOPE("obeyed");
    std::cout << done << std::endl;
  }
  lotus::stop();
  return 0;
}

int record_without_tsc(const std::string& directory) {
#if defined(__x86_64__)
  if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) return 77;
#endif
  const bool recorded = lotus::start(options_for(directory));
  for (int i = 0; i < 100; ++i) LOTUS_SCOPE("untimed");
  lotus::stop();
  return recorded ? 1 : 0;
}

int record_shortly(const std::string& directory) {
  auto o = options_for(directory);
  o.keep_bytes = 400'000;
  o.on_message = [](const char*) {};
  if (!lotus::start(o)) return 3;
  for (int i = 0; i < 50; ++i) LOTUS_SCOPE("short");
  usleep(10'000);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string_view what{arguments[1]};
  const std::string directory{arguments[2]};
  if (what == "leave") return leave(directory, false);
  if (what == "stop_and_leave") return leave(directory, true);
  if (what == "obey") return obey(directory);
  if (what == "without_tsc") return record_without_tsc(directory);
  if (what == "short") return record_shortly(directory);
  return 2;
}
