// A finding: one statement about a run, with its evidence and what to do about it.
#ifndef LOTUS_TOOL_FINDINGS_FINDING_HPP
#define LOTUS_TOOL_FINDINGS_FINDING_HPP

#include <optional>
#include <string_view>
#include <vector>

#include "findings/verdict.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

struct run_facts;

struct finding {
  std::string_view id;          ///< identifier in JSON, such as "wait-contains-work"
  std::optional<verdict> is{};  ///< what it says limits the run; nullopt: it only explains
  double share = 0;             ///< share (0..1) of the run's time that it explains
  phrase because;               ///< the evidence
  phrase to_do{};               ///< one change
  /// Whether its evidence takes the place of what the simulation would say about the verdict.
  bool instead = false;
  /// Whether more threads cannot help while this holds.
  bool no_more_threads = false;
  /// Whether waits for a CPU have this cause, so that other programs are not to blame.
  bool explains_cpu_waits = false;
};

/// A rule looks at the facts of a run. It returns nothing unless they show what it is about.
using finding_rule = std::optional<finding> (*)(const run_facts& facts);

/// All rules, in the order in which their findings are printed.
const std::vector<finding_rule>& finding_rules();

/// Returns the findings about a run.
std::vector<finding> find_all(const run_facts& facts);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FINDING_HPP
