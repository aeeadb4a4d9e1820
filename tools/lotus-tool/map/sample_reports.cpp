#include "map/sample_reports.hpp"

#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "map/function_report.hpp"
#include "map/samples.hpp"
#include "map/symbols.hpp"

namespace lotus::tool {
namespace {

/// The region that a sample belongs to: one of its own thread rather than of another. The number
/// of regions when there is none.
std::size_t region_of(const sample& s, const std::vector<sampled_region>& regions) {
  std::size_t found = regions.size();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const sampled_region& r = regions[i];
    if (s.time_ns < r.begin_ns || s.time_ns > r.end_ns) continue;
    if (s.tid == r.tid) return i;
    found = i;
  }
  return found;
}

}  // namespace

reports_by_op read_sample_reports(const std::string& path, diagnostics& said) {
  const samples_file file = read_samples(path, said);
  symbol_source symbols(said);
  std::vector<function_report> reports(file.regions.size());
  for (const sample& s : file.samples) {
    const std::size_t region = region_of(s, file.regions);
    if (region == file.regions.size()) continue;
    const code_place place = place_of(s, file, symbols);
    reports[region].add(place.function, place.module, 1);
    if (!place.inlined.empty()) {
      reports[region].inlined[function_key(place.function, place.module)][place.inlined] += 1;
    }
  }
  reports_by_op result;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    reports[i].unit = "samples";
    result.emplace(file.regions[i].op, std::move(reports[i]));
  }
  return result;
}

}  // namespace lotus::tool
