#include "commands/tune/throughput.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/statistics/distribution.hpp"
#include "base/statistics/trend.hpp"

namespace lotus::tool {
namespace {

constexpr double outside = 0.1;  // probability outside the 90 % interval

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Returns half the width of the confidence interval of the mean of `values`.
double reach_of_mean(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return student_reach(n - 1, outside) * std::sqrt(squares / (n - 1) / n);
}

/// Divides `values` into `parts` consecutive parts, and returns the mean of each part.
std::vector<double> means_of(const std::vector<double>& values, std::size_t parts) {
  std::vector<double> means;
  for (std::size_t p = 0; p < parts; ++p) {
    const auto at = [&](std::size_t part) {
      return values.begin() + static_cast<std::ptrdiff_t>(part * values.size() / parts);
    };
    means.push_back(mean_of({at(p), at(p + 1)}));
  }
  return means;
}

/// Returns how many intervals at the beginning belong to the start-up, see steady_throughput().
std::size_t start_up_of(std::vector<double> intervals) {
  constexpr std::size_t together = 5;
  intervals.resize(intervals.size() / together * together);
  const std::vector<double> means = means_of(intervals, intervals.size() / together);
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  // The loop runs backward, so that the sums of all later values are known.
  double sum = 0;
  double squares = 0;
  for (std::size_t at = means.size(); at-- > 0;) {
    sum += means[at];
    squares += means[at] * means[at];
    if (at > means.size() / 2) continue;
    const auto n = static_cast<double>(means.size() - at);
    const double error = (squares - sum * sum / n) / (n * n);
    // If several ends of the start-up are equally good, the earliest is used. The factor allows for
    // rounding errors.
    if (error > least * (1 + 1e-9)) continue;
    least = error;
    best = at;
  }
  return best * together;
}

}  // namespace

reception_times receptions_of(const run_batches& batches) {
  std::map<std::uint32_t, std::vector<double>> by_epoch;
  for (const batch& b : batches.all()) {
    const std::optional<std::int64_t> ns = batches.left_ns(b);
    if (ns) by_epoch[b.epoch].push_back(static_cast<double>(*ns));
  }
  reception_times times;
  for (auto& [epoch, list] : by_epoch) {
    std::sort(list.begin(), list.end());
    times.push_back(std::move(list));
  }
  return times;
}

std::optional<throughput> steady_throughput(const reception_times& times, std::int64_t begin_ns) {
  constexpr std::size_t max_parts = 10;
  if (times.empty()) return std::nullopt;
  std::vector<double> first;
  for (std::size_t i = 1; i < times.front().size(); ++i) {
    first.push_back(times.front()[i] - times.front()[i - 1]);
  }
  const std::size_t skipped = start_up_of(std::move(first));
  throughput found;
  trend line;
  std::vector<double> intervals;
  for (std::size_t e = 0; e < times.size(); ++e) {
    const std::vector<double>& epoch = times[e];
    for (std::size_t i = e == 0 ? skipped : 0; i < epoch.size(); ++i) {
      line.add(epoch[i]);
      ++found.values;
      if (i > (e == 0 ? skipped : 0)) intervals.push_back(epoch[i] - epoch[i - 1]);
    }
    line.end_group();
  }
  if (found.values < min_counted || line.per_s() <= 0) return std::nullopt;
  found.per_s = line.per_s();
  if (skipped < times.front().size()) {
    found.start_up_s = 1e-9 * (times.front()[skipped] - static_cast<double>(begin_ns));
  }
  const std::size_t parts = std::clamp<std::size_t>(intervals.size() / 2, 2, max_parts);
  // The variance of a slope fitted to events is 1.2 times that of the slope from the first event to
  // the last.
  const double reach =
      std::sqrt(1.2) * reach_of_mean(means_of(intervals, parts)) * found.per_s * 1e-9;
  found.low = found.per_s / (1 + reach);
  found.high = reach < 1 ? found.per_s / (1 - reach) : std::numeric_limits<double>::infinity();
  return found;
}

std::optional<throughput> printed_throughput(const std::vector<printed_rate>& rates) {
  if (rates.empty()) return std::nullopt;
  std::vector<double> values;
  for (std::size_t i = rates.size() / 2; i < rates.size(); ++i) values.push_back(rates[i].per_s);
  throughput found;
  found.per_s = found.low = found.high = mean_of(values);
  found.values = values.size();
  found.start_up_s = rates[rates.size() / 2].seconds;
  if (values.size() > 1) {
    // Progress bars print a moving average, so successive values are not independent, but the means
    // of many values are.
    constexpr std::size_t parts = 10;
    const double reach =
        values.size() < 2 * parts ? reach_of_mean(values) : reach_of_mean(means_of(values, parts));
    found.low = std::max(0.0, found.per_s - reach);
    found.high = found.per_s + reach;
  }
  return found;
}

throughput pooled(const std::vector<throughput>& trials) {
  throughput all = trials.front();
  if (trials.size() == 1) return all;
  std::vector<double> rates;
  double within = 0;
  all.values = 0;
  all.start_up_s = 0;
  for (const throughput& t : trials) {
    rates.push_back(t.per_s);
    all.values += t.values;
    all.start_up_s += t.start_up_s / static_cast<double>(trials.size());
    const double reach = std::isfinite(t.high) ? (t.high - t.low) / 2 : t.per_s;
    within += reach * reach;
  }
  const auto n = static_cast<double>(trials.size());
  all.per_s = mean_of(rates);
  // The interval covers the uncertainty within the trials and the differences between them. Two
  // trials are too few to estimate a standard deviation, so half their difference is used.
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  const double between = trials.size() == 2 ? (*most - *least) / 2 : reach_of_mean(rates);
  const double reach = std::max(std::sqrt(within) / n, between);
  all.low = std::max(0.0, all.per_s - reach);
  all.high = all.per_s + reach;
  return all;
}

}  // namespace lotus::tool
