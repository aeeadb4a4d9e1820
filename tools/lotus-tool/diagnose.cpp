#include "diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "distribution.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "run_model.hpp"
#include "samples.hpp"
#include "worker_time.hpp"

namespace lotus::tool {
namespace {

double sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The most workers that preprocessed in one epoch: each epoch may start new ones.
std::size_t workers_at_once(const run_batches& batches) {
  std::map<std::uint32_t, std::set<std::uint32_t>> of_epoch;
  std::size_t most = 0;
  for (const batch& b : batches.all()) {
    if (b.preprocessed == no_record) continue;
    auto& files = of_epoch[b.epoch];
    files.insert(batches.record(b.preprocessed)->file);
    most = std::max(most, files.size());
  }
  return most;
}

/// For every batch, when the first later batch of its epoch lay ready; INT64_MAX for never.
std::vector<std::int64_t> later_ready(const run_batches& batches) {
  const std::vector<batch>& all = batches.all();
  std::vector<std::int64_t> first(all.size(), INT64_MAX);
  for (std::size_t i = all.size(); i-- > 1;) {
    if (all[i - 1].epoch != all[i].epoch) continue;
    const batch_record* const made = batches.record(all[i].preprocessed);
    first[i - 1] = std::min(first[i], made != nullptr ? made->end_ns() : INT64_MAX);
  }
  return first;
}

/// What a wait went to, summed over the counted batches.
struct waiting {
  double all_ns = 0;
  double behind_others_ns = 0;   ///< a later batch lay ready
  double at_start_ns = 0;        ///< for the first batches of an epoch, one for each worker
  double for_stragglers_ns = 0;  ///< for batches that took over twice the median
};

waiting waits_of(const run_batches& batches, const std::vector<bool>& counted, std::size_t workers,
                 double median_ns) {
  const std::vector<std::int64_t> ready = later_ready(batches);
  waiting sum;
  std::size_t of_epoch = 0;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch& b = batches.all()[i];
    if (i > 0 && batches.all()[i - 1].epoch != b.epoch) of_epoch = 0;
    const bool at_start = of_epoch++ < workers;
    const batch_record* const wait = batches.record(b.wait);
    if (!counted[i] || wait == nullptr || wait->is_marker()) continue;
    const auto ns = static_cast<double>(wait->duration_ns);
    sum.all_ns += ns;
    if (ready[i] < wait->end_ns()) {
      sum.behind_others_ns +=
          static_cast<double>(wait->end_ns() - std::max(wait->start_ns, ready[i]));
    }
    if (at_start) sum.at_start_ns += ns;
    const std::optional<std::int64_t> made = batches.preprocess_ns(b);
    if (made && static_cast<double>(*made) > 2 * median_ns) sum.for_stragglers_ns += ns;
  }
  return sum;
}

std::vector<slow_worker> slow_workers_of(const run_batches& batches,
                                         const std::vector<bool>& counted, const run_files& run) {
  struct made {
    double total_ns = 0;
    std::size_t count = 0;
  };
  std::vector<made> of_file(run.files.size());
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch_record* const r = batches.record(batches.all()[i].preprocessed);
    if (r == nullptr || !counted[i]) continue;
    of_file[r->file].total_ns += static_cast<double>(r->duration_ns);
    ++of_file[r->file].count;
  }
  std::vector<std::int64_t> means;
  for (const made& m : of_file) {
    if (m.count > 0) means.push_back(std::llround(m.total_ns / static_cast<double>(m.count)));
  }
  const double median_ns = describe(means).p50_ns;
  std::vector<slow_worker> slow;
  for (std::size_t f = 0; f < of_file.size(); ++f) {
    // Of one or two batches a mean says nothing about the worker.
    if (of_file[f].count < 3) continue;
    const double mean_ns = of_file[f].total_ns / static_cast<double>(of_file[f].count);
    if (mean_ns > 1.25 * median_ns) {
      slow.push_back({run.files[f].number, mean_ns, mean_ns / median_ns});
    }
  }
  std::sort(slow.begin(), slow.end(),
            [](const slow_worker& a, const slow_worker& b) { return a.mean_ns > b.mean_ns; });
  return slow;
}

