// What a comparison found, before it is printed.
#ifndef LOTUS_TOOL_COMPARE_COMPARISON_HPP
#define LOTUS_TOOL_COMPARE_COMPARISON_HPP

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "log/process_info.hpp"
#include "model/bootstrap.hpp"

namespace lotus::tool {

/// Before and after; the change is missing where one is, or there was nothing before.
struct compared_value {
  std::optional<double> before;
  std::optional<double> after;

  bool common() const noexcept { return before && after; }
  std::optional<double> grown_by() const noexcept {
    return common() && *before != 0 ? std::optional(*after / *before - 1) : std::nullopt;
  }
};

/// An operation or a quantity of batches.
struct compared_times {
  const char* kind = "";  ///< "op" or "batch"
  std::string name;
  std::size_t count_before = 0;
  std::size_t count_after = 0;
  compared_value mean_ns;
  compared_value mean_cpu_ns;    ///< of both or of none
  std::optional<change> likely;  ///< the 95 % interval; missing also where a side is small
  bool counts = true;            ///< may make the comparison fail

  /// Drawing from fewer values says little about how much a mean varies.
  static constexpr std::size_t least_values = 5;
  bool enough() const noexcept {
    return count_before >= least_values && count_after >= least_values;
  }
  /// Whether that is beyond chance.
  bool is_slower(double allowed) const noexcept;
};

struct compared_stage {
  std::string name;
  compared_value service_ns;      ///< mean of an item or batch
  compared_value capacity_per_s;  ///< batches
};

struct compared_loader {
  std::string loader;  ///< "" of the default one
  std::vector<compared_times> rows;
  std::vector<compared_stage> stages;
};

struct comparison {
  std::vector<compared_loader> loaders;
  record_counts records_before;
  record_counts records_after;
};

void print_comparison_table(const compare_options& options, const comparison& found,
                            std::ostream& out);
void print_comparison_json(const compare_options& options, const comparison& found,
                           std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARE_COMPARISON_HPP
