#include "comparison/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/parallel.hpp"
#include "base/sorting.hpp"
#include "comparison/causes.hpp"
#include "comparison/pooled_runs.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "log/batch_kinds.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// Finds the operations with the most time in all runs of a comparison. If a program has put
/// numbers into the names of its operations, there may be a million. A comparison of each of them
/// would need much memory, and nobody could read it.
class compared_names {
 public:
  /// Reads the logs of a run and sums up its operations. Problems of the logs are not reported,
  /// because they are reported when the run is read for the comparison. Throws input_error.
  void add(const run_files& run) {
    std::mutex mutex;
    for_each_in_parallel(run.files.size(), unlimited_threads, [&](std::size_t f) {
      name_table names;
      std::vector<std::int64_t> totals_ns;
      read_log(run.files[f], nullptr, [&](const log_line& line) {
        if (line.kind != record_kind::op) return;
        const std::uint32_t name = names.id(line.name);
        if (name >= totals_ns.size()) totals_ns.resize(name + std::size_t{1});
        totals_ns[name] += line.duration_ns;
      });
      const std::lock_guard<std::mutex> lock(mutex);
      for (std::uint32_t n = 0; n < totals_ns.size(); ++n) {
        const std::uint32_t name = names_.id_of_decoded(names.name(n));
        if (name >= totals_ns_.size()) totals_ns_.resize(name + std::size_t{1});
        totals_ns_[name] += totals_ns[n];
      }
    });
  }

  /// Returns the names of the `most` operations with the most time, and reports how many operations
  /// there are. Returns an empty table if there are not more than `most`, so that all are compared.
  name_table choose(std::size_t most, diagnostic_log& diagnostics) const {
    name_table chosen;
    if (names_.size() <= most) return chosen;
    // The ids depend on which log was read first, so equal operations are ordered by their names.
    const auto first = [this](std::uint32_t x, std::uint32_t y) {
      return names_.name(x) < names_.name(y);
    };
    for (const std::uint32_t name : indices_of_largest(totals_ns_, most, first)) {
      chosen.id_of_decoded(names_.name(name));
    }
    diagnostics.note("of " + std::to_string(names_.size()) + " operations, only the " +
                     std::to_string(most) + " with the most time are compared");
    return chosen;
  }

 private:
  name_table names_;
  std::vector<std::int64_t> totals_ns_;  // indexed by the id of a name
};

/// Returns the names that occur in `before` or `after`, those in `before` first.
template <class Pooled>
std::vector<std::string> names_of(const pooled_by_name<Pooled>& before,
                                  const pooled_by_name<Pooled>& after) {
  std::vector<std::string> names = before.names;
  for (const std::string& name : after.names) {
    if (before.of.count(name) == 0) names.push_back(name);
  }
  return names;
}

/// Returns the mean of a value over several runs. It is the geometric mean, because
/// change_between_runs() compares geometric means.
std::optional<double> mean_of_runs(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  if (values.size() == 1) return values.front();
  double logs = 0;
  for (const double v : values) logs += std::log(v) / static_cast<double>(values.size());
  return std::exp(logs);
}

std::optional<change> change_of_single_values(const pooled_times& before,
                                              const pooled_times& after) {
  return bootstrap_change(before.durations(), after.durations());
}

/// The variation of single aggregated calls does not show how much their mean varies, because
/// successive calls are correlated and their order is unknown.
std::optional<change> change_of_single_values(const pooled_counts& /*before*/,
                                              const pooled_counts& /*after*/) {
  return std::nullopt;
}

template <class Pooled>
compared_times compare_times(row_kind kind, std::string name, const Pooled& before,
                             const Pooled& after) {
  compared_times r;
  r.kind = kind;
  r.name = std::move(name);
  r.count_before = before.count();
  r.count_after = after.count();
  r.mean_ns = r.typical_ns = {before.mean_ns(), after.mean_ns()};
  r.mean_cpu_ns = {before.mean_cpu_ns(), after.mean_cpu_ns()};
  if (!r.mean_cpu_ns.common()) r.mean_cpu_ns = {};
  if (!r.mean_ns.grown_by() || !r.enough()) return r;
  const std::vector<double>& a = before.run_means_ns();
  const std::vector<double>& b = after.run_means_ns();
  r.likely =
      a.size() + b.size() > 2 ? change_between_runs(a, b) : change_of_single_values(before, after);
  r.p = permutation_p(a, b);
  if (r.likely) r.typical_ns = {mean_of_runs(a), mean_of_runs(b)};
  return r;
}

/// Compares one loader of the runs before a change with the same loader of the runs after it.
compared_loader compare_loader(const std::string& name, pooled_runs& runs_before,
                               pooled_runs& runs_after, const std::optional<double>& fail_above) {
  pooled_loader& before = runs_before.loaders[name];
  pooled_loader& after = runs_after.loaders[name];
  compared_loader of;
  of.loader = name;
  of.runs_before = before.runs;
  of.runs_after = after.runs;
  of.batches_per_s = {mean_of_runs(before.batches_per_s), mean_of_runs(after.batches_per_s)};
  of.rate_change = change_between_runs(before.batches_per_s, after.batches_per_s);
  of.rate_p = permutation_p(before.batches_per_s, after.batches_per_s);
  for (const std::string& op : names_of(before.ops, after.ops)) {
    of.rows.push_back(compare_times(row_kind::op, op, before.ops[op], after.ops[op]));
  }
  for (const std::string& op : names_of(before.aggregated, after.aggregated)) {
    of.rows.push_back(
        compare_times(row_kind::aggregated, op, before.aggregated[op], after.aggregated[op]));
    of.rows.back().counts = of.rows.back().likely.has_value();
  }
  for (const quantity wanted : all_quantities) {
    of.rows.push_back(compare_times(row_kind::batch, std::string(quantity_name(wanted)),
                                    before.quantities[wanted], after.quantities[wanted]));
    of.rows.back().of = wanted;
    of.rows.back().counts = wanted != quantity::delay;
  }
  for (compared_times& r : of.rows) {
    r.loader = name;
    r.failed = fail_above && r.is_slower(*fail_above);
  }
  of.machines = {runs_before.machines, runs_after.machines};
  of.cpus = {runs_before.cpus, runs_after.cpus};
  of.workers = {before.workers, after.workers};
  for (const auto& [stage, threads] : before.stage_threads) {
    of.stage_threads[stage] = {threads, after.stage_threads[stage]};
  }
  of.causes = causes_of(before, after, of);
  of.other_size = other_size(before, after);
  // Threads that are bound to some of the CPUs may share fewer CPUs than the program may use.
  of.shares_cpus = !after.bound && are_cpus_shared(of);
  for (const std::string& stage : names_of(before.stages, after.stages)) {
    const pooled_stage& was = before.stages[stage];
    const pooled_stage& is = after.stages[stage];
    of.stages.push_back({stage,
                         name,
                         {was.service_ns(), is.service_ns()},
                         {was.capacity_per_s(), is.capacity_per_s()}});
  }
  return of;
}

/// Returns the verdicts of a side; none if a run has none.
std::set<verdict> limits_of(const std::vector<diagnosis>& side) {
  std::set<verdict> limits;
  for (const diagnosis& d : side) {
    if (!d.is) return {};
    limits.insert(*d.is);
  }
  return limits;
}

bool has(const diagnosis& d, std::string_view id) {
  return std::any_of(d.findings.begin(), d.findings.end(),
                     [id](const finding& one) { return one.id == id; });
}

/// Returns the findings that all runs of one side have, and no run of the other. Findings that only
/// give a verdict are left out, because the verdict says the same.
std::vector<finding> findings_of(const std::vector<diagnosis>& these,
                                 const std::vector<diagnosis>& others) {
  std::vector<finding> found;
  for (const finding& one : these.front().findings) {
    const auto is_in = [&one](const diagnosis& d) { return has(d, one.id); };
    if ((one.is && !one.has(gives_reason)) || !std::all_of(these.begin(), these.end(), is_in) ||
        std::any_of(others.begin(), others.end(), is_in)) {
      continue;
    }
    found.push_back(one);
  }
  return found;
}

