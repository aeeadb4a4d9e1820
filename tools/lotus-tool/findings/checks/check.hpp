// Checks a run for problems that make results of `lotus-tool diagnose` unreliable.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP

#include <string>
#include <string_view>
#include <vector>

#include "describe/described.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A check that failed. Its texts have no final period.
struct check {
  std::string_view id;  ///< identifier of the check, such as "unrecorded-work"
  phrase text;          ///< what is wrong
  phrase to_do;
  bool unsafe = false;  ///< whether the problem prevents a verdict on the run
};

/// Returns the failed checks of a run; those that prevent a verdict come first. The checks consider
/// all batches, including those that --skip-batches leaves out of the statistics.
/// @param work  the result of look_at_work() for the same run.
std::vector<check> failed_checks(const run_data& run, const recorded_work& work);

/// The parts of the logs that a command must read before it can call failed_checks().
inline constexpr run_parts checked_parts{false, false, true};

/// Returns why there is no verdict: what the failed checks found that prevents one, or else why
/// there can be none without other markers. Empty if there can be one.
phrase why_silent(const run_data& run, const std::vector<check>& failed);

/// Returns why there can be no verdict on a run without failed checks: the run has no batches or no
/// consumer, and the sentence names the two macros to add. Empty if it has both.
phrase why_no_pipeline(const run_data& run);

/// Returns a line such as "warning [short]: only 3 batches were recorded".
std::string shown(const check& failed);

const description<check>& description_of(const check*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP
