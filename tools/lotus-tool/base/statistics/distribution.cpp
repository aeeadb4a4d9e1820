#include "base/statistics/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lotus::tool {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t v : values) {
    if (__builtin_add_overflow(sum, v, &sum)) {
      return v > 0 ? std::numeric_limits<std::int64_t>::max()
                   : std::numeric_limits<std::int64_t>::min();
    }
  }
  return sum;
}

/// Finds percentiles of a set of values. Percentiles must be requested in descending order: each
/// request partitions the values, and the next request searches only the lower part.
class falling_percentiles {
 public:
  explicit falling_percentiles(std::vector<std::int64_t>& values)
      : values_(values), partitioned_(values.size()) {}

  /// Returns a percentile.
  /// @param share  the percentile as a share 0..1; not larger than the share in the previous call.
  double at(double share) {
    const double position = share * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const double rest = position - static_cast<double>(below);
    const auto begin = values_.begin();
    const auto position_below = begin + static_cast<std::ptrdiff_t>(below);
    const auto end = begin + static_cast<std::ptrdiff_t>(partitioned_);
    if (below < partitioned_) {
      std::nth_element(begin, position_below, end);
      if (position_below + 1 != end) {
        above_ = *std::min_element(position_below + 1, end);
      } else {
        above_ = partitioned_ < values_.size() ? values_[partitioned_] : *position_below;
      }
      partitioned_ = below;
    }
    const auto low = static_cast<double>(*position_below);
    return low + rest * (static_cast<double>(above_) - low);
  }

 private:
  std::vector<std::int64_t>& values_;
  std::size_t partitioned_;  // all values from this index on are at least as large as those before
  std::int64_t above_ = 0;   // the value that follows index partitioned_ in sorted order
};

}  // namespace

distribution describe(std::vector<std::int64_t>& values) {
  distribution d;
  d.count = values.size();
  if (values.empty()) return d;
  d.total_ns = sum_of(values);
  const auto n = static_cast<double>(d.count);
  d.mean_ns = static_cast<double>(d.total_ns) / n;
  double squares = 0;
  d.min_ns = values.front();
  d.max_ns = values.front();
  for (const std::int64_t v : values) {
    const double off = static_cast<double>(v) - d.mean_ns;
    squares += off * off;
    d.min_ns = std::min(d.min_ns, v);
    d.max_ns = std::max(d.max_ns, v);
  }
  d.std_ns = std::sqrt(squares / n);
  falling_percentiles percentile(values);
  d.p99_ns = percentile.at(0.99);
  d.p90_ns = percentile.at(0.90);
  d.p75_ns = percentile.at(0.75);
  d.p50_ns = percentile.at(0.50);
  d.p25_ns = percentile.at(0.25);
  return d;
}

double share_below(const std::vector<std::int64_t>& values, std::int64_t limit_ns) {
  if (values.empty()) return 0;
  const auto below = std::count_if(values.begin(), values.end(),
                                   [limit_ns](std::int64_t v) { return v < limit_ns; });
  return static_cast<double>(below) / static_cast<double>(values.size());
}

void remove_low_outliers(std::vector<std::int64_t>& values) {
  const distribution d = describe(values);
  const double limit_ns = d.p25_ns - 2 * (d.p75_ns - d.p25_ns);
  values.erase(
      std::remove_if(values.begin(), values.end(),
                     [limit_ns](std::int64_t v) { return static_cast<double>(v) < limit_ns; }),
      values.end());
}

namespace {

/// Returns the integral of cos(x)^(degrees - 1) from x = `from` to x = `to` in radians. With the
/// substitution t = sqrt(degrees) tan(x), this is the integral of Student's density, except for a
/// constant factor.
double integral(double from, double to, double degrees) {
  constexpr int steps = 200;
  const double step = (to - from) / steps;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += std::pow(std::cos(from + (i + 0.5) * step), degrees - 1);
  return sum * step;
}

}  // namespace

double student_reach(double degrees, double outside) {
  constexpr double right_angle = 1.57079632679489662;
  // With many degrees of freedom, the integrand is almost 0 except near x = 0. The integral beyond
  // ten standard deviations is below 1e-20, so it is left out.
  const double end = std::min(right_angle, 10 / std::sqrt(degrees));
  const double half = integral(0, end, degrees);
  double low = 0;
  double high = end;
  for (int i = 0; i < 40; ++i) {
    const double angle = (low + high) / 2;
    (integral(angle, end, degrees) > outside * half ? low : high) = angle;
  }
  return std::sqrt(degrees) * std::tan(low);
}

}  // namespace lotus::tool
