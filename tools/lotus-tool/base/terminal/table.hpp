// Prints numbers for people: aligned columns, and durations with a suitable unit.
#ifndef LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP
#define LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {

/// A duration with three to four digits and its unit, such as "83.1 us"; exactly 0 is "0".
std::string human_time(double ns);

/// A share (0..1) as a percentage, such as "41.33 %". Only a share of 1 is shown as "100.00 %".
std::string human_share(double share);

/// A number of bytes, such as "640 B" or "1.25 MiB".
std::string human_bytes(double bytes);

/// How a table is laid out.
enum class table_form : std::uint8_t {
  columns,  ///< the first row is the head; columns that do not fit are left out
  blocks,   ///< likewise, but columns that do not fit follow in further blocks below
  facts,    ///< no head: the first cell of each row names what the row is about
  rows,     ///< no head
};

/// Rows of text; the first column is aligned left, the others right. If the stream has a line width
/// (line_width()), the table observes it: columns are left out, which a line below the table
/// reports, and a name that is too long gets a line of its own. Numbers are never cut.
class table {
 public:
  explicit table(table_form form = table_form::columns) : form_(form) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Heads of the columns to leave out first, in this order; after them the last columns are left
  /// out.
  void spare(std::vector<std::string> heads) { spare_ = std::move(heads); }
  void print(std::ostream& out) const;

 private:
  using lines = std::vector<std::vector<std::string>>;
  using places = std::vector<std::size_t>;

  void leave_out(places& columns, const places& widths, std::size_t room) const;
  void print_columns(std::ostream& out, const lines& rows, const places& columns, places widths,
                     std::size_t room) const;
  void note_labels(std::ostream& out) const;

  table_form form_;
  lines rows_;
  std::vector<std::string> spare_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP
