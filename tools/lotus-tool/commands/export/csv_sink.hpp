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
  guarded,  ///< safe in spreadsheets: see csv_guarded()
  exact,    ///< for a database that reads them at once
};

/// Writes TABLE.csv, with the column names on the first line. NULL is an empty field, an empty text
/// is "".
class csv_sink : public row_sink {
 public:
  /// @param folder  created if it does not exist. Throws input_error.
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
