// Runs a probe program once under one of the collectors.
#ifndef LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP
#define LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP

#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "lotus/base/environment.hpp"

namespace lotus::tool {

/// The sampling rates that a collector supports.
enum class rates { any, whole_ms, only_usual };

struct probe_launch;
class probe_runner;

/// How the collecting programs differ.
struct collector_kind {
  lotus::detail::collector_id collector;  ///< the collector that the library uses
  const char* name;                       ///< the name for --collector
  const char* program;   ///< the program that must be installed; null if none is needed
  double usual_rate_hz;  ///< 0: does not sample
  rates possible;
  bool one_op_a_launch;  ///< its reports do not distinguish operations
  void (probe_runner::*launch)(const probe_launch& launch);
};

/// The rate at which a collector samples if `asked_hz` is requested; 0 requests the usual rate.
/// Returns 0 if it does not sample.
double rate_used(const collector_kind& kind, double asked_hz);

/// The time between two samples as a whole number of units; there are `unit_hz` units per second.
std::string interval_text(double rate_hz, double unit_hz);

/// The names of all collectors, separated by `between`.
std::string collector_names(std::string_view between);

/// Throws usage_error if the name is unknown.
const collector_kind& find_collector_kind(const std::string& name);

/// One launch and its paths, which are absolute or relative to the current directory.
struct probe_launch {
  std::vector<std::string> program;
  double rate_hz = 0;
  std::string op;      ///< empty: all regions
  std::string folder;  ///< existing folder for the raw data
  std::string report;  ///< the report to create, for collectors whose raw data is not a report
};

class probe_runner {
 public:
  /// @param err  receives the library's own messages, each once; must outlive this object.
  probe_runner(const collector_kind& kind, std::ostream& err) : kind_(kind), err_(err) {}

  /// Runs the probe once under the collector and creates the report. Throws input_error.
  void run(const probe_launch& launch);

  /// Whether the library has printed any message.
  bool has_told() const noexcept { return !told_.empty(); }

  /// The names of all regions in order of appearance. Runs the probe once, without collecting.
  /// Throws input_error if there is no region.
  std::vector<std::string> regions(const std::vector<std::string>& program,
                                   const std::string& folder);

  /// How each collector runs the probe; called only by run().
  void run_builtin(const probe_launch& launch);
  void run_perf(const probe_launch& launch);
  void run_callgrind(const probe_launch& launch);
  void run_vtune(const probe_launch& launch);
  void run_uprof(const probe_launch& launch);

 private:
  command probe_command(const probe_launch& launch, bool logged = true) const;
  void execute(const command& what, const std::string& who);
  void tell_messages(const std::string& output);

  const collector_kind& kind_;
  std::ostream& err_;
  std::set<std::string> told_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_COLLECT_PROBE_RUNNER_HPP
