// Tables as Parquet files of one folder, made by DuckDB's command.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP

#include <string>
#include <vector>

#include "base/files/scratch_folder.hpp"
#include "commands/export/csv_sink.hpp"
#include "commands/export/row_sink.hpp"

namespace lotus::tool {

/// TABLE.parquet, from CSV files that lie in a hidden folder meanwhile.
class parquet_sink : public row_sink {
 public:
  /// @param folder  is made where it is missing. Throws input_error, also where there is no duckdb.
  parquet_sink(std::string folder, const std::vector<table_definition>& tables);
  void row(std::size_t table, const std::vector<cell>& cells) override { csv_.row(table, cells); }
  /// Throws input_error with what duckdb said, or `interrupted`.
  void commit() override;

 private:
  std::string folder_;
  const std::vector<table_definition>& tables_;
  scratch_folder scratch_;
  csv_sink csv_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_PARQUET_SINK_HPP
