// Reads tables in text files of profilers: lines, fields, and numbers with units.
#ifndef LOTUS_TOOL_MAPPING_READ_TABLE_TEXT_HPP
#define LOTUS_TOOL_MAPPING_READ_TABLE_TEXT_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Returns the content of a file. Throws input_error if the file cannot be read.
std::string read_text(const std::string& path);

/// Iterates over the lines of a text, without their line ends (LF or CRLF). The text must outlive
/// this object.
class text_lines {
 public:
  explicit text_lines(std::string_view text) noexcept : rest_(text) {}

  /// Returns false after the last line.
  bool next(std::string_view& line) noexcept;
  /// Returns the number of the last line that next() returned; the first line is number 1.
  std::size_t number() const noexcept { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

/// Splits a line at `delimiter`. In a field in quotes, the delimiter is text, and "" is one quote.
std::vector<std::string> split_fields(std::string_view line, char delimiter);

std::string_view trimmed(std::string_view text) noexcept;

/// Reads a number that may have commas between thousands and a unit: "1,234", "2648.443s", "40.7%",
/// "3.4 GHz". Converts times to seconds and frequencies to GHz. Returns nullopt if the text is not
/// a number or the unit is unknown.
std::optional<double> number_in(std::string_view text);

/// Finds the columns of a table by their names.
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
