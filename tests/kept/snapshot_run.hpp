// Provides a run whose snapshots are created next to it.
#ifndef LOTUS_TESTS_SNAPSHOT_RUN_HPP
#define LOTUS_TESTS_SNAPSHOT_RUN_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "messages.hpp"
#include "support.hpp"

namespace support {

/// A run in its own folder, in a temporary directory that also contains the run's snapshots.
struct snapshot_run {
  temp_directory around;
  fs::path run = around.path() / "run";

  lotus::options options() const {
    lotus::options o;
    o.log_file = (run / "lotustrace_log").string();
    o.cpu_time = false;
    o.drain_interval_ms = 20;
    collected_messages::clear();
    o.on_message = &collected_messages::add;
    return o;
  }

  std::vector<fs::path> snapshots() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(around.path())) {
      if (entry.path() != run) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path wait_for_one() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    for (;;) {
      const std::vector<fs::path> found = snapshots();
      if (!found.empty() && found[0].extension() != ".unfinished") return found[0];
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

inline bool has_end(const fs::path& name, const std::string& end) {
  const std::string text = name.string();
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

inline void consume(std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) LOTUS_BATCH_CONSUMED(i);
}

inline std::multiset<std::string> names_in(const fs::path& run) {
  std::multiset<std::string> found;
  for (const auto& line : read_logs(run)) found.insert(line.name);
  return found;
}

}  // namespace support

#endif  // LOTUS_TESTS_SNAPSHOT_RUN_HPP
