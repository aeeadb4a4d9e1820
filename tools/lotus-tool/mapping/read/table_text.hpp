// Text tables as profilers write them: lines, fields, numbers with units.
#ifndef LOTUS_TOOL_MAPPING_READ_TABLE_TEXT_HPP
#define LOTUS_TOOL_MAPPING_READ_TABLE_TEXT_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// The whole of a file. Throws input_error when it cannot be read.
std::string read_text(const std::string& path);

/// The lines of a text, one after the other, without their ends (CRLF too). `text` must outlive it.
class text_lines {
 public:
  explicit text_lines(std::string_view text) noexcept : rest_(text) {}

  /// False behind the last line.
  bool next(std::string_view& line) noexcept;
  /// The number of the line that next() gave last, from 1.
  std::size_t number() const noexcept { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

/// Cuts a line at `delimiter`. A field in double quotes may hold it; "" stands for a quote there.
std::vector<std::string> split_fields(std::string_view line, char delimiter);

std::string_view trimmed(std::string_view text) noexcept;

bool ends_with(std::string_view text, std::string_view end) noexcept;

/// A number with thousands commas and, behind it, a unit: "1,234", "2648.443s", "40.7%", "3.4 GHz".
/// Times are given in seconds, frequencies in GHz. None where it is no number or the unit is not
/// known.
std::optional<double> number_in(std::string_view text);

/// The names of a table's columns.
class table_head {
 public:
  explicit table_head(std::vector<std::string> names) : names_(std::move(names)) {}

  std::optional<std::size_t> find(std::string_view name) const noexcept;
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_READ_TABLE_TEXT_HPP
