// Sums up the times of the spans of a batch or item, which may overlap and nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/identifiers.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Adds up the spans of one batch or item. Spans must be added in order of start.
class work_time {
 public:
  void add(const preprocessing_span& s) {
    covered_ns_ += std::max<std::int64_t>(0, s.end_ns() - std::max(s.start_ns, end_ns_));
    end_ns_ = std::max(end_ns_, s.end_ns());
    // A span that is nested in another span of its thread is already part of the other span's time.
    const auto [until, is_new] = until_ns_.try_emplace(s.file, INT64_MIN);
    if (s.end_ns() <= until->second) return;
    service_ns_ += s.duration_ns;
    until->second = s.end_ns();
  }

  /// Returns the sum of the spans' durations. If spans overlap, the sum may exceed the time from
  /// the first start to the last end.
  std::int64_t service_ns() const noexcept { return service_ns_; }
  /// Returns how long at least one of the spans was open.
  std::int64_t covered_ns() const noexcept { return covered_ns_; }

 private:
  std::int64_t service_ns_ = 0;
  std::int64_t covered_ns_ = 0;
  std::int64_t end_ns_ = INT64_MIN;
  std::map<optional_file, std::int64_t> until_ns_;
};

}  // namespace lotus::tool
