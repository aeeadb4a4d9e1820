// Prints numbers for people: aligned columns, and durations with a suitable unit.
#ifndef LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP
#define LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Returns a duration with three to four digits and its unit, such as "83.1 us"; "0" for 0 ns.
std::string human_time(double ns);
inline std::string human_time(std::int64_t ns) {
  return human_time(static_cast<double>(ns));
}

/// Returns a share (0..1) as a percentage, such as "41.33 %". The result is "100.00 %" only if the
/// share is exactly 1; a smaller share is not rounded up to it.
std::string human_share(double share);

/// Returns a share (0..1) as a whole percentage, such as "41 %".
std::string whole_percent(double share);

/// Returns a number of bytes, such as "640 B" or "1.25 MiB".
std::string human_bytes(double bytes);

/// Formats a value with three significant digits; a value of 1000 or more as a whole number.
std::string three_digits(double value);

/// Formats a value like printf("%.*f").
std::string fixed_point(double value, int decimals);

/// Formats a value like printf("%.*g").
std::string significant(double value, int digits);

enum class table_form : std::uint8_t {
  columns,  ///< the first row contains column heads; columns that do not fit are left out
  blocks,   ///< the first row contains column heads; columns that do not fit follow in a new block
  facts,    ///< no column heads: the first cell of each row is the label of the row
  rows,     ///< no column heads and no row labels
};

/// Rows of text; the first column is aligned left, the others right. If lines would be wider than
/// line_width() of the stream, the table prints long names on lines of their own and leaves out
/// columns; a line below the table then names the columns that were left out. Numbers are never
/// cut.
class table {
 public:
  explicit table(table_form form = table_form::columns) : form_(form) {}

  using cells = std::vector<std::string>;

  void row(cells of) { rows_.push_back(std::move(of)); }
  /// Adds `count` rows after those added with row(). The table does not store these rows: it calls
  /// `row_at(i)` whenever it needs the i-th of them, so even a million such rows take no memory.
  void more_rows(std::size_t count, std::function<cells(std::size_t)> row_at) {
    more_ = count;
    row_at_ = std::move(row_at);
  }
  /// If lines are too wide, print() leaves out columns. It first leaves out the columns with these
  /// heads, in this order, and then columns from the right.
  void spare(std::vector<std::string> heads) { spare_ = std::move(heads); }
  void print(std::ostream& out) const;

 private:
  using column_list = std::vector<std::size_t>;

  void leave_out(column_list& columns, const column_list& widths, std::size_t room) const;
  void print_columns(std::ostream& out, const column_list& columns, column_list widths,
                     std::size_t room) const;
  template <class OnRow>
  void for_each_row(OnRow&& on_row) const;
  void note_labels(std::ostream& out) const;

  table_form form_;
  std::vector<cells> rows_;
  std::size_t more_ = 0;
  std::function<cells(std::size_t)> row_at_;
  std::vector<std::string> spare_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP
