// Writes tables as Parquet files in one folder, using the program duckdb.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "base/files/unfinished.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "commands/export/tables.hpp"

namespace lotus::tool {
namespace {

/// Writes each table to a file TABLE.parquet. Rows are stored in hidden CSV files until commit(),
/// which lets duckdb convert these files.
class parquet_sink : public row_sink {
 public:
  /// @param folder  folder for the files; created if it does not exist. Throws input_error, also if
  ///   duckdb is not installed.
  parquet_sink(std::string folder, const std::vector<table_definition>& tables);
  void row(std::size_t table, const std::vector<cell>& cells) override { csv_->row(table, cells); }
  /// Runs duckdb, which writes the Parquet files. Throws input_error with duckdb's error message if
  /// duckdb fails. Throws `interrupted` if a signal asked lotus-tool to end while duckdb ran.
  void commit() override;

 private:
  std::string folder_;
  const std::vector<table_definition>& tables_;
  scratch_folder scratch_;
  std::unique_ptr<row_sink> csv_;
};

namespace fs = std::filesystem;

std::string run_duckdb(const scratch_folder& scratch, const std::string& sql, exit_state& end) {
  const std::string output = scratch.file("said");
  command what;
  what.arguments = {"duckdb", "-init", "/dev/null", ":memory:", "-c", sql};
  what.output = output;
  try {
    end = run_command(what);
  } catch (const input_error& cannot_start) {
    throw input_error("--format parquet needs the program duckdb (pip install duckdb-cli); " +
                      std::string(cannot_start.what()));
  }
  std::ifstream in(output);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Replaces line ends and repeated blanks of an error message by one blank each.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : printable(text)) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return printable_line(line);
}

std::string sql_text(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\'') literal += c;
    literal += c;
  }
  return literal + '\'';
}

const char* duckdb_type(column_type type) {
  static constexpr const char* names[] = {": 'BIGINT'", ": 'DOUBLE'", ": 'VARCHAR'"};
  return names[static_cast<std::size_t>(type)];
}

std::string copy_statement(const table_definition& table, const scratch_folder& scratch) {
  const std::string path = scratch.file(table.name);
  const std::string columns = joined(table.columns, ", ", [](const auto& column) {
    return sql_text(column.first) + duckdb_type(column.second);
  });
  return "COPY (SELECT * FROM read_csv(" + sql_text(path + ".csv") +
         ", auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
         "nullstr = '', allow_quoted_nulls = false, columns = {" +
         columns + "})) TO " + sql_text(path + ".parquet") +
         " (FORMAT parquet, COMPRESSION zstd);\n";
}

/// Creates the folder and returns its path. Must be called before the logs are read, which may take
/// long, so that the user sees an error immediately.
std::string made_folder(std::string folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw input_error(folder + ": cannot be created: " + error.message());
  return folder;
}

parquet_sink::parquet_sink(std::string folder, const std::vector<table_definition>& tables)
    : folder_(made_folder(std::move(folder))),
      tables_(tables),
      scratch_(folder_),
      csv_(make_csv_sink(scratch_.path(), tables, csv_texts::exact)) {
  exit_state end;
  const std::string output = run_duckdb(scratch_, "SELECT 1", end);
  if (end.status != 0) throw input_error("duckdb: does not work: " + one_line(output));
}

void parquet_sink::commit() {
  csv_->commit();
  std::string sql;
  for (const table_definition& table : tables_) sql += copy_statement(table, scratch_);
  exit_state end;
  const std::string output = run_duckdb(scratch_, sql, end);
  if (end.status != 0) {
    throw input_error(folder_ + ": duckdb ended with " + std::to_string(end.status) + ": " +
                      one_line(output));
  }
  for (const table_definition& table : tables_) {
    const std::string name = std::string(table.name) + ".parquet";
    std::error_code error;
    fs::rename(scratch_.file(name), folder_ + '/' + name, error);
    if (error) throw input_error(folder_ + '/' + name + ": cannot be written: " + error.message());
  }
}

}  // namespace

std::unique_ptr<row_sink> make_parquet_sink(std::string folder,
                                            const std::vector<table_definition>& tables) {
  return std::make_unique<parquet_sink>(std::move(folder), tables);
}

}  // namespace lotus::tool