verdict judge(const diagnosis& d) {
  if (d.wait_share < 0.05) return verdict::consumer_bound;
  // Without a single whole step the consumer's capacity is unknown, and nothing shows it small.
  if (!d.consumer_capacity || *d.preprocessing_capacity < *d.consumer_capacity) {
    return verdict::preprocessing_bound;
  }
  return d.head_of_line_share >= 0.5 ? verdict::order_bound : verdict::unsteady;
}

}  // namespace

std::string_view verdict_name(verdict v) noexcept {
  switch (v) {
    case verdict::consumer_bound:
      return "consumer-bound";
    case verdict::preprocessing_bound:
      return "preprocessing-bound";
    case verdict::order_bound:
      return "order-bound";
    case verdict::unsteady:
      break;
  }
  return "unsteady";
}

diagnosis diagnose_run(const run_files& run, std::size_t skip_batches, diagnostics& said) {
  run_scan scan = scan_batches(run, said);
  if (scan.empty()) throw input_error(run.dir + ": nothing usable in the logs");
  const run_batches batches(std::move(scan.records));
  if (batches.consumers() > 1) {
    said.note(run.dir + ": " + std::to_string(batches.consumers()) +
              " processes consumed at the same time, and this is about all of them together; give "
              "each a folder of its own to judge it alone");
  }
  std::vector<std::int64_t> made = values_of(batches, quantity::preprocess, skip_batches);
  const std::vector<std::int64_t> waits = values_of(batches, quantity::wait, skip_batches);
  const std::vector<std::int64_t> steps = values_of(batches, quantity::step, skip_batches);
  if (made.empty() || waits.empty()) {
    throw input_error(run.dir + ": no verdict without " +
                      (made.empty() ? "SBatchPreprocessed" : "SBatchWait") + " records" +
                      (skip_batches > 0 ? " behind the skipped batches"
                       : made.empty()   ? "; put LOTUS_BATCH_PREPROCESSED(i) into the workers"
                                        : "; put LOTUS_BATCH_WAIT(i) into the consumer"));
  }
  const std::vector<bool> counted = counted_batches(batches, skip_batches);
  diagnosis d;
  d.dir = run.dir;
  d.batches = static_cast<std::size_t>(std::count(counted.begin(), counted.end(), true));
  d.workers = workers_at_once(batches);
  const distribution preprocess = describe(made);
  d.mean_preprocess_ns = preprocess.mean_ns;
  d.std_preprocess_ns = preprocess.std_ns;
  d.step_ns = sum_of(steps);
  const waiting wait = waits_of(batches, counted, d.workers, preprocess.p50_ns);
  d.wait_ns = wait.all_ns;
  if (d.wait_ns > 0) {
    d.wait_share = d.wait_ns / (d.wait_ns + d.step_ns);
    d.head_of_line_share = wait.behind_others_ns / d.wait_ns;
  }
  if (preprocess.mean_ns > 0) {
    d.preprocessing_capacity = static_cast<double>(d.workers) * 1e9 / preprocess.mean_ns;
  } else {
    d.preprocessing_capacity = HUGE_VAL;
  }
  if (d.step_ns > 0) d.consumer_capacity = static_cast<double>(steps.size()) * 1e9 / d.step_ns;
  d.is = judge(d);
  if (d.is == verdict::unsteady) {
    d.because = wait.at_start_ns >= 0.5 * wait.all_ns         ? unsteadiness::start_up
                : wait.for_stragglers_ns >= 0.5 * wait.all_ns ? unsteadiness::stragglers
                                                              : unsteadiness::variance;
  }
  const worker_time time = measure_worker_time(run, batches, counted);
  d.ops = time.ops;
  d.slow_samples = time.slow_samples;
  d.samples_per_batch = time.samples_per_batch;
  d.slow_workers = slow_workers_of(batches, counted, run);
  return d;
}

}  // namespace lotus::tool
