// The figures of an operation or of a quantity, and the one list of them behind every output.
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

/// What is told of a set of times. What only operations or only some quantities have is missing for
/// the others.
struct figures {
  std::string name;  ///< of an operation with its S, decoded
  distribution time;
  std::optional<std::int64_t> self_ns;  ///< of the total, without what ran inside it
  std::optional<double> below_10ms;     ///< shares, 0..1
  std::optional<double> below_100us;
  std::optional<double> above_500ms;
  std::optional<cpu_split> cpu;  ///< of the total; missing where it was not measured
  std::optional<heap_use> heap;  ///< likewise; of operations only
};

/// Figures of an operation; its durations are given back.
figures figures_of(op_samples& op);

figures figures_of(const aggregated_op& op);
std::vector<figures> figures_of(const std::vector<aggregated_op>& ops);

/// Figures of any durations, whose order is destroyed.
figures figures_of(std::string name, std::vector<std::int64_t>& durations_ns);

/// Counts and whole nanoseconds are told exactly.
using figure = std::variant<std::monostate, std::int64_t, double>;

enum class figure_unit : std::uint8_t { count, time_ns, share };

/// The outputs a figure may stand in. The tables have an order of their own.
enum figure_output : unsigned {
  op_json = 1U,
  quantity_json = 2U,
  stats_csv = 4U,
  report_op = 8U,
  report_quantity = 16U,
};

/// A figure as every output tells it.
struct figure_field {
  std::string_view key;    ///< in JSON and CSV
  std::string_view title;  ///< of the column
  figure (*get)(const figures& of);
  figure_unit unit;
  unsigned shown;      ///< figure_output
  unsigned op_column;  ///< in the table of operations, from 1; 0: not there
  unsigned quantity_column;
  bool of_none = false;           ///< also an empty set has it
  std::string_view missing = {};  ///< in tables
  bool of_cpu = false;            ///< stands only where CPU time was measured
  bool of_heap = false;           ///< stands only where allocations were counted
};

/// All figures, in the order of JSON and CSV.
const std::vector<figure_field>& figure_fields();

/// Those that a table shows, in the order of its columns.
/// @param cpu  whether CPU time was measured.
std::vector<const figure_field*> columns_of(unsigned figure_field::*column, bool cpu);

/// Members for the figures that stand in `output`.
/// @param null_of_none  null for what an empty set has not, rather than 0.
void write_figures(json_writer& json, const figures& of, figure_output output, bool null_of_none);

/// Exactly, for JSON and CSV; "" where it is missing.
std::string exact_text(const figure& value);
/// For people: "1.2 ms", "34 %".
std::string human_text(const figure_field& field, const figures& of);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_FIGURES_HPP
