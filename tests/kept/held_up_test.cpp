// Tests that a new thread that waits for the disk, because it writes the records of ended threads,
// holds up no other one that also continues the ring of an ended thread.

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace {

std::atomic<bool> disk_hangs{false};
std::atomic<bool> one_waits{false};
thread_local bool is_short = false;

/// The first short thread that writes while the disk hangs waits until it no longer does.
void wait_for_disk() noexcept {
  if (!is_short || !disk_hangs || one_waits.exchange(true)) return;
  while (disk_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Runs short threads one after the other; they record one span each.
void run_short_threads(int count) {
  for (int i = 0; i < count; ++i) {
    std::thread{[] {
      is_short = true;
      LOTUS_SCOPE("Short");
    }}.join();
  }
}

}  // namespace

extern "C" ssize_t write(int fd, const void* from, std::size_t bytes) {
  wait_for_disk();
  return syscall(SYS_write, fd, from, bytes);
}

extern "C" ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t at) {
  wait_for_disk();
  return syscall(SYS_pwrite64, fd, from, bytes, at);
}

TEST_CASE("a new thread that waits for the disk holds up no other new thread") {
  const support::temp_directory run;
  lotus::options o;
  o.log_file = run.prefix();
  o.drain_interval_ms = 60'000;
  o.cpu_time = false;
  o.format = GENERATE(lotus::log_format::text, lotus::log_format::compact);
  REQUIRE(lotus::start(o));
  run_short_threads(300);  // later ones continue the rings and logs of these
  one_waits = false;
  disk_hangs = true;
  std::thread held{[] {
    while (!one_waits) run_short_threads(1);
  }};
  while (!one_waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::future<void> others = std::async(std::launch::async, [] { run_short_threads(100); });
  const bool ended = others.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  disk_hangs = false;
  others.wait();
  held.join();
  lotus::stop();
  CHECK(ended);
  CHECK(support::count_named(support::read_logs(run.path()), "SShort") > 400);
}
