#include "log/cpu_usage.hpp"

#include <algorithm>
#include <utility>

namespace lotus::tool {
namespace {

/// Returns `value(reading)` at a moment, interpolated linearly between the readings before and
/// after it. Before the first reading, returns the value of the first; after the last reading,
/// returns the value of the last.
template <class Value>
double value_at(const std::vector<cpu_reading>& readings, std::int64_t time_ns, Value&& value) {
  const auto next =
      std::upper_bound(readings.begin(), readings.end(), time_ns,
                       [](std::int64_t t, const cpu_reading& r) { return t < r.time_ns; });
  if (next == readings.begin()) return static_cast<double>(value(*next));
  const cpu_reading& before = *(next - 1);
  const auto first = static_cast<double>(value(before));
  if (next == readings.end()) return first;
  const double share = static_cast<double>(time_ns - before.time_ns) /
                       static_cast<double>(next->time_ns - before.time_ns);
  return first + share * (static_cast<double>(value(*next)) - first);
}

std::int64_t idle_of(const cpu_reading& r) {
  return r.idle_ns.value_or(0);
}

}  // namespace

void cpu_usage::add_process(std::vector<cpu_reading> readings) {
  if (readings.empty()) unknown_ = true;
  processes_.push_back(std::move(readings));
}

std::optional<double> cpu_usage::between(std::int64_t start_ns, std::int64_t end_ns) const {
  if (unknown_ || processes_.empty()) return std::nullopt;
  double sum_ns = 0;
  for (const std::vector<cpu_reading>& readings : processes_) {
    const auto used_until = [&](std::int64_t time_ns) {
      return value_at(readings, time_ns, [](const cpu_reading& r) { return r.cpu_ns; });
    };
    sum_ns += used_until(end_ns) - used_until(start_ns);
  }
  return sum_ns;
}

std::optional<double> cpu_usage::idle_cpus(std::int64_t start_ns, std::int64_t end_ns) const {
  std::optional<double> idle;
  auto longest_ns = static_cast<double>(end_ns - start_ns) / 2;
  for (const std::vector<cpu_reading>& readings : processes_) {
    const bool known = !readings.empty() &&
                       std::all_of(readings.begin(), readings.end(),
                                   [](const cpu_reading& r) { return r.idle_ns.has_value(); });
    if (!known) continue;
    const std::int64_t from_ns = std::max(start_ns, readings.front().time_ns);
    const std::int64_t to_ns = std::min(end_ns, readings.back().time_ns);
    const auto known_ns = static_cast<double>(to_ns - from_ns);
    if (known_ns <= longest_ns) continue;
    longest_ns = known_ns;
    idle = (value_at(readings, to_ns, idle_of) - value_at(readings, from_ns, idle_of)) / known_ns;
  }
  return idle;
}

}  // namespace lotus::tool
