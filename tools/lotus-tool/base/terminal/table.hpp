// Figures for people: aligned columns, durations with a fitting unit.
#ifndef LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP
#define LOTUS_TOOL_BASE_TERMINAL_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {

/// A duration with three to four digits and its unit, "83.1 us"; exact 0 is "0".
std::string human_time(double ns);

/// A share (0..1) as per cent, "41.33 %". Only all is "100.00 %".
std::string human_share(double share);

/// "640 B", "1.25 MiB".
std::string human_bytes(double bytes);

/// How a table is read.
enum class table_form : std::uint8_t {
  columns,  ///< the first row is the head; columns that do not fit are left out
  blocks,   ///< likewise, but the columns stand below each other: each matters as much
  facts,    ///< no head: each row tells of what its first cell names
  rows,     ///< no head
};

/// Rows of text; the first column is aligned left, the others right. Where the stream's lines have
/// a bound (line_width()), the table keeps to it: columns are left out, which a line below tells,
/// and a name that is too long has a line of its own. Numbers always stay whole.
class table {
 public:
  explicit table(table_form form = table_form::columns) : form_(form) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Heads of columns in the order in which they are left out; the last ones follow.
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
