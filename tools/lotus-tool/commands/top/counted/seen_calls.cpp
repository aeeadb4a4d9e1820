#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <lotus/aggregates/aggregate_chain.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "commands/top/counted/counted_window.hpp"
#include "commands/top/living_folder.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

/// Of a bucket of durations, in ticks.
double middle_of(std::uint32_t bucket) {
  return static_cast<double>(lotus::detail::bucket_begin(bucket)) +
         static_cast<double>(lotus::detail::bucket_width(bucket) - 1) / 2;
}

}  // namespace

std::vector<seen_calls> living_folder::calls(const std::string& info_dir) const {
  std::vector<seen_calls> found;
  for (const auto* rings : {&rings_, &ended_}) {
    for (const auto& [path, ring] : *rings) {
      if (ring.dir != info_dir) continue;
      const auto stretch = ring.counted.since(begin_ns_);
      if (!stretch) continue;
      const std::string name = fs::path(path).filename().string();
      for (const auto& [of, calls] : stretch->calls) {
        const auto ns = [ns_per_tick = ring.ns_per_tick](double ticks) {
          return std::llround(ticks * ns_per_tick);
        };
        seen_calls& seen = found.emplace_back();
        seen.dir = of.first.empty() ? ring.dir : (fs::path(ring.dir) / of.first).string();
        seen.ring = name.substr(std::string_view(lotus::detail::ring_file_start).size());
        seen.name = of.second;
        seen.count = calls.count;
        seen.total_ns = ns(static_cast<double>(calls.total_ticks));
        seen.self_ns = ns(static_cast<double>(calls.self_ticks));
        if (!calls.buckets.empty()) seen.max_ns = ns(middle_of(calls.buckets.back().first));
        seen.stretch_ns = stretch->ns;
      }
    }
  }
  return found;
}

bool living_folder::wants_another_look() const {
  return std::any_of(rings_.begin(), rings_.end(),
                     [](const auto& ring) { return ring.second.counted.wants_another_look(); });
}

}  // namespace lotus::tool
