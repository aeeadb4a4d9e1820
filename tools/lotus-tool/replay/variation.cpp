#include "replay/variation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

double run_sd_of(const run_data& run) {
  constexpr std::size_t parts = 10;
  std::vector<double> lengths_ns;
  const std::vector<batch>& all = run.batches.all();
  for (std::size_t at = 0; at < all.size();) {
    std::vector<std::int64_t> times;
    const std::uint32_t epoch = all[at].epoch;
    for (; at < all.size() && all[at].epoch == epoch; ++at) {
      const std::optional<std::int64_t> time_ns = run.batches.left_ns(all[at]);
      if (time_ns) times.push_back(*time_ns);
    }
    std::sort(times.begin(), times.end());
    if (times.size() <= 2 * parts) continue;
    for (std::size_t p = 0; p < parts; ++p) {
      const std::size_t first = p * (times.size() - 1) / parts;
      const std::size_t last = (p + 1) * (times.size() - 1) / parts;
      lengths_ns.push_back(static_cast<double>(times[last] - times[first]) /
                           static_cast<double>(last - first));
    }
  }
  // If the run is too short for an estimate, use a typical error.
  if (lengths_ns.size() < parts) return 0.02;
  const auto n = static_cast<double>(lengths_ns.size());
  const double mean = std::accumulate(lengths_ns.begin(), lengths_ns.end(), 0.0) / n;
  double squares = 0;
  for (const double ns : lengths_ns) squares += (ns - mean) * (ns - mean);
  return mean > 0 ? std::sqrt(squares / (n - 1) / n) / mean : 0;
}

double error_of_mean(const recorded_pipeline& p) {
  double sum = 0;
  double squares = 0;
  for (const measured_work& w : p.works) {
    const double ns = w.cpu_ns + w.blocked_ns;
    sum += ns;
    squares += ns * ns;
  }
  const auto n = static_cast<double>(p.works.size());
  if (n < 2 || sum <= 0) return 0;
  return std::sqrt(std::max(0.0, n * squares / (sum * sum) - 1) / n);
}

}  // namespace lotus::tool
