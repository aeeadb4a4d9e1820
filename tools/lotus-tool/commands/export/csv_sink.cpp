// Writes tables as CSV files in one folder.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/csv.hpp"
#include "base/text.hpp"
#include "commands/export/tables.hpp"

namespace lotus::tool {
namespace {

/// Writes each table to a file TABLE.csv, with the column names on the first line. NULL is an empty
/// field, an empty text is written as "".
class csv_sink : public row_sink {
 public:
  /// @param folder  folder for the files; created if it does not exist. Throws input_error.
  csv_sink(const std::string& folder, const std::vector<table_definition>& tables, csv_texts texts)
      : texts_(texts) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw input_error(folder + ": cannot be created: " + error.message());
    for (const table_definition& table : tables) {
      files_.push_back(
          std::make_unique<output_file>(folder + '/' + table.name + ".csv", std::cout));
      const auto name = [](const auto& column) { return column.first; };
      files_.back()->write(joined(table.columns, ",", name) + '\n');
    }
  }

  void row(std::size_t table, const std::vector<cell>& cells) override {
    line_.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line_ += ',';
      if (const auto* number = std::get_if<std::int64_t>(&cells[i]))
        line_ += std::to_string(*number);
      if (const auto* real = std::get_if<double>(&cells[i])) line_ += json_number(*real);
      if (const auto* text = std::get_if<std::string_view>(&cells[i])) {
        line_ += texts_ == csv_texts::exact ? csv_exact_field(*text)
                                            : csv_exact_field(csv_guarded(*text));
      }
    }
    line_ += '\n';
    files_[table]->write(line_);
  }

  void commit() override {
    for (const auto& file : files_) file->commit();
  }

 private:
  csv_texts texts_;
  std::vector<std::unique_ptr<output_file>> files_;
  std::string line_;
};

}  // namespace

std::unique_ptr<row_sink> make_csv_sink(const std::string& folder,
                                        const std::vector<table_definition>& tables,
                                        csv_texts texts) {
  return std::make_unique<csv_sink>(folder, tables, texts);
}

}  // namespace lotus::tool
