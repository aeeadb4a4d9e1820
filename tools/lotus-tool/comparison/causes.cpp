#include "comparison/causes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

const pooled_work* work_of(const pooled_loader& loader, const std::string& name) {
  const auto at = loader.work.find(name);
  return at == loader.work.end() ? nullptr : &at->second;
}

/// Returns whether two numbers of calls per batch differ by more than 5 %. Smaller differences do
/// not count, because a recording may begin and end with incomplete batches.
bool differ(double a, double b) {
  return std::abs(a - b) > 0.05 * std::max(a, b);
}

}  // namespace

std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const compared_loader& of_loader) {
  std::vector<cause> causes;
  const compared_times& preprocess = of_loader.times_of(quantity::preprocess);
  if (!preprocess.is_sure() || !preprocess.mean_ns.common()) return causes;
  if (before.batches == 0 || after.batches == 0) return causes;
  const double grown_ns = *preprocess.mean_ns.after - *preprocess.mean_ns.before;
  for (const compared_times& r : of_loader.rows) {
    const pooled_work* const was = work_of(before, r.name);
    const pooled_work* const is = work_of(after, r.name);
    if (r.kind != row_kind::op || was == nullptr || is == nullptr) continue;
    if (was->elsewhere || is->elsewhere) continue;
    cause of;
    of.name = r.name;
    of.ns_a_batch = is->self_ns / after.batches - was->self_ns / before.batches;
    of.share = of.ns_a_batch / grown_ns;
    const double calls_before = was->calls / before.batches;
    const double calls_after = is->calls / after.batches;
    const bool longer = r.is_sure() && (r.likely->value > 0) == (of.ns_a_batch > 0);
    of.more_calls = differ(calls_before, calls_after) &&
                    (calls_after > calls_before) == (of.ns_a_batch > 0) && !longer;
    // `share` is the part of the preprocess time's change that the operation explains. If it is far
    // above 1, something else changed in the opposite direction, so this operation alone does not
    // explain the change.
    if (of.share >= 0.25 && of.share <= 1.5 && (longer || of.more_calls)) causes.push_back(of);
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const cause& a, const cause& b) { return a.share > b.share; });
  return causes;
}

std::optional<differing_calls> other_size(const pooled_loader& before, const pooled_loader& after) {
  // If batches are larger, all operations that run once per sample have more calls per batch. So
  // batches are of different sizes if the numbers of calls of all such operations differ.
  std::optional<differing_calls> longest;
  double max_ns = 0;
  for (const auto& [name, was] : before.work) {
    const pooled_work* const is = work_of(after, name);
    if (is == nullptr || was.elsewhere || is->elsewhere) continue;
    if (before.batches == 0 || after.batches == 0) break;
    const double a = was.calls / before.batches;
    const double b = is->calls / after.batches;
    // An operation with about one call per batch does not run once per sample.
    if (std::max(a, b) < 1.5) continue;
    if (!differ(a, b)) return std::nullopt;
    if (was.self_ns < max_ns) continue;
    max_ns = was.self_ns;
    longest = {name, a, b};
  }
  return longest;
}

bool is_cpu_time_the_same(const compared_times& of) {
  if (!of.mean_cpu_ns.common() || !of.mean_ns.common()) return false;
  const double longer_ns = *of.mean_ns.after - *of.mean_ns.before;
  return longer_ns > 0 &&
         std::abs(*of.mean_cpu_ns.after - *of.mean_cpu_ns.before) <= 0.1 * longer_ns;
}

bool are_cpus_shared(const compared_loader& of) {
  const compared_times& preprocess = of.times_of(quantity::preprocess);
  if (!preprocess.is_sure() || preprocess.likely->value < 0) return false;
  if (of.workers.before.empty() || of.workers.after.empty() || of.cpus.after.empty()) return false;
  const std::size_t workers = *of.workers.after.begin();
  const bool more = workers > *of.workers.before.rbegin();
  return more && static_cast<double>(workers) > *of.cpus.after.rbegin() &&
         is_cpu_time_the_same(preprocess);
}

}  // namespace lotus::tool
