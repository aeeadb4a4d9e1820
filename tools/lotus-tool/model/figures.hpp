// Defines the statistics of an operation or of a quantity (preprocess time, wait, delay, step).
// Each single value, such as the mean, is called a figure. All outputs use one list of all figures.
#ifndef LOTUS_TOOL_MODEL_FIGURES_HPP
#define LOTUS_TOOL_MODEL_FIGURES_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/formats/json_writer.hpp"
#include "base/statistics/distribution.hpp"
#include "describe/described.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Statistics of the durations of an operation, a stage or a quantity. Members that do not apply to
/// it, such as the self time of a quantity, are nullopt.
struct figures {
  std::string name;  ///< decoded name; for operations, with the S that begins all names in logs
  distribution time;
  /// Total self time of the operation; missing for quantities.
  std::optional<std::int64_t> self_ns;
  std::optional<double> below_10ms;  ///< share of durations below 10 ms, 0..1
  std::optional<double> below_100us;
  std::optional<double> above_500ms;
  /// For how much of the total time the threads ran, waited for a CPU or were blocked; nullopt if
  /// CPU time was not measured.
  std::optional<cpu_split> cpu;
  /// Heap use of an operation; missing if allocations were not counted.
  std::optional<heap_use> heap;
};

/// Returns the statistics of an operation.
figures figures_of(const op_samples& op);

figures figures_of(const aggregated_op& op);
std::vector<figures> figures_of(const std::vector<aggregated_op>& ops);

/// Returns the statistics of the given durations, under the name `name`. Changes the order of
/// `durations_ns`.
figures figures_of(std::string name, std::vector<std::int64_t>& durations_ns);

/// The outputs that may contain a figure, as bits of field_facts::outputs.
enum figure_output : unsigned {
  op_json = 1U << 0U,
  quantity_json = 1U << 1U,
  latency_json = 1U << 2U,  ///< for latencies of items and asynchronous operations
  stats_csv = 1U << 3U,
  report_op = 1U << 4U,
  report_quantity = 1U << 5U,
  op_table = 1U << 6U,
  quantity_table = 1U << 7U,
  stage_table = 1U << 8U,
  async_table = 1U << 9U,
  sorting = 1U << 10U,  ///< operations can be sorted by it; its title is the word for it
  of_cpu = 1U << 11U,   ///< not an output: the figure is only shown if CPU time was measured
};

/// Returns the descriptions of all figures, in the order in which all outputs contain them.
const description<figures>& description_of(const figures*);

/// Writes one JSON member for each figure that `output` contains.
void write_figures(json_writer& json, const figures& of, figure_output output);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_FIGURES_HPP
