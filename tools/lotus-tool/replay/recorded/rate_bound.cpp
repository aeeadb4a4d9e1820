#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "log/shown_name.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_model.hpp"
#include "replay/recorded/length_bound.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t fewest_calls = 100;
constexpr std::size_t fewest_intervals = 6;

struct timed_call : time_span {
  file_id file = {};
};

/// Calls that waited until the same moment.
struct waited_calls {
  std::int64_t until_ns = 0;
  std::int64_t first_start_ns = 0;
  std::size_t calls = 0;
  std::size_t ended_before = 0;  ///< number of calls that ended before this moment
};

/// Returns whether a call is unusually long.
bool waits(const time_span& call, std::int64_t usual_ns) {
  return call.duration_ns() >= 3 * usual_ns;
}

/// @param calls  sorted by end.
std::vector<waited_calls> waits_of(const std::vector<timed_call>& calls, std::int64_t usual_ns) {
  std::vector<waited_calls> found;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const timed_call& call = calls[i];
    if (!waits(call, usual_ns)) continue;
    if (found.empty() || call.end_ns - found.back().until_ns > 2 * usual_ns) {
      found.push_back({call.end_ns, call.start_ns, 0, i});
    }
    waited_calls& of = found.back();
    of.first_start_ns = std::min(of.first_start_ns, call.start_ns);
    ++of.calls;
  }
  return found;
}

/// The number of calls that are allowed in each interval.
struct rate {
  double calls = 0;
  double interval_ns = 0;
};

/// Returns whether long calls are mostly asleep or blocked. A limit of the CPU time also stops all
/// threads until its next interval begins, but then they wait for a CPU.
bool are_blocked(const run_data& run, const std::vector<timed_call>& calls, std::int64_t usual_ns) {
  double blocked_ns = 0;
  double all_ns = 0;
  for (const timed_call& call : calls) {
    const off_cpu_time* const off = run.side.off_cpu_of(call.file);
    if (off == nullptr || !waits(call, usual_ns)) continue;
    const cpu_split split = off->split(call.start_ns, call.end_ns);
    blocked_ns += static_cast<double>(split.blocked_ns.value_or(0));
    all_ns += static_cast<double>(call.duration_ns());
  }
  return 2 * blocked_ns > all_ns;
}

std::optional<rate> rate_of(const std::vector<timed_call>& calls, std::int64_t usual_ns) {
  const std::vector<waited_calls> all = waits_of(calls, usual_ns);
  if (all.size() <= fewest_intervals) return std::nullopt;
  const auto intervals = static_cast<double>(all.size() - 1);
  const auto all_ns = static_cast<double>(all.back().until_ns - all.front().until_ns);
  const rate found{
      static_cast<double>(all.back().ended_before - all.front().ended_before) / intervals,
      all_ns / intervals};
  double earliest_ns = found.interval_ns;
  double latest_ns = 0;
  std::size_t alone = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const waited_calls& of = all[i];
    // The intervals are those of a clock, so they do not depend on how long calls take.
    constexpr double exact = 0.003;
    const auto until_ns = static_cast<double>(of.until_ns - all.front().until_ns);
    const double expected_ns = static_cast<double>(i) * found.interval_ns;
    if (std::abs(until_ns - expected_ns) > exact * found.interval_ns) return std::nullopt;
    // Each interval has as many calls as the others, but one may end on either side of the border.
    const auto ended = static_cast<double>(of.ended_before - all.front().ended_before);
    if (std::abs(ended - static_cast<double>(i) * found.calls) > 1.5) return std::nullopt;
    if (static_cast<double>(of.calls) >= found.calls) return std::nullopt;
    if (of.calls < 2) ++alone;
    if (i == 0) continue;
    const auto used_up_ns = static_cast<double>(of.first_start_ns - all[i - 1].until_ns);
    earliest_ns = std::min(earliest_ns, used_up_ns);
    latest_ns = std::max(latest_ns, used_up_ns);
  }
  // What stops all calls at regular times does so after the same time, not after as many calls.
  constexpr double varied = 0.2;
  const bool counts = latest_ns - earliest_ns > varied * found.interval_ns;
  if (!counts || 2 * alone > all.size()) return std::nullopt;
  return found;
}

}  // namespace

std::vector<length_bound> bounds_of_rates(const run_data& run) {
  std::vector<length_bound> bounds;
  std::map<std::uint32_t, std::vector<timed_call>> calls_of;
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    run.for_each_operation(file, [&](const operation& op) {
      calls_of[op.name].push_back({{op.start_ns, op.end_ns()}, file_id(file)});
    });
  }
  const auto run_ns = static_cast<double>(run.batches.length_ns());
  for (auto& [name, calls] : calls_of) {
    if (calls.size() < fewest_calls) continue;
    const auto middle = calls.begin() + static_cast<std::ptrdiff_t>(calls.size() / 2);
    std::nth_element(
        calls.begin(), middle, calls.end(),
        [](const time_span& a, const time_span& b) { return a.duration_ns() < b.duration_ns(); });
    const std::int64_t usual_ns = middle->duration_ns();
    std::sort(calls.begin(), calls.end(),
              [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
    const std::optional<rate> limit = rate_of(calls, usual_ns);
    if (!limit || !are_blocked(run, calls, usual_ns)) continue;
    std::int64_t first_ns = calls.front().start_ns;
    for (const timed_call& call : calls) first_ns = std::min(first_ns, call.start_ns);
    // The calls of the last interval need not wait until it ends.
    const double intervals = static_cast<double>(calls.size()) / limit->calls - 1;
    length_bound of;
    of.name = shown_name(run.names.name(name));
    of.is_rate = true;
    of.share = intervals * limit->interval_ns / run_ns;
    of.around_share =
        std::max(0.0, 1 - static_cast<double>(calls.back().end_ns - first_ns) / run_ns);
    if (of.share >= length_bound::worth_naming) bounds.push_back(std::move(of));
  }
  return bounds;
}

}  // namespace lotus::tool
