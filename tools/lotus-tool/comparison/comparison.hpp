// What a comparison found, before it is printed.
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

/// What is compared.
struct compared_sides {
  std::vector<std::string> before;  ///< folders of one run or several, which are taken together
  std::vector<std::string> after;
  std::string prefix{default_prefix};
  std::optional<double> fail_above;  ///< the slowing that is still allowed, 0.05 for 5 %
  std::size_t skip_batches = 0;      ///< at the beginning of every epoch
};

/// Before and after; the change is missing where one is, or there was nothing before.
struct compared_value {
  std::optional<double> before;
  std::optional<double> after;

  bool common() const noexcept { return before && after; }
  std::optional<double> grown_by() const noexcept {
    return common() && *before != 0 ? std::optional(*after / *before - 1) : std::nullopt;
  }
};

/// Operations that were counted and not recorded.
inline constexpr char aggregated_kind[] = "aggregated";

/// An operation or a quantity of batches.
struct compared_times {
  const char* kind = "";  ///< "op", "aggregated" or "batch"
  std::string name;       ///< as logged
  std::size_t count_before = 0;
  std::size_t count_after = 0;
  compared_value mean_ns;        ///< of all values
  compared_value typical_ns;     ///< what people are told: of several runs each counts alike
  compared_value mean_cpu_ns;    ///< of both or of none
  std::optional<change> likely;  ///< the 95 % interval; missing also where a side is small
  std::optional<double> p;       ///< permutation_p() of the runs
  bool counts = true;            ///< may make the comparison fail

  /// Drawing from fewer values says little about how much a mean varies.
  static constexpr std::size_t least_values = 5;
  bool enough() const noexcept {
    return count_before >= least_values && count_after >= least_values;
  }
  /// That of the interval, where there is one: of several runs it counts each alike.
  std::optional<double> grown_by() const noexcept {
    return likely ? std::optional(likely->value) : mean_ns.grown_by();
  }
  bool is_sure() const noexcept { return likely && (likely->low > 0 || likely->high < 0); }
  /// Whether that is beyond chance.
  bool is_slower(double allowed) const noexcept;
};

struct compared_stage {
  std::string name;
  compared_value service_ns;      ///< mean of an item or batch
  compared_value capacity_per_s;  ///< batches
};

/// An operation that makes batches take longer, or less long: what it takes of one.
struct cause {
  std::string name;       ///< as logged
  double ns_a_batch = 0;  ///< more, or less
  double share = 0;       ///< of what preprocessing a batch takes more, or less
  bool more_calls =
      false;  ///< it is called more, or less, often; else a call takes longer, or less
};

struct compared_loader {
  std::string loader;  ///< "" of the default one
  std::vector<compared_times> rows;
  std::vector<compared_stage> stages;
  compared_value batches_per_s;       ///< the runs' mean
  std::optional<change> rate_change;  ///< between runs
  std::optional<double> rate_p;
  std::vector<cause> causes;  ///< the largest first
  std::string other_size;     ///< that batches are of different sizes; "" where they are not
  std::string other_workers;  ///< likewise
  std::string shared_cpus;    ///< the reason why preprocessing takes longer; "" where it is not
  std::size_t runs_before = 0;
  std::size_t runs_after = 0;
};

struct comparison {
  std::vector<compared_loader> loaders;
  record_counts records_before;
  record_counts records_after;
  std::vector<std::string> unlike;  ///< machines
};

/// Of all runs in the folders of both sides. Throws input_error.
comparison compare_runs(const compared_sides& sides, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_HPP
