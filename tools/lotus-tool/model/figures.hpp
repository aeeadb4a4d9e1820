// Defines the statistics of an operation or of a quantity (preprocess time, wait, delay, step).
// Each single value, such as the mean, is called a figure. This file has one list of all figures,
// which all outputs use.
#ifndef LOTUS_TOOL_MODEL_FIGURES_HPP
#define LOTUS_TOOL_MODEL_FIGURES_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/formats/json_writer.hpp"
#include "base/statistics/distribution.hpp"
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

/// The value of one figure, such as the mean; monostate if the value is missing. Counts and whole
/// nanoseconds are exact.
using figure = std::variant<std::monostate, std::int64_t, double>;

enum class figure_unit : std::uint8_t { count, time_ns, share };

/// The outputs that may contain a figure, as bits. The text tables have no bit; figure_field has
/// their column numbers (op_column and quantity_column) instead.
enum figure_output : unsigned {
  op_json = 1U,
  quantity_json = 2U,
  stats_csv = 4U,
  report_op = 8U,
  report_quantity = 16U,
};

/// How the outputs show one figure.
struct figure_field {
  std::string_view key;    ///< key in JSON and CSV
  std::string_view title;  ///< title of the table column
  figure (*get)(const figures& of);
  figure_unit unit;
  unsigned shown;  ///< the outputs that contain the figure, as bits of figure_output
  /// Column of the figure in the table of operations, counted from 1; 0: not in that table.
  /// `quantity_column` is the same for the table of quantities.
  unsigned op_column;
  unsigned quantity_column;
  /// Whether the figure has a value even if no durations were recorded. This is true only for
  /// counts and totals, which are then 0; a mean, for example, then has no value.
  bool of_none = false;
  std::string_view missing = {};  ///< text that tables show for a missing value
  bool of_cpu = false;            ///< whether the figure is only shown if CPU time was measured
  bool of_heap = false;           ///< whether the figure is only shown if allocations were counted
};

/// Returns the descriptions of all figures, in the order in which JSON and CSV outputs contain the
/// figures.
const std::vector<figure_field>& figure_fields();

/// Returns the figures that one of the two text tables shows, in the order of its columns.
/// @param column  the table: `op_column` for operations, `quantity_column` for quantities.
/// @param cpu  whether CPU time was measured. If not, figures of CPU time are left out.
std::vector<const figure_field*> columns_of(unsigned figure_field::*column, bool cpu);

/// Writes one JSON member for each figure that `output` contains.
/// @param null_of_none  whether to write null instead of 0 for the figures that an empty set of
///   durations does not have (see figure_field::of_none).
void write_figures(json_writer& json, const figures& of, figure_output output, bool null_of_none);

/// Returns the text of a figure with its exact value, as in JSON and CSV; "" if the value is
/// missing.
std::string exact_text(const figure& value);
/// Returns the value of `field` for people to read, such as "1.2 ms" or "34 %".
std::string human_text(const figure_field& field, const figures& of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_FIGURES_HPP
