// Writes tables as CSV files in one folder.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_CSV_SINK_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_CSV_SINK_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/output_file.hpp"
#include "commands/export/row_sink.hpp"

namespace lotus::tool {

enum class csv_texts : std::uint8_t {
  guarded,  ///< safe to open in a spreadsheet; see csv_guarded()
  exact,    ///< unchanged; used when a database reads the files immediately
};

/// Writes each table to a file TABLE.csv, with the column names on the first line. NULL is an empty
/// field, an empty text is written as "".
class csv_sink : public row_sink {
 public:
  /// @param folder  folder for the files; created if it does not exist. Throws input_error.
  csv_sink(const std::string& folder, const std::vector<table_definition>& tables, csv_texts texts);
  void row(std::size_t table, const std::vector<cell>& cells) override;
  void commit() override;

 private:
  csv_texts texts_;
  std::vector<std::unique_ptr<output_file>> files_;
  std::string line_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_CSV_SINK_HPP
