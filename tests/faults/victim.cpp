// A program that records until it crashes or is killed. Usage: victim HOW PREFIX COUNTERS.

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "drain_thread.hpp"
#include "lotus/lotus.hpp"
#include "shared_page.hpp"

namespace {

/// Records scopes named t<slot>, and counts each one after it has ended.
void record(support::shared_page& ended, std::size_t slot, std::uint64_t times) {
  const std::string name = "t" + std::to_string(slot);
  for (std::uint64_t i = 0; i < times; ++i) {
    { LOTUS_SCOPE_DYNAMIC(name); }
    ended[slot].fetch_add(1, std::memory_order_relaxed);
  }
}

[[noreturn]] void flat_out(support::shared_page& ended) {
  std::vector<std::thread> threads;
  for (std::size_t slot = 1; slot < 3; ++slot) {
    threads.emplace_back([&ended, slot] { record(ended, slot, ~std::uint64_t{0}); });
  }
  // While these threads record, other threads start, record and end.
  for (std::size_t round = 0;; ++round) {
    std::thread{[&] { record(ended, 3 + round % 8, 50); }}.join();
  }
}

/// Causes SIGSEGV by writing to a page that is mapped without write access.
void segmentation_fault() {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(page) = 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string how = argv[1];
  support::shared_page ended{argv[3]};
  lotus::options chosen;
  chosen.log_file = argv[2];
  chosen.drain_interval_ms = how == "flat-out" ? 2 : 1'000'000;
  chosen.ring_records = how == "flat-out" ? 256 : 8192;
  chosen.on_message = [](const char*) {};
  if (!lotus::start(chosen)) return 3;
  if (how == "flat-out") flat_out(ended);

  std::thread{[&] { record(ended, 1, 1000); }}.join();
  support::wait_until_drain_thread_rests();  // no record may be in the logs before the end
  std::thread other{[&] {
    record(ended, 2, 1000);
    pause();
  }};
  other.detach();
  while (ended[2] < 1000) usleep(1000);
  record(ended, 0, 1000);
  LOTUS_SCOPE("NeverEnds");

  const std::map<std::string, std::function<void()>> ends = {
      {"sigkill", [] { raise(SIGKILL); }},
      {"sigsegv", segmentation_fault},
      {"abort", [] { abort(); }},
      {"_exit", [] { _exit(0); }},
      {"quick_exit", [] { quick_exit(0); }},
      {"terminate", [] { std::terminate(); }},
      {"sigterm", [] { raise(SIGTERM); }},
      {"exit", [] { exit(0); }},
      {"exec", [&] { execl("/bin/true", "true", nullptr); }},
  };
  ends.at(how)();
}
