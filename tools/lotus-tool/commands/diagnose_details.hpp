// Prints what diagnose shows only with --details.
#ifndef LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP
#define LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP

#include <algorithm>
#include <array>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/screen/first_screen.hpp"

namespace lotus::tool {

/// The sums of the columns "on CPU", "waits for CPU" and "blocked" of a table.
class cpu_columns {
 public:
  void add(double running, double no_cpu, double blocked) {
    sums_[0].first += running;
    sums_[1].first += no_cpu;
    sums_[2].first += blocked;
  }

  /// Returns the headers of the two columns with the smallest sums. A narrow table omits these
  /// columns first.
  std::vector<std::string> smaller() const {
    auto columns = sums_;
    std::stable_sort(columns.begin(), columns.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return {columns[0].second, columns[1].second};
  }

 private:
  std::array<std::pair<double, const char*>, 3> sums_{
      {{0, "on CPU"}, {0, "waits for CPU"}, {0, "blocked"}}};
};

/// Prints everything that the first screen omits.
/// @param shown  the suggestions on the first screen.
void print_details(const diagnosis& d, const std::vector<shown_advice>& shown, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_DIAGNOSE_DETAILS_HPP