/// Diagnoses the first runs of one loader on one side, without predictions. Runs that cannot be
/// diagnosed are left out. Throws input_error.
std::vector<diagnosis> diagnoses_of(const std::vector<run_files>& runs, const std::string& loader,
                                    const compared_sides& sides) {
  constexpr std::size_t most = 3;  // a diagnosis takes longer than the comparison of a run
  diagnostic_log silent = diagnostic_log::silenced();
  std::vector<diagnosis> all;
  for (const run_files& run : runs) {
    if (run.loader != loader) continue;
    if (all.size() == most) break;
    const run_data data = read_run(run, diagnosis_parts, silent);
    judgement judged = diagnose_run(data, sides.skip_batches, silent, predictions::none);
    if (judged.found) all.push_back(std::move(*judged.found));
  }
  return all;
}

/// Stores what the diagnoses of both sides say, and removes from `to` what they contradict.
void add_facts(const std::vector<diagnosis>& before, const std::vector<diagnosis>& after,
               compared_loader& to) {
  if (before.empty() || after.empty()) return;
  to.limits = {limits_of(before), limits_of(after)};
  to.found_before = findings_of(before, after);
  to.found_after = findings_of(after, before);
  // Workers that share CPUs explain nothing if a limit, an affinity or other threads do.
  for (const diagnosis& d : after) {
    if (first_with(explains_queues, d.findings) != nullptr) to.shares_cpus = false;
  }
  for (cause& c : to.causes) {
    const diagnosis& slower = c.ns_a_batch > 0 ? after.front() : before.front();
    const blocked_on* const lock = claims(slower).waits_for_holder(shown_name(c.name));
    if (lock != nullptr) c.lock = *lock;
  }
}

/// Returns all runs in folders and their subfolders. Throws input_error.
std::vector<run_files> runs_in(const std::vector<std::string>& dirs, const compared_sides& sides,
                               diagnostic_log& diagnostics) {
  std::vector<run_files> all;
  for (const std::string& dir : dirs) {
    std::vector<run_files> found = find_runs(dir, sides.prefix, diagnostics);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

/// Returns the names of the operations to compare; an empty table if all are compared.
name_table names_to_compare(const std::vector<run_files>& before,
                            const std::vector<run_files>& after, std::size_t most,
                            diagnostic_log& diagnostics) {
  compared_names names;
  for (const std::vector<run_files>* const runs : {&before, &after}) {
    for (const run_files& run : *runs) names.add(run);
  }
  return names.choose(most, diagnostics);
}

}  // namespace

comparison compare_runs(const compared_sides& sides, diagnostic_log& diagnostics) {
  const std::vector<run_files> runs_before = runs_in(sides.before, sides, diagnostics);
  const std::vector<run_files> runs_after = runs_in(sides.after, sides, diagnostics);
  const name_table only =
      names_to_compare(runs_before, runs_after, sides.most_operations, diagnostics);
  pooled_runs before = pool(runs_before, sides, only, diagnostics);
  pooled_runs after = pool(runs_after, sides, only, diagnostics);
  comparison found{{}, before.records, after.records};
  for (const auto& [name, loader] : after.loaders) before.loaders.try_emplace(name);
  for (auto& [name, loader] : before.loaders) {
    found.loaders.push_back(compare_loader(name, before, after, sides.fail_above));
    add_facts(diagnoses_of(runs_before, name, sides), diagnoses_of(runs_after, name, sides),
              found.loaders.back());
  }
  return found;
}

const compared_times& compared_loader::times_of(quantity wanted) const {
  return *std::find_if(rows.begin(), rows.end(), [wanted](const compared_times& r) {
    return r.kind == row_kind::batch && r.of == wanted;
  });
}

constexpr double runs_differ = 0.1;

bool is_faster(const compared_loader& loader, double allowed) noexcept {
  const std::optional<change>& likely = loader.rate_change;
  if (likely) return likely->value > allowed && likely->low > 0;
  return loader.batches_per_s.grown_by().value_or(0) > std::fmax(allowed, runs_differ);
}

bool is_slower(const compared_loader& loader) noexcept {
  const std::optional<change>& likely = loader.rate_change;
  return likely ? likely->high < 0 : loader.batches_per_s.grown_by().value_or(0) < -runs_differ;
}

bool compared_times::is_slower(double allowed) const noexcept {
  if (counts && enough() && *mean_ns.before == 0 && *mean_ns.after > 0) return true;
  return counts && likely && likely->value > allowed && likely->low > 0;
}

}  // namespace lotus::tool
