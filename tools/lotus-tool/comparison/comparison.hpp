// The results of a comparison, before they are formatted.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "model/chance/bootstrap.hpp"

namespace lotus::tool {

/// What to compare.
struct compared_sides {
  std::vector<std::string> before;  ///< folders with one or more runs, which are pooled
  std::vector<std::string> after;
  std::string prefix{default_prefix};
  std::optional<double> fail_above;  ///< the slowdown that is still allowed, 0.05 for 5 %
  std::size_t skip_batches = 0;      ///< at the beginning of every epoch
};

/// The values before and after; the change is missing if either is missing or `before` is 0.
struct compared_value {
  std::optional<double> before;
  std::optional<double> after;

  bool common() const noexcept { return before && after; }
  std::optional<double> grown_by() const noexcept {
    return common() && *before != 0 ? std::optional(*after / *before - 1) : std::nullopt;
  }
};

/// Kind of operations that were counted but not recorded.
inline constexpr char aggregated_kind[] = "aggregated";

/// An operation or a quantity of batches.
struct compared_times {
  const char* kind = "";  ///< "op", "aggregated" or "batch"
  std::string name;       ///< as logged
  std::size_t count_before = 0;
  std::size_t count_after = 0;
  compared_value mean_ns;      ///< of all values
  compared_value typical_ns;   ///< shown in the output: gives each of several runs the same weight
  compared_value mean_cpu_ns;  ///< present for both sides or for neither
  std::optional<change> likely;  ///< with its 95 % interval; also missing if a side has few values
  std::optional<double> p;       ///< permutation_p() over the runs
  bool counts = true;            ///< whether it may make the comparison fail

  /// The minimum number of values for an interval: resampling fewer ones does not show how much
  /// their mean varies.
  static constexpr std::size_t least_values = 5;
  bool enough() const noexcept {
    return count_before >= least_values && count_after >= least_values;
  }
  /// The relative change. If there is an interval, this is the value inside it, which gives each of
  /// several runs the same weight.
  std::optional<double> grown_by() const noexcept {
    return likely ? std::optional(likely->value) : mean_ns.grown_by();
  }
  bool is_sure() const noexcept { return likely && (likely->low > 0 || likely->high < 0); }
  /// Whether it is slower by more than `allowed`, with statistical significance.
  bool is_slower(double allowed) const noexcept;
};

struct compared_stage {
  std::string name;
  compared_value service_ns;      ///< mean per item or batch
  compared_value capacity_per_s;  ///< in batches
};

/// An operation that makes batches take longer or shorter.
struct cause {
  std::string name;         ///< as logged
  double ns_a_batch = 0;    ///< by how much its time per batch grew; negative if it shrank
  double share = 0;         ///< part of the change of the preprocess time of a batch
  bool more_calls = false;  ///< the number of calls changed; otherwise the time of a call
};

struct compared_loader {
  std::string loader;  ///< "" for the default loader
  std::vector<compared_times> rows;
  std::vector<compared_stage> stages;
  compared_value batches_per_s;       ///< mean over the runs
  std::optional<change> rate_change;  ///< change_between_runs()
  std::optional<double> rate_p;
  std::vector<cause> causes;  ///< largest first
  std::string other_size;     ///< result of other_size()
  std::string other_workers;  ///< result of other_workers()
  std::string shared_cpus;    ///< result of shared_cpus()
  std::size_t runs_before = 0;
  std::size_t runs_after = 0;
};

struct comparison {
  std::vector<compared_loader> loaders;
  record_counts records_before;
  record_counts records_after;
  std::vector<std::string> unlike;  ///< differences between the machines
};

/// Compares all runs in the folders of both sides. Throws input_error.
comparison compare_runs(const compared_sides& sides, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_HPP
