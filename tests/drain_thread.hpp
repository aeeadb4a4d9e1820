// Waits until the library's drain thread leaves the records of a test alone.
#ifndef LOTUS_TESTS_DRAIN_THREAD_HPP
#define LOTUS_TESTS_DRAIN_THREAD_HPP

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support.hpp"

namespace support {

/// Waits until the drain thread has slept for 100 ms at a stretch. Its pauses after start() are
/// shorter, and on a busy machine they may come at any time; so only then does
/// options::drain_interval_ms apply. The recording must be running.
inline void wait_until_drain_thread_rests() {
  using clock = std::chrono::steady_clock;
  const auto line_with = [](const fs::path& file, const std::string& start) {
    std::ifstream in{file};
    std::string line;
    while (std::getline(in, line) && line.rfind(start, 0) != 0) {
    }
    return line;
  };
  const std::string state = "State:";
  const std::string switches = "voluntary_ctxt_switches:";
  std::string asleep_at;  // how often the thread had gone to sleep before the present sleep
  clock::time_point since = clock::now();
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    for (const auto& thread : fs::directory_iterator("/proc/self/task")) {
      const fs::path status = thread.path() / "status";
      if (line_with(status, "Name:").find("lotus-drain") == std::string::npos) continue;
      const bool asleep = line_with(status, state).find("sleeping") != std::string::npos;
      const std::string now = asleep ? line_with(status, switches) : std::string{};
      if (now != asleep_at || now.empty()) {
        asleep_at = now;
        since = clock::now();
      } else if (clock::now() - since > std::chrono::milliseconds(100)) {
        return;
      }
    }
  }
}

}  // namespace support

#endif  // LOTUS_TESTS_DRAIN_THREAD_HPP
