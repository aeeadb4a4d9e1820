// Compares runs; the results are formatted by other files.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "model/chance/between_runs.hpp"
#include "model/quantities.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

struct compared_sides {
  std::vector<std::string> before;  ///< folders with one or more runs, which are pooled
  std::vector<std::string> after;
  std::string prefix{default_prefix};
  std::optional<double> fail_above;  ///< maximum slowdown to pass the comparison; 0.05 is 5 %
  std::size_t skip_batches = 0;  ///< number of batches to ignore at the beginning of every epoch
  /// Maximum number of operations to compare; if there are more, those with the most time.
  std::size_t most_operations = 10'000;
};

/// A value before and after a change of the program. grown_by() returns the relative difference;
/// nullopt if a value is missing or `before` is 0.
struct compared_value {
  std::optional<double> before;
  std::optional<double> after;

  bool common() const noexcept { return before && after; }
  std::optional<double> grown_by() const noexcept {
    return common() && *before != 0 ? std::optional(*after / *before - 1) : std::nullopt;
  }
};

/// The different values that the runs of each side have, such as numbers of workers.
template <class Value>
struct values_of_sides {
  std::set<Value> before;
  std::set<Value> after;

  /// Returns false if the values of a side are unknown.
  bool differ() const { return !before.empty() && !after.empty() && before != after; }
};

/// What a row is about: an operation, an aggregated operation, or a quantity of batches.
enum class row_kind : std::uint8_t { op, aggregated, batch };

/// The times of an operation or of a quantity of batches, such as the wait, on both sides of a
/// comparison.
struct compared_times {
  row_kind kind = row_kind::op;
  quantity of = quantity::preprocess;  ///< for row_kind::batch
  std::string name;                    ///< name as in the logs, or quantity_name()
  std::string loader;                  ///< name of the loader; "" for the default loader
  std::size_t count_before = 0;
  std::size_t count_after = 0;
  compared_value mean_ns;      ///< mean of all values
  compared_value typical_ns;   ///< the value that outputs show; each run has the same weight in it
  compared_value mean_cpu_ns;  ///< mean CPU time; known for both sides or for neither
  std::optional<change> likely;  ///< change with a 95 % interval; missing if there are few values
  std::optional<double> p;  ///< p-value of the difference between the runs; see permutation_p()
  bool counts = true;       ///< whether this row can make the comparison fail
  bool failed = false;      ///< whether it is slower by more than compared_sides::fail_above

  /// Minimum number of values on each side for a confidence interval. The interval is computed by
  /// resampling, which shows too little variation if there are fewer values.
  static constexpr std::size_t min_values = 5;
  bool enough() const noexcept { return count_before >= min_values && count_after >= min_values; }
  /// Returns the relative change from `before` to `after`. If a confidence interval could be
  /// computed (`likely`), this is its central value, for which each run has the same weight;
  /// otherwise it is the change of the mean of all values.
  std::optional<double> grown_by() const noexcept {
    return likely ? std::optional(likely->value) : mean_ns.grown_by();
  }
  bool is_sure() const noexcept { return likely && (likely->low > 0 || likely->high < 0); }
  /// Whether `after` is slower by more than `allowed`, with statistical significance.
  bool is_slower(double allowed) const noexcept;
};

struct compared_stage {
  std::string name;
  std::string loader;             ///< name of the loader; "" for the default loader
  compared_value service_ns;      ///< mean time per item or batch
  compared_value capacity_per_s;  ///< capacity in batches per second
};

/// An operation that explains why batches take longer or shorter.
struct cause {
  std::string name;       ///< name as in the logs
  double ns_a_batch = 0;  ///< by how much the operation's time per batch increased, in ns
  /// Part of the difference in a batch's preprocess time that the operation explains; 1: all of it.
  double share = 0;
  /// Whether the operation's time per batch changed because its number of calls per batch changed.
  /// If not, the time per call changed.
  bool more_calls = false;
  /// The lock, held by another operation, that it mostly waits for on the slower side.
  std::optional<blocked_on> lock;
};

/// An operation that has different numbers of calls per batch on both sides.
struct differing_calls {
  std::string name;  ///< name as in the logs
  double before = 0;
  double after = 0;
};

struct compared_loader {
  std::string loader;  ///< name of the loader; "" for the default loader
  std::vector<compared_times> rows;
  std::vector<compared_stage> stages;
  compared_value batches_per_s;       ///< batches per second, as a mean over the runs
  std::optional<change> rate_change;  ///< change of batches_per_s; see change_between_runs()
  std::optional<double> rate_p;
  std::vector<cause> causes;                  ///< causes of the change; the largest comes first
  std::optional<differing_calls> other_size;  ///< shows that batches have another size
  values_of_sides<std::string> machines;      ///< names of machines, if recorded
  values_of_sides<double> cpus;               ///< numbers of CPUs that the runs could use
  values_of_sides<std::size_t> workers;
  std::map<std::string, values_of_sides<std::size_t>> stage_threads;  ///< by name of the stage
  bool shares_cpus = false;                                           ///< see are_cpus_shared()
  values_of_sides<verdict> limits;    ///< what limits each side; empty if a run has no verdict
  std::vector<finding> found_before;  ///< what was found in all runs before, and in none after
  std::vector<finding> found_after;   ///< the reverse
  std::size_t runs_before = 0;
  std::size_t runs_after = 0;

  /// Returns the row of a quantity of batches; each loader has them all.
  const compared_times& times_of(quantity wanted) const;
};

/// Returns whether throughput rose significantly by more than `allowed`. If there is only one run
/// per side, significance is unknown, and at least 10 % are required, because runs of the same
/// program differ. If throughput rose, slower rows do not make the comparison fail: they are a side
/// effect of an improvement, such as more workers.
bool is_faster(const compared_loader& loader, double allowed) noexcept;
/// Whether throughput fell, by the same rules.
bool is_slower(const compared_loader& loader) noexcept;

struct comparison {
  std::vector<compared_loader> loaders;
  record_counts records_before;
  record_counts records_after;
};

/// Compares all runs in the folders of both sides. Throws input_error.
comparison compare_runs(const compared_sides& sides, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_HPP
