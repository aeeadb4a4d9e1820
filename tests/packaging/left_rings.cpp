// A program that records and is killed before any record is written to a log, so a ring file is
// left. It is built for another CPU architecture; the tool of this machine must recover the ring.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "lotus/lotus.hpp"

int main(int, char** argv) {
  lotus::options o;
  o.log_file = argv[1];
  o.drain_interval_ms = 1'000'000;
  o.cpu_time = false;
  if (!lotus::start(o)) return 1;
  usleep(500'000);  // waits until the drains shortly after start() are over
  std::thread{[] {
    LOTUS_BATCH_PREPROCESSED(7);
    LOTUS_SCOPE("Sleep, 50 ms");
    usleep(50'000);
  }}.join();
  for (int i = 0; i < 1000; ++i) {
    LOTUS_SCOPE_DYNAMIC("Name" + std::to_string(i % 10));
  }
  LOTUS_BATCH_CONSUMED(7);
  raise(SIGKILL);
}
