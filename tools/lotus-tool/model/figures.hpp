// Statistics of an operation or a quantity, and the one list of them that all outputs use.
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

/// Statistics of a set of times. Those that exist only for operations, or only for some quantities,
/// are missing for the others.
struct figures {
  std::string name;  ///< name of the operation with the leading S, decoded
  distribution time;
  std::optional<std::int64_t> self_ns;  ///< of the total, without operations inside it
  std::optional<double> below_10ms;     ///< shares, 0..1
  std::optional<double> below_100us;
  std::optional<double> above_500ms;
  std::optional<cpu_split> cpu;  ///< of the total; missing if it was not measured
  std::optional<heap_use> heap;  ///< likewise; only for operations
};

/// Statistics of an operation; releases the memory of its durations.
figures figures_of(op_samples& op);

figures figures_of(const aggregated_op& op);
std::vector<figures> figures_of(const std::vector<aggregated_op>& ops);

/// Statistics of any durations. Changes their order.
figures figures_of(std::string name, std::vector<std::int64_t>& durations_ns);

/// Counts and whole nanoseconds are exact.
using figure = std::variant<std::monostate, std::int64_t, double>;

enum class figure_unit : std::uint8_t { count, time_ns, share };

/// The outputs that may contain a figure. Tables have an order of their own.
enum figure_output : unsigned {
  op_json = 1U,
  quantity_json = 2U,
  stats_csv = 4U,
  report_op = 8U,
  report_quantity = 16U,
};

/// How all outputs show a figure.
struct figure_field {
  std::string_view key;    ///< in JSON and CSV
  std::string_view title;  ///< title of the column
  figure (*get)(const figures& of);
  figure_unit unit;
  unsigned shown;      ///< bits of figure_output
  unsigned op_column;  ///< position in the table of operations, from 1; 0: not in the table
  unsigned quantity_column;
  bool of_none = false;           ///< also defined for an empty set
  std::string_view missing = {};  ///< text for a missing value in tables
  bool of_cpu = false;            ///< only shown if CPU time was measured
  bool of_heap = false;           ///< only shown if allocations were counted
};

/// All figures, in the order of JSON and CSV.
const std::vector<figure_field>& figure_fields();

/// The figures that a table shows, in the order of its columns.
/// @param cpu  whether CPU time was measured.
std::vector<const figure_field*> columns_of(unsigned figure_field::*column, bool cpu);

/// Writes the members for the figures in `output`.
/// @param null_of_none  write null, not 0, for figures that an empty set does not have.
void write_figures(json_writer& json, const figures& of, figure_output output, bool null_of_none);

/// The exact value, for JSON and CSV; "" if it is missing.
std::string exact_text(const figure& value);
/// For people to read: "1.2 ms", "34 %".
std::string human_text(const figure_field& field, const figures& of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_FIGURES_HPP
