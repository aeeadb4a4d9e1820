#include "findings/facts/slow_workers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

struct worker_batches {
  std::vector<double> times_ns;
  double mean_ns = 0;
  double squares = 0;  ///< sum of squared differences from the mean

  void sum_up() {
    for (const double ns : times_ns) mean_ns += ns / static_cast<double>(times_ns.size());
    for (const double ns : times_ns) squares += (ns - mean_ns) * (ns - mean_ns);
  }
};

}  // namespace

std::vector<slow_worker> slow_workers_of(const run_batches& batches,
                                         const std::vector<bool>& counted, const run_files& run) {
  std::vector<worker_batches> of_file(run.files.size());
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch_record* const r = batches.record(batches.all()[i].preprocessed);
    if (r == nullptr || !counted[i]) continue;
    of_file[r->file.value()].times_ns.push_back(static_cast<double>(r->duration_ns));
  }
  std::vector<std::int64_t> means;
  double squares = 0;
  double freedom = 0;
  for (worker_batches& w : of_file) {
    if (w.times_ns.empty()) continue;
    w.sum_up();
    means.push_back(std::llround(w.mean_ns));
    squares += w.squares;
    freedom += static_cast<double>(w.times_ns.size() - 1);
  }
  const double median_ns = describe(means).p50_ns;
  std::vector<slow_worker> slow;
  for (std::size_t f = 0; f < of_file.size(); ++f) {
    const worker_batches& w = of_file[f];
    const auto n = static_cast<double>(w.times_ns.size());
    // One or two batches are too few to judge a worker.
    if (n < 3) continue;
    // A few batches of one worker often underestimate the variance, so use at least the pooled
    // variance of all workers.
    const double variance = std::max(squares / freedom, w.squares / (n - 1));
    if (w.mean_ns > 1.25 * median_ns && w.mean_ns - median_ns > 3 * std::sqrt(variance / n)) {
      slow.push_back({run.files[f].number, w.mean_ns, w.mean_ns / median_ns});
    }
  }
  std::sort(slow.begin(), slow.end(),
            [](const slow_worker& a, const slow_worker& b) { return a.mean_ns > b.mean_ns; });
  return slow;
}

}  // namespace lotus::tool
