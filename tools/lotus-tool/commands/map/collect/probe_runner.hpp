// Runs a probe program once under one of the collectors.
#ifndef LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP
#define LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP

#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "lotus/base/environment.hpp"

namespace lotus::tool {

/// The sampling rates that a collector supports: any rate, rates with a whole number of ms between
/// samples, or only the usual rate.
enum class rates { any, whole_ms, only_usual };

struct probe_launch;
class probe_runner;

/// A collector that `map run` supports: the program that collects the data, and its abilities.
struct collector_kind {
  lotus::detail::collector_id collector;  ///< the collector that the library uses
  const char* name;                       ///< the name for --collector
  const char* program;   ///< the program that must be installed; null if no other program is needed
  double usual_rate_hz;  ///< usual sampling rate in Hz; 0 if the collector does not sample
  rates possible;
  bool one_operation_per_launch;  ///< whether its reports contain no names of operations
  void (probe_runner::*launch)(const probe_launch& launch);
};

/// Returns the sampling rate that a collector uses if the user asks for `asked_hz` (0: the usual
/// rate). Returns 0 if the collector does not sample.
double rate_used(const collector_kind& kind, double asked_hz);

/// Returns the time between two samples in units of 1/`unit_hz` seconds, rounded to whole units.
std::string interval_text(double rate_hz, double unit_hz);

std::string collector_names(std::string_view between);

/// Finds a collector by its name. Throws usage_error if the name is unknown.
const collector_kind& find_collector_kind(const std::string& name);

/// Describes one launch of the probe, which is the program to profile. Paths are absolute or
/// relative to the current directory.
struct probe_launch {
  std::vector<std::string> program;
  double rate_hz = 0;
  std::string op;      ///< name of the operation to collect; empty: all operations
  std::string folder;  ///< existing folder for the raw data
  /// Path of the report to create, for collectors whose raw data is not a report.
  std::string report;
};

class probe_runner {
 public:
  /// @param err  receives the messages that Lotus prints in the probe program, each only once. This
  ///   stream must outlive the probe_runner.
  probe_runner(const collector_kind& kind, std::ostream& err) : kind_(kind), err_(err) {}

  /// Runs the probe program once under the collector and creates the report. Throws input_error.
  void run(const probe_launch& launch);

  /// Whether Lotus has printed a message in a probe, which may explain a missing report.
  bool has_reported() const noexcept { return !reported_.empty(); }

  /// Returns the names of all regions in order of appearance. Runs the probe once without
  /// collecting. Throws input_error if the probe has no region.
  std::vector<std::string> regions(const std::vector<std::string>& program,
                                   const std::string& folder);

  /// These functions run the probe under one collector each; only run() calls them.
  void run_builtin(const probe_launch& launch);
  void run_perf(const probe_launch& launch);
  void run_callgrind(const probe_launch& launch);
  void run_vtune(const probe_launch& launch);
  void run_uprof(const probe_launch& launch);

 private:
  command probe_command(const probe_launch& launch, bool logged = true) const;
  void execute(const command& what, const std::string& who);
  void report_messages(const std::string& output);

  const collector_kind& kind_;
  std::ostream& err_;
  std::set<std::string> reported_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP
