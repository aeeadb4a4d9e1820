#include "mapping/read_reports.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/text.hpp"
#include "mapping/read/callgrind_reports.hpp"
#include "mapping/read/function_report.hpp"
#include "mapping/read/table_text.hpp"
#include "mapping/read/vendor_reports.hpp"
#include "sampling/read/sample_files.hpp"
#include "sampling/read/sample_reports.hpp"

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
