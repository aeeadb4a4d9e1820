#include "base/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/colours.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

std::string fixed(double value, int decimals, std::string_view unit) {
  std::array<char, 64> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.*f ", decimals, value);
  return std::string(text.data(), static_cast<std::size_t>(n)) + std::string(unit);
}

/// Columns that a UTF-8 text takes on a terminal, if no character is wide.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

std::string human_time(double ns) {
  const double size = std::abs(ns);
  if (size == 0) return "0";
  const auto with = [ns, size](double unit_ns, std::string_view unit) {
    const double value = size / unit_ns;
    return fixed(ns / unit_ns, value < 10 ? 3 : value < 100 ? 2 : 1, unit);
  };
  if (size < 1e3) return fixed(ns, 0, "ns");
  if (size < 1e6) return with(1e3, "us");
  if (size < 1e9) return with(1e6, "ms");
  return with(1e9, "s");
}

std::string human_share(double share) {
  return fixed(share * 100, 2, "%");
}

std::string human_bytes(double bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  const double size = std::abs(value);
  const bool whole = unit == 0 && value == std::round(value);
  return fixed(value, whole || size >= 100 ? 0 : size < 10 ? 2 : 1, units[unit]);
}

void table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable_line(row[i]);
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += i == 0 ? "  " + row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    const bool is_head = &row == &rows.front();
    out << (is_head ? styled(out, style::bold, line) : line) << '\n';
  }
}

}  // namespace lotus::tool
