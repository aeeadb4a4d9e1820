#include "base/terminal/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/colours.hpp"
#include "base/terminal/labels.hpp"
#include "base/terminal/line_width.hpp"

namespace lotus::tool {
namespace {

std::string fixed(double value, int decimals, std::string_view unit) {
  std::array<char, 64> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.*f ", decimals, value);
  return std::string(text.data(), static_cast<std::size_t>(n)) + std::string(unit);
}

/// A shorter name always stays in the line of its numbers.
constexpr std::size_t least_name = 24;
/// A longer name is not worth the columns that it displaces.
constexpr std::size_t most_name = 40;

void tell_left_out(std::ostream& out, const std::vector<std::string>& heads,
                   const std::vector<std::size_t>& columns) {
  std::string text;
  for (std::size_t c = 1; c < heads.size(); ++c) {
    const bool shown = std::find(columns.begin(), columns.end(), c) != columns.end();
    if (!shown && !heads[c].empty()) text += (text.empty() ? "" : ", ") + heads[c];
  }
  if (!text.empty()) out << fitted(out, "--wide also shows: " + text, "  ", "    ") << '\n';
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
  // A share below 1 must not be rounded to 100 %.
  const bool nearly = share < 1 && share >= 0.99995;
  return fixed(nearly ? 99.99 : share * 100, 2, "%");
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

/// Drops the columns given to spare() first, then the last ones, until a line fits; one column
/// of numbers stays. Before it drops other columns, a long name is moved to a line of its own.
void table::leave_out(places& columns, const places& widths, std::size_t room) const {
  const auto wide = [&](std::size_t name) {
    std::size_t sum = 2 + name;
    for (const std::size_t c : columns) sum += c == 0 ? 0 : 2 + widths[c];
    return sum;
  };
  for (const std::string& head : spare_) {
    if (wide(widths[0] > most_name ? least_name : widths[0]) <= room) return;
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](std::size_t c) { return rows_.front()[c] == head; });
    if (at != columns.end()) columns.erase(at);
  }
  while (columns.size() > 2 && wide(std::min(widths[0], least_name)) > room) columns.pop_back();
}

void table::print_columns(std::ostream& out, const lines& rows, const places& columns,
                          places widths, std::size_t room) const {
  std::size_t numbers = 0;
  for (const std::size_t c : columns) numbers += c == 0 ? 0 : 2 + widths[c];
  if (room > 0 && 2 + widths[0] + numbers > room) {
    const std::size_t left = room > 2 + numbers ? room - 2 - numbers : 0;
    widths[0] = std::min(widths[0], std::max(left, least_name));
  }
  for (const auto& row : rows) {
    std::string line = "  ";
    for (const std::size_t c : columns) {
      if (c >= row.size()) break;
      const std::size_t wide = columns_of(row[c]);
      const bool own_line = c == 0 && wide > widths[0];
      const std::string padding(own_line ? widths[0] : widths[c] - wide, ' ');
      if (own_line) {
        const bool numbered = std::any_of(row.begin() + 1, row.end(),
                                          [](const std::string& cell) { return !cell.empty(); });
        line += without_middle(row[c], room - 2);
        line += numbered ? "\n  " + padding : "";
      } else {
        line += c == 0 ? row[c] + padding : "  " + padding + row[c];
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    const bool is_head = form_ < table_form::facts && &row == &rows.front();
    out << (is_head ? styled(out, style::bold, line) : line) << '\n';
  }
}

void table::note_labels(std::ostream& out) const {
  if (form_ == table_form::facts) {
    for (const auto& row : rows_) note_label(out, row.front());
  } else if (form_ == table_form::blocks) {
    note_label(out, rows_.front().front());
  } else if (form_ == table_form::columns) {
    for (const std::string& head : rows_.front()) note_label(out, head);
  }
}

void table::print(std::ostream& out) const {
  if (rows_.empty()) return;
  note_labels(out);
  places widths;
  lines rows = rows_;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable_line(row[i]);
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  const std::size_t room = line_width(out);
  places columns(widths.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  while (true) {
    places shown = columns;
    if (room > 0) leave_out(shown, widths, room);
    print_columns(out, rows, shown, widths, room);
    if (form_ == table_form::columns) tell_left_out(out, rows.front(), shown);
    if (form_ != table_form::blocks || shown.size() == columns.size()) return;
    columns.erase(columns.begin() + 1, columns.begin() + static_cast<std::ptrdiff_t>(shown.size()));
    out << '\n';
  }
}

}  // namespace lotus::tool
