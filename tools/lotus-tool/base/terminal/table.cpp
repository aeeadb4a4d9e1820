#include "base/terminal/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"

namespace lotus::tool {
namespace {

/// Formats `value` like printf("%.*f"), but faster. Returns "" if the value is large or negative,
/// has more than three decimals, or if a rounding error could change the last digit; the caller
/// then uses snprintf().
std::string_view digits_of(double value, int decimals, std::array<char, 64>& text) noexcept {
  constexpr double powers[] = {1, 10, 100, 1000};
  if (std::signbit(value) || !(value < 1e6) || decimals > 3) return {};
  // The rounding error of `scaled` is below 1e-7. Unless `rest` is close to 0.5, this error cannot
  // change whether `value` is rounded up or down.
  const double scaled = value * powers[decimals];
  auto whole = static_cast<std::uint64_t>(scaled);
  const double rest = scaled - static_cast<double>(whole);
  if (std::abs(rest - 0.5) < 1e-6) return {};
  if (rest > 0.5) ++whole;
  char* p = text.data() + text.size();
  char* const end = p;
  for (int i = 0; i < decimals; ++i, whole /= 10) *--p = static_cast<char>('0' + whole % 10);
  if (decimals > 0) *--p = '.';
  do {
    *--p = static_cast<char>('0' + whole % 10);
    whole /= 10;
  } while (whole > 0);
  return {p, static_cast<std::size_t>(end - p)};
}

std::string fixed(double value, int decimals, std::string_view unit) {
  return fixed_point(value, decimals).append(1, ' ').append(unit);
}

/// Names in the first column that are at most this wide are always printed on the same line as the
/// numbers of their row.
constexpr std::size_t min_name = 24;
/// If lines would be too wide, a name that is wider than this is printed on a line of its own. This
/// leaves more width for the columns that were given to spare().
constexpr std::size_t max_name = 40;

/// Whether the text contains only printable ASCII characters, each of which takes one column.
bool is_printable_ascii(const std::string& text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// Returns the same as columns_of(), but faster for plain text.
std::size_t wide_of(const std::string& text) {
  return is_printable_ascii(text) ? text.size() : columns_of(text);
}

/// Returns the position of the blank at which to split a name that is wider than its column. The
/// end of the name, indented by 2, is then printed before the numbers. Prefers the last blank after
/// a comma, otherwise the blank with the longest end that fits the column. Returns npos if no end
/// fits, or if the name is that of a function, which has a '|'.
std::size_t split_of(const std::string& name, std::size_t column) {
  if (name.find('|') != std::string::npos) return std::string::npos;
  std::size_t found = std::string::npos;
  for (std::size_t at = name.rfind(' '); at != std::string::npos && at > 0;
       at = name.rfind(' ', at - 1)) {
    if (2 + wide_of(name.substr(at + 1)) > column) break;
    if (name[at - 1] == ',') return at;
    found = at;
  }
  return found;
}

/// Prints the names of columns that the table omits: as many as fit on one line.
void report_left_out(std::ostream& out, const std::vector<std::string>& heads,
                     const std::vector<std::size_t>& columns) {
  std::vector<std::string> left_out;
  for (std::size_t c = 1; c < heads.size(); ++c) {
    const bool shown = std::find(columns.begin(), columns.end(), c) != columns.end();
    if (!shown && !heads[c].empty()) left_out.push_back(heads[c]);
  }
  if (left_out.empty()) return;
  const std::string_view more = ", ...";
  const auto quoted = [](const std::string& head) { return '\'' + head + '\''; };
  std::string text = "  --wide also shows " + quoted(left_out.front());
  for (std::size_t i = 1; i < left_out.size(); ++i) {
    const std::size_t rest = i + 1 < left_out.size() ? more.size() : 0;
    if (columns_of(text) + 4 + columns_of(left_out[i]) + rest > line_width(out)) {
      text += more;
      break;
    }
    text += ", " + quoted(left_out[i]);
  }
  out << text << '\n';
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
  // A share below 1 must not be shown as 100 %.
  const bool nearly = share < 1 && share >= 0.99995;
  return fixed(nearly ? 99.99 : share * 100, 2, "%");
}

std::string whole_percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

std::string fixed_point(double value, int decimals) {
  std::array<char, 64> text{};
  const std::string_view digits = digits_of(value, decimals, text);
  if (!digits.empty()) return std::string(digits);
  const int n = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<std::size_t>(n)};
}

std::string significant(double value, int digits) {
  std::array<char, 32> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return {text.data(), static_cast<std::size_t>(n)};
}

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "any number of";
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return value >= 1000 ? std::to_string(std::llround(value)) : text.str();
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

/// Removes columns until a line is at most `room` wide, but keeps at least one column of numbers.
/// First removes the columns given to spare(); in this step, names wider than max_name may get
/// lines of their own, so the first column then counts as min_name wide. If the lines are still too
/// wide, removes columns from the right; in this step, all names wider than min_name get lines of
/// their own.
void table::leave_out(column_list& columns, const column_list& widths, std::size_t room) const {
  const auto wide = [&](std::size_t name) {
    std::size_t sum = 2 + name;
    for (const std::size_t c : columns) sum += c == 0 ? 0 : 2 + widths[c];
    return sum;
  };
  for (const std::string& head : spare_) {
    if (wide(widths[0] > max_name ? min_name : widths[0]) <= room) return;
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](std::size_t c) { return rows_.front()[c] == head; });
    if (at != columns.end()) columns.erase(at);
  }
  while (columns.size() > 2 && wide(std::min(widths[0], min_name)) > room) columns.pop_back();
}

