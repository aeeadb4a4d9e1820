// Figures for people: aligned columns, durations with a fitting unit.
#ifndef LOTUS_TOOL_BASE_TABLE_HPP
#define LOTUS_TOOL_BASE_TABLE_HPP

#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {

/// A duration with three to four digits and its unit, "83.1 us"; exact 0 is "0".
std::string human_time(double ns);

/// A share (0..1) as per cent, "41.33 %".
std::string human_share(double share);

/// "640 B", "1.25 MiB".
std::string human_bytes(double bytes);

/// Rows of text; the first column is aligned left, the others right. The first row is the head.
class table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TABLE_HPP
