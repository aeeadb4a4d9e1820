#include "comparison/causes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "log/shown_name.hpp"
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

template <class Number>
std::string numbers(const std::set<Number>& all) {
  std::set<std::string> words;
  for (const Number n : all) words.insert(three_digits(static_cast<double>(n)));
  return joined(words, ", ");
}

const compared_times* preprocess_in(const std::vector<compared_times>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [](const compared_times& r) {
    return r.name == quantity_name(quantity::preprocess) && std::string(r.kind) == "batch";
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::vector<cause> causes_of(const pooled_loader& before, const pooled_loader& after,
                             const std::vector<compared_times>& rows) {
  std::vector<cause> causes;
  const compared_times* const preprocess = preprocess_in(rows);
  if (preprocess == nullptr || !preprocess->is_sure() || !preprocess->mean_ns.common()) {
    return causes;
  }
  if (before.batches == 0 || after.batches == 0) return causes;
  const double grown_ns = *preprocess->mean_ns.after - *preprocess->mean_ns.before;
  for (const compared_times& r : rows) {
    const pooled_work* const was = work_of(before, r.name);
    const pooled_work* const is = work_of(after, r.name);
    if (std::string(r.kind) != "op" || was == nullptr || is == nullptr) continue;
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

std::string other_size(const pooled_loader& before, const pooled_loader& after) {
  // If batches are larger, all operations that run once per sample have more calls per batch. So
  // batches are of different sizes if the numbers of calls of all such operations differ.
  std::string text;
  double max_ns = 0;
  bool all_differ = true;
  for (const auto& [name, was] : before.work) {
    const pooled_work* const is = work_of(after, name);
    if (is == nullptr || was.elsewhere || is->elsewhere) continue;
    if (before.batches == 0 || after.batches == 0) break;
    const double a = was.calls / before.batches;
    const double b = is->calls / after.batches;
    // An operation with about one call per batch does not run once per sample.
    if (std::max(a, b) < 1.5) continue;
    all_differ = all_differ && differ(a, b);
    if (was.self_ns < max_ns) continue;
    max_ns = was.self_ns;
    text = "mean " + shown_name(name) + " calls per batch: " + three_digits(a) + " before, " +
           three_digits(b) + " after";
  }
  return text.empty() || !all_differ ? "" : "batch size (" + text + ')';
}

std::vector<std::string> other_threads(const pooled_loader& before, const pooled_loader& after) {
  std::vector<std::string> all;
  const auto compare = [&all](const std::string& of, const std::set<std::size_t>& was,
                              const std::set<std::size_t>& is) {
    if (was.empty() || is.empty() || was == is) return;
    all.push_back(of + ": " + numbers(was) + " before, " + numbers(is) + " after");
  };
  compare("the number of workers", before.workers, after.workers);
  for (const auto& [stage, threads] : before.stage_threads) {
    const auto same = after.stage_threads.find(stage);
    if (same != after.stage_threads.end())
      compare("the number of threads in " + stage, threads, same->second);
  }
  return all;
}

std::string same_cpu_time(const compared_value& cpu_ns, double longer_ns) {
  if (!cpu_ns.common() || longer_ns <= 0) return {};
  if (std::abs(*cpu_ns.after - *cpu_ns.before) > 0.1 * longer_ns) return {};
  const bool same = std::abs(cpu_ns.grown_by().value_or(0)) <= 0.1;
  return std::string("the CPU time of a batch ") + (same ? "is unchanged" : "differs much less") +
         " (" + human_time(*cpu_ns.before) + " before, " + human_time(*cpu_ns.after) + " after)";
}

std::string shared_cpus(const pooled_loader& before, const pooled_loader& after,
                        const std::vector<compared_times>& rows,
                        const std::set<double>& cpus_after) {
  const compared_times* const preprocess = preprocess_in(rows);
  if (preprocess == nullptr || !preprocess->is_sure() || preprocess->likely->value < 0) return {};
  const compared_value& cpu = preprocess->mean_cpu_ns;
  if (!cpu.common() || !preprocess->mean_ns.common()) return {};
  if (before.workers.empty() || after.workers.empty() || cpus_after.empty()) return {};
  if (after.bound) return {};  // they may share fewer CPUs than the program may use
  const auto workers = static_cast<double>(*after.workers.begin());
  const bool more = *after.workers.begin() > *before.workers.rbegin();
  if (!more || workers <= *cpus_after.rbegin()) return {};
  const std::string same =
      same_cpu_time(cpu, *preprocess->mean_ns.after - *preprocess->mean_ns.before);
  if (same.empty()) return {};
  return numbers(after.workers) + " workers share " + numbers(cpus_after) +
         (cpus_after == std::set<double>{1} ? " CPU; " : " CPUs; ") + same;
}

std::vector<std::string> unlike_machines(const pooled_runs& before, const pooled_runs& after) {
  std::vector<std::string> unlike;
  if (!before.machines.empty() && !after.machines.empty() && before.machines != after.machines) {
    unlike.push_back("machines: " + joined(before.machines, ", ") + " before, " +
                     joined(after.machines, ", ") + " after");
  }
  if (!before.cpus.empty() && !after.cpus.empty() && before.cpus != after.cpus) {
    unlike.push_back("CPUs that could be used: " + numbers(before.cpus) + " before, " +
                     numbers(after.cpus) + " after");
  }
  return unlike;
}

}  // namespace lotus::tool
