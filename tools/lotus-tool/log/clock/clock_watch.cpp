#include "log/clock/clock_watch.hpp"

namespace lotus::tool {

void clock_watch::take(std::int64_t from_ns, std::int64_t to_ns) noexcept {
  if (to_ns - from_ns <= longest_ns_) return;
  longest_ = {from_ns, to_ns};
  longest_ns_ = to_ns - from_ns;
}

void clock_watch::see_silence(std::int64_t start_ns, std::int64_t end_ns) noexcept {
  if (latest_ns_ == 0) {
    first_ns_ = start_ns;
    latest_ns_ = start_ns;
  }
  take(latest_ns_, start_ns);
  take(std::max(latest_ns_, start_ns), end_ns);
}

std::optional<silence> clock_watch::common(const std::vector<clock_watch>& logs) {
  silence all{0, INT64_MAX};
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = 0;
  for (const clock_watch& log : logs) {
    if (log.latest_ns_ == 0) continue;
    first_ns = std::min(first_ns, log.first_ns_);
    last_ns = std::max(last_ns, log.latest_ns_);
    if (log.longest_.to_ns == 0) continue;
    all.from_ns = std::max(all.from_ns, log.longest_.from_ns);
    all.to_ns = std::min(all.to_ns, log.longest_.to_ns);
  }
  if (all.from_ns == 0) return std::nullopt;
  // A log without a long silence lies completely before or after the silence of the others, for
  // example the log of a worker that was started later.
  for (const clock_watch& log : logs) {
    if (log.latest_ns_ == 0 || log.longest_.to_ns != 0) continue;
    const bool before = log.latest_ns_ < all.to_ns && log.first_ns_ <= all.from_ns;
    if (before) all.from_ns = std::max(all.from_ns, log.latest_ns_);
    if (!before) all.to_ns = std::min(all.to_ns, log.first_ns_);
  }
  constexpr std::int64_t share = 10;  // a shorter pause changes no verdict
  const std::int64_t length_ns = all.to_ns - all.from_ns;
  if (length_ns < least_silence_ns || length_ns < (last_ns - first_ns) / share) return std::nullopt;
  return all;
}

}  // namespace lotus::tool
