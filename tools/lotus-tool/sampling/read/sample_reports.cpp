#include "sampling/read/sample_reports.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "mapping/read/function_report.hpp"
#include "sampling/read/sample_files.hpp"
#include "sampling/read/symbols.hpp"

namespace lotus::tool {
namespace {

/// Returns the index of the innermost region (block of a LOTUS_MAP_REGION) to which a sample
/// belongs; regions.size() if there is none. If the sample's thread has regions, only these are
/// searched, otherwise the regions of all threads.
std::size_t region_of(const sample& s, const std::vector<sampled_region>& regions,
                      const std::set<std::uint32_t>& threads_with_regions) {
  const bool has_own = threads_with_regions.count(s.tid) != 0;
  // The first region found is the innermost one: regions are sorted by their ends, and inner ones
  // end first.
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const sampled_region& r = regions[i];
    if (has_own && s.tid != r.tid) continue;
    if (s.time_ns >= r.begin_ns && s.time_ns <= r.end_ns) return i;
  }
  return regions.size();
}

}  // namespace

reports_by_op read_sample_reports(const std::string& path, diagnostic_log& diagnostics) {
  const samples_file file = read_samples(path, diagnostics);
  symbol_source symbols(diagnostics);
  std::vector<function_report> reports(file.regions.size());
  std::set<std::uint32_t> threads_with_regions;
  for (const sampled_region& r : file.regions) threads_with_regions.insert(r.tid);
  for (const sample& s : file.samples) {
    const std::size_t region = region_of(s, file.regions, threads_with_regions);
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
