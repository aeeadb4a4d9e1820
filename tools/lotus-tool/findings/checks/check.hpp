// Checks a run for problems that make results of `lotus-tool diagnose` unreliable.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "describe/described.hpp"
#include "findings/checks/recorded_work.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A check that failed.
struct check {
  std::string_view id;  ///< identifier of the check, such as "unrecorded-work"
  std::string text;     ///< description of the problem for the user
  std::string to_do;    ///< advice on how to fix the problem
  bool unsafe = false;  ///< whether the problem prevents a verdict on the run
};

/// Returns the failed checks of a run; those that prevent a verdict come first. The checks consider
/// all batches, including those that --skip-batches leaves out of the statistics.
/// @param work  the result of look_at_work() for the same run.
std::vector<check> failed_checks(const run_data& run, const recorded_work& work);

/// The parts of the logs that a command must read before it can call failed_checks().
inline constexpr run_parts checked_parts{false, false, true};

/// Returns why there is no verdict: the texts of the failed checks that prevent one; "" if there
/// are none.
std::string why_silent(const std::vector<check>& failed);

const description<check>& description_of(const check*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_CHECK_HPP
