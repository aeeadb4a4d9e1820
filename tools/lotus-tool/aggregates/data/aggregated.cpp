#include "aggregates/data/aggregated.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "aggregates/data/aggregate_file.hpp"
#include "base/diagnostics.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {
namespace {

/// Adds two numbers; the result is limited to what 64 bits can represent.
void add(std::int64_t& to, std::int64_t n) {
  if (__builtin_add_overflow(to, n, &to)) to = std::numeric_limits<std::int64_t>::max();
}

/// Returns the duration with index `rank` in ascending order; the shortest has index 0.
double at_rank(const std::vector<duration_bucket>& durations, std::uint64_t rank) {
  for (const duration_bucket& d : durations) {
    if (rank < d.count) return d.ns;
    rank -= d.count;
  }
  return durations.back().ns;
}

/// Returns a percentile of the durations of an operation's calls. Interpolates between two
/// durations, as is done for operations whose calls were recorded.
double percentile(const aggregated_op& op, double share) {
  const double position = share * static_cast<double>(op.count - 1);
  const auto below = static_cast<std::uint64_t>(position);
  const double low = at_rank(op.durations, below);
  return low + (position - static_cast<double>(below)) * (at_rank(op.durations, below + 1) - low);
}

}  // namespace

std::vector<aggregated_op> read_aggregated(const run_files& run, diagnostic_log& diagnostics) {
  std::map<std::string, aggregated_op> by_name;
  for (const log_file& file : run.aggregated) {
    for (const thread_aggregate& part : read_aggregates(file, diagnostics)) {
      aggregated_op& op = by_name[part.name];
      op.name = part.name;
      op.count += part.count;
      add(op.total_ns, part.total_ns);
      add(op.self_ns, part.self_ns);
      op.durations.insert(op.durations.end(), part.durations.begin(), part.durations.end());
    }
  }
  std::vector<aggregated_op> ops;
  for (auto& [name, op] : by_name) {
    std::sort(op.durations.begin(), op.durations.end(),
              [](const auto& a, const auto& b) { return a.ns < b.ns; });
    ops.push_back(std::move(op));
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return ops;
}

distribution describe(const aggregated_op& op) {
  distribution d;
  d.count = static_cast<std::size_t>(op.count);
  if (op.durations.empty()) return d;
  const auto n = static_cast<double>(op.count);
  d.total_ns = op.total_ns;
  d.mean_ns = static_cast<double>(op.total_ns) / n;
  d.min_ns = std::llround(op.durations.front().ns);
  d.max_ns = std::llround(op.durations.back().ns);
  double squares = 0;
  for (const duration_bucket& b : op.durations) {
    squares += static_cast<double>(b.count) * (b.ns - d.mean_ns) * (b.ns - d.mean_ns);
  }
  d.std_ns = std::sqrt(squares / n);
  d.p25_ns = percentile(op, 0.25);
  d.p50_ns = percentile(op, 0.50);
  d.p75_ns = percentile(op, 0.75);
  d.p90_ns = percentile(op, 0.90);
  d.p99_ns = percentile(op, 0.99);
  return d;
}

double share_below(const aggregated_op& op, std::int64_t limit_ns) {
  std::uint64_t below = 0;
  for (const duration_bucket& b : op.durations) {
    if (b.ns < static_cast<double>(limit_ns)) below += b.count;
  }
  return op.count == 0 ? 0 : static_cast<double>(below) / static_cast<double>(op.count);
}

std::string no_window_text(const std::vector<aggregated_op>& ops) {
  return std::to_string(ops.size()) +
         (ops.size() == 1 ? " aggregated operation has" : " aggregated operations have") +
         " no times, so they are not drawn, and no window can be cut out of them; `stats` shows "
         "them, "
         "always for the whole run";
}

}  // namespace lotus::tool
