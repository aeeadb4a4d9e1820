#include "commands/map/mapping_print.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>

#include "base/formats/csv.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {
namespace {

std::string six_digits(double value) {
  std::array<char, 32> text{};
  const int n = std::snprintf(text.data(), text.size(), "%.6g", value);
  return {text.data(), static_cast<std::size_t>(n)};
}

}  // namespace

std::string shortened(const std::string& name) {
  constexpr std::size_t most = 90;
  if (name.size() <= most) return name;
  return name.substr(0, most / 2) + "..." + name.substr(name.size() - most / 2);
}

void print_mapping(const mapping& m, std::ostream& out) {
  std::string_view before;
  for (const auto& [name, op] : m.ops) {
    out << before << printable_line(name) << " (" << op.runs << (op.runs == 1 ? " run" : " runs")
        << ")\n";
    before = "\n";
    table functions;
    functions.row({"function|module", "seen in runs",
                   op.unit.empty() ? (m.unit.empty() ? "value" : m.unit) : op.unit, "share"});
    for (const std::string& function : by_share(op)) {
      const function_use& use = op.functions.at(function);
      functions.row({shortened(function), std::to_string(use.hits), six_digits(use.samples),
                     human_share(use.share)});
      for (const auto& [inner, samples] : use.inlined) {
        functions.row({"  inlined: " + shortened(inner), "", six_digits(samples), ""});
      }
    }
    if (op.functions.empty()) {
      out << "  no samples\n";
    } else {
      functions.print(out);
    }
  }
  if (m.partial) {
    out << "\nShares are of the listed functions: the reports leave out smaller ones.\n";
  }
}

void print_mapping_csv(const mapping& m, std::ostream& out) {
  out << "op,function,module,hits,runs,samples,share\n";
  for (const auto& [name, op] : m.ops) {
    for (const std::string& function : by_share(op)) {
      const function_use& use = op.functions.at(function);
      const std::size_t bar = function.rfind('|');
      out << csv_field(name) << ',' << csv_field(function.substr(0, bar)) << ','
          << csv_field(function.substr(bar + 1)) << ',' << use.hits << ',' << op.runs << ','
          << json_number(use.samples) << ',' << json_number(use.share) << '\n';
    }
  }
}

}  // namespace lotus::tool
