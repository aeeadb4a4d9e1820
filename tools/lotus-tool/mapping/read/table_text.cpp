#include "mapping/read/table_text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <system_error>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace lotus::tool {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  // Use read(), which only sets a flag if reading fails, for example because the path is a folder.
  // A stream iterator would throw an exception.
  for (std::array<char, 1U << 16U> part{}; in.read(part.data(), part.size()) || in.gcount() > 0;) {
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) throw input_error(path + ": cannot be read: " + error_text(errno));
  return text;
}

bool text_lines::next(std::string_view& line) noexcept {
  if (rest_.empty()) return false;
  line = take(rest_, '\n');
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

std::vector<std::string> split_fields(std::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == delimiter) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<double> number_in(std::string_view text) {
  // VTune writes times with the units m, s and ms (see its user guide, "Choosing Data Format").
  static const std::map<std::string_view, double> scales{
      {"", 1},           {"%", 1},          {"s", 1},      {"ms", 1e-3}, {"us", 1e-6},
      {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6}, {"ns", 1e-9},  {"m", 60},    {"min", 60},
      {"h", 3600},       {"GHz", 1},        {"MHz", 1e-3},
  };
  std::string digits(trimmed(text));
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  double value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  // from_chars() also accepts "nan" and "inf", which would make every sum useless.
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  const auto scale = scales.find(trimmed({end, static_cast<std::size_t>(last - end)}));
  if (scale == scales.end()) return std::nullopt;
  return value * scale->second;
}

std::optional<std::size_t> table_head::find(std::string_view name) const noexcept {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names_.begin());
}

}  // namespace lotus::tool
