// One launch of a probe program under each of the collectors.
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

/// Which rates a collector can be asked for.
enum class rates { any, whole_ms, only_usual };

struct probe_launch;
class probe_runner;

/// What the programs that collect differ in.
struct collector_kind {
  lotus::detail::collector_id collector;  ///< that the library is to use
  const char* name;                       ///< as --collector takes it
  const char* program;                    ///< that must be installed; null for none
  double usual_rate_hz;                   ///< 0: does not sample
  rates possible;
  bool one_op_a_launch;  ///< its reports do not tell operations apart
  void (probe_runner::*launch)(const probe_launch& launch);
};

/// The rate that a collector samples at when it is asked for this one, 0 for the usual; 0 where it
/// does not sample.
double rate_used(const collector_kind& kind, double asked_hz);

/// The time between two samples in units of which there are so many a second: a whole number.
std::string interval_text(double rate_hz, double unit_hz);

/// The names of all, with `between` between them.
std::string collector_names(std::string_view between);

/// Throws usage_error for a name that is not known.
const collector_kind& find_collector_kind(const std::string& name);

/// A launch, its places fixed. Paths are absolute or relative to the current directory.
struct probe_launch {
  std::vector<std::string> program;
  double rate_hz = 0;
  std::string op;      ///< empty: all regions
  std::string folder;  ///< where raw data go; exists
  std::string report;  ///< the report to be made, of collectors whose raw data are none
};

class probe_runner {
 public:
  /// @param err  gets the library's own messages, each once; must outlive this.
  probe_runner(const collector_kind& kind, std::ostream& err) : kind_(kind), err_(err) {}

  /// Runs the probe once under the collector and makes the report. Throws input_error.
  void run(const probe_launch& launch);

  /// Whether the library has said something.
  bool has_told() const noexcept { return !told_.empty(); }

  /// The names of all regions, in order of appearance. Runs the probe once, uncollected.
  /// Throws input_error when there is none.
  std::vector<std::string> regions(const std::vector<std::string>& program,
                                   const std::string& folder);

  /// How each collector runs the probe; to be called by run() only.
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
