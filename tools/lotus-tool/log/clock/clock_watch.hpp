// Notices, while a log is read, that the clock may have been set during the run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lotus::tool {

/// A time without any record: none begins or ends in it. A span may be open all the time.
struct silence {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

/// Watches the times of one log. Costs two comparisons per line.
class clock_watch {
 public:
  /// Sees the next line of the log.
  void see(std::int64_t start_ns, std::int64_t end_ns) noexcept {
    if (end_ns - latest_ns_ > longest_ns_) see_silence(start_ns, end_ns);
    if (end_ns < latest_start_ns_ - least_back_ns) goes_back_ = true;
    if (start_ns > latest_start_ns_) latest_start_ns_ = start_ns;
    if (end_ns > latest_ns_) latest_ns_ = end_ns;
  }

  /// Whether a line ended clearly before an earlier one began.
  bool goes_back() const noexcept { return goes_back_; }

  /// Returns the time of at least 10 s in which all of these logs are silent; nullopt if there is
  /// none, or if it is not much of the run.
  static std::optional<silence> common(const std::vector<clock_watch>& logs);

  static constexpr std::int64_t least_back_ns = 100'000'000;

 private:
  static constexpr std::int64_t least_silence_ns = 10'000'000'000;

  void see_silence(std::int64_t start_ns, std::int64_t end_ns) noexcept;
  void take(std::int64_t from_ns, std::int64_t to_ns) noexcept;

  silence longest_;
  std::int64_t longest_ns_ = least_silence_ns;
  std::int64_t first_ns_ = 0;
  std::int64_t latest_ns_ = 0;  // 0 before the first line
  std::int64_t latest_start_ns_ = 0;
  bool goes_back_ = false;
};

}  // namespace lotus::tool
