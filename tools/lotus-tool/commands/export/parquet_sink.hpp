// Writes tables as Parquet files in one folder, using the program duckdb.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP

#include <string>
#include <vector>

#include "base/files/scratch_folder.hpp"
#include "commands/export/csv_sink.hpp"
#include "commands/export/row_sink.hpp"

namespace lotus::tool {

/// Writes each table to a file TABLE.parquet. Rows are stored in hidden CSV files until commit(),
/// which lets duckdb convert these files.
class parquet_sink : public row_sink {
 public:
  /// @param folder  folder for the files; created if it does not exist. Throws input_error, also if
  ///   duckdb is not installed.
  parquet_sink(std::string folder, const std::vector<table_definition>& tables);
  void row(std::size_t table, const std::vector<cell>& cells) override { csv_.row(table, cells); }
  /// Runs duckdb, which writes the Parquet files. Throws input_error with duckdb's error message if
  /// duckdb fails. Throws `interrupted` if a signal asked lotus-tool to end while duckdb ran.
  void commit() override;

 private:
  std::string folder_;
  const std::vector<table_definition>& tables_;
  scratch_folder scratch_;
  csv_sink csv_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP
