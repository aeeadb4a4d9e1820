// Converts a run to tables (runs, spans, batches, stages, counters, aggregated, blocked_on), and
// writes the tables of a database row by row.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostics.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// The value of one cell; std::monostate is NULL. A text is UTF-8 and must stay valid only until
/// row() returns.
using cell = std::variant<std::monostate, std::int64_t, double, std::string_view>;

template <class Integer>
cell cell_of(const std::optional<Integer>& value) {
  if (!value) return {};
  return static_cast<std::int64_t>(*value);
}

enum class column_type : std::uint8_t { integer, real, text };

struct table_definition {
  const char* name;
  std::vector<std::pair<std::string, column_type>> columns;
};

/// Receives the rows of all tables. The destructor removes the output if commit() was not called.
/// Not thread-safe.
class row_sink {
 public:
  row_sink() = default;
  row_sink(const row_sink&) = delete;
  row_sink& operator=(const row_sink&) = delete;
  virtual ~row_sink() = default;

  /// Appends a row. Like commit(), throws input_error if the output cannot be written.
  /// @param table  index of the table in the list of definitions that the sink was created with.
  /// @param cells  one value for each column.
  virtual void row(std::size_t table, const std::vector<cell>& cells) = 0;
  virtual void commit() = 0;
};

enum class csv_texts : std::uint8_t {
  guarded,  ///< safe to open in a spreadsheet; see csv_guarded()
  exact,    ///< unchanged; used when a database reads the files immediately
};

// Sinks for `tables`, which must outlive them. All throw input_error, also if duckdb is missing.
/// @param folder  folder for the files TABLE.csv or TABLE.parquet; created if it does not exist.
std::unique_ptr<row_sink> make_csv_sink(const std::string& folder,
                                        const std::vector<table_definition>& tables,
                                        csv_texts texts);
std::unique_ptr<row_sink> make_parquet_sink(std::string folder,
                                            const std::vector<table_definition>& tables);
std::unique_ptr<row_sink> make_sqlite_sink(std::string path,
                                           const std::vector<table_definition>& tables);

/// Returns the definitions of all tables. docs/guides/sql-and-ranks.md explains their columns.
const std::vector<table_definition>& exported_tables();

/// Appends the rows of one run to all tables. Throws input_error.
/// @param number  the number that identifies the run in all tables.
/// @param run     the run, which must have been read with run_parts::operations and totals.
void write_tables(std::int64_t number, const run_data& run, row_sink& sink,
                  diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_TABLES_HPP