/// Calls `on_row(const cells&, bool is_first)` with cells in which control characters are replaced,
/// so that they are safe to print on a terminal.
template <class OnRow>
void table::for_each_row(OnRow&& on_row) const {
  for (std::size_t i = 0; i < rows_.size() + more_; ++i) {
    cells row = i < rows_.size() ? rows_[i] : row_at_(i - rows_.size());
    for (std::string& cell : row) {
      if (!is_printable_ascii(cell)) cell = printable_line(cell);
    }
    on_row(row, i == 0);
  }
}

void table::print_columns(std::ostream& out, const column_list& columns, column_list widths,
                          std::size_t room) const {
  std::size_t numbers = 0;
  for (const std::size_t c : columns) numbers += c == 0 ? 0 : 2 + widths[c];
  if (room > 0 && 2 + widths[0] + numbers > room) {
    const std::size_t left = room > 2 + numbers ? room - 2 - numbers : 0;
    widths[0] = std::min(widths[0], std::max(left, min_name));
  }
  std::string line;
  for_each_row([&](const cells& row, bool is_first) {
    line = "  ";
    for (const std::size_t c : columns) {
      if (c >= row.size()) break;
      const std::size_t wide = wide_of(row[c]);
      const bool own_line = c == 0 && wide > widths[0];
      if (own_line) {
        const bool numbered = std::any_of(row.begin() + 1, row.end(),
                                          [](const std::string& cell) { return !cell.empty(); });
        const std::size_t split = numbered ? split_of(row[c], widths[0]) : std::string::npos;
        if (split != std::string::npos) {
          const std::string end = "  " + row[c].substr(split + 1);
          line += without_middle(row[c].substr(0, split), room - 2) + "\n  " + end;
          line.append(widths[0] - wide_of(end), ' ');
        } else {
          line += without_middle(row[c], room - 2);
          line += numbered ? "\n  " + std::string(widths[0], ' ') : "";
        }
      } else {
        if (c > 0) line += "  ";
        if (c > 0) line.append(widths[c] - wide, ' ');
        line += row[c];
        if (c == 0) line.append(widths[c] - wide, ' ');
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (is_first && form_ < table_form::facts) {
      out << styled(out, style::bold, line) << '\n';
    } else {
      line += '\n';
      out << line;
    }
  });
}

void table::note_labels(std::ostream& out) const {
  for (const auto& row : rows_) {
    if (std::find(row.begin(), row.end(), "-") != row.end()) note_label(out, "-");
  }
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
  column_list widths;
  for_each_row([&widths](const cells& row, bool) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], wide_of(row[i]));
  });
  const std::size_t room = line_width(out);
  column_list columns(widths.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  while (true) {
    column_list shown = columns;
    if (room > 0) leave_out(shown, widths, room);
    print_columns(out, shown, widths, room);
    if (form_ == table_form::columns) report_left_out(out, rows_.front(), shown);
    if (form_ != table_form::blocks || shown.size() == columns.size()) return;
    columns.erase(columns.begin() + 1, columns.begin() + static_cast<std::ptrdiff_t>(shown.size()));
    out << '\n';
  }
}

}  // namespace lotus::tool
