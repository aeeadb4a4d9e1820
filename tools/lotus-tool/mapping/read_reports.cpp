#include "mapping/read_reports.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "mapping/read/callgrind_reports.hpp"
#include "mapping/read/table_text.hpp"
#include "mapping/read/vendor_reports.hpp"
#include "sampling/read/sample_files.hpp"
#include "sampling/read/symbols.hpp"

namespace lotus::tool {
namespace {

function_report instructions_of(const callgrind_profile& profile) {
  function_report report;
  report.unit = profile.events.empty() ? "Ir" : profile.events.front();
  for (const auto& [key, counts] : profile.functions) {
    if (!counts.empty()) {
      report.add(key.first, key.second, static_cast<double>(counts.front()));
    }
  }
  return report;
}

/// Whether a name has the form of a log's name with any prefix: "…_main_pid_12" or
/// "…_worker_pid_12". Reports have other names, even if they contain a process id.
bool is_any_log_name(std::string_view name) noexcept {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == name.size()) return false;
  name = name.substr(0, last + 1);
  return ends_with(name, "_main_pid_") || ends_with(name, "_worker_pid_");
}

/// Returns the table of the event that best measures time. Different events cannot be added, so the
/// other tables are ignored.
function_report time_of(const std::string& path, std::vector<perf_table> tables,
                        diagnostic_log& diagnostics) {
  if (tables.empty()) {
    function_report nothing;
    nothing.unit = "samples";
    return nothing;
  }
  std::vector<std::string> events;
  events.reserve(tables.size());
  for (const perf_table& table : tables) events.push_back(table.event);
  const std::size_t chosen = index_of_time_event(events);
  if (tables.size() > 1)
    diagnostics.note(path + ": contains several events; " + events[chosen] + " is used");
  return std::move(tables[chosen].report);
}

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

/// Reads a file of samples. A sample counts for the innermost region during which it was taken; for
/// a thread with regions, only this thread's regions count. Samples outside of all regions are
/// ignored. Throws input_error.
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

}  // namespace

bool is_report_name(std::string_view name) noexcept {
  if (name.empty() || is_any_log_name(name)) return false;
  if (name.front() == '.') return is_samples_name(name);
  return !ends_with(name, ".json");
}

reports_by_op read_reports(const std::string& path, diagnostic_log& diagnostics) {
  if (is_samples_file(path)) return read_sample_reports(path, diagnostics);
  const std::string text = read_text(path);
  reports_by_op reports;
  if (looks_like_callgrind(text)) {
    for (const callgrind_profile& profile : read_callgrind(path, text)) {
      reports.emplace(profile.operation, instructions_of(profile));
    }
  } else if (looks_like_uprof(text)) {
    reports.emplace("", read_uprof(path, text));
  } else if (looks_like_perf(text)) {
    reports.emplace("", time_of(path, read_perf(path, text), diagnostics));
  } else if (looks_like_vtune(text)) {
    reports.emplace("", read_vtune(path, text));
  } else {
    diagnostics.warning(path +
                        ": ignored: not a known report: VTune's or uProf's CSV, perf report -t "
                        "'|', callgrind's profile, samples of the built-in collector");
  }
  return reports;
}

}  // namespace lotus::tool
