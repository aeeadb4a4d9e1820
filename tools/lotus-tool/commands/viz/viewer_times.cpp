#include "commands/viz/viewer_times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

/// Non-negative integers below this are exact as doubles, so only a division rounds.
constexpr std::uint64_t exact = std::uint64_t{1} << 53U;

/// Returns the double that a program gets when it parses the text of put_us(ns): the one nearest to
/// the exact value.
double as_read(std::int64_t ns) {
  if (static_cast<std::uint64_t>(ns) < exact) return static_cast<double>(ns) / 1000.0;
  std::array<char, 24> digits{};
  double us = 0;
  std::from_chars(digits.data(), put_us(digits.data(), ns), us);
  return us;
}

/// Durations below this many ns are integers of ps that a double represents exactly.
constexpr std::int64_t max_in_ps = static_cast<std::int64_t>(exact) / 1000;

/// Returns the double that a program gets when it parses the µs of `ns` less 0.001 ns.
double less_by_a_ps(std::int64_t ns) {
  return static_cast<double>(ns * 1000 - 1) / 1e6;
}

}  // namespace

char* viewer_times::put_duration(char* to, std::int64_t start_ns, std::int64_t duration_ns) {
  const std::int64_t end_ns = start_ns + duration_ns;
  const double start_us = as_read(start_ns);
  const double end_us = as_read(end_ns);
  double us = as_read(duration_ns);
  if (first_us_ == no_start) first_us_ = start_us;
  const double rebased_us = start_us - first_us_;
  double last_us = end_us;
  double last_rebased_us = end_us - first_us_;
  while (!open_.empty() && open_.back().ns <= start_ns) open_.pop_back();
  if (!open_.empty()) {
    last_us = std::min(last_us, open_.back().us);
    last_rebased_us = std::min(last_rebased_us, open_.back().rebased_us);
  }
  const auto fits = [&](double tried_us) {
    return start_us + tried_us <= last_us && rebased_us + tried_us <= last_rebased_us;
  };
  char* end = nullptr;
  if (fits(us)) {
    end = put_us(to, duration_ns);
  } else if (duration_ns > 0 && duration_ns < max_in_ps && fits(less_by_a_ps(duration_ns))) {
    us = less_by_a_ps(duration_ns);
    end = put(put_us(to, duration_ns - 1), "999");
  } else {
    us = std::max(0.0, std::min({us, last_us - start_us, last_rebased_us - rebased_us}));
    while (us > 0 && !fits(us)) us = std::nextafter(us, 0.0);
    end = std::to_chars(to, to + 24, us).ptr;
  }
  open_.emplace_back(end_ns, start_us + us, rebased_us + us);
  return end;
}

}  // namespace lotus::tool
