// Checks for conditions that make conclusions about a run unreliable.
#ifndef LOTUS_TOOL_VERDICT_CHECK_HPP
#define LOTUS_TOOL_VERDICT_CHECK_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"
#include "verdict/recorded_work.hpp"

namespace lotus::tool {

/// A check that failed.
struct check {
  std::string_view id;  ///< "unrecorded-work" and so on
  std::string text;     ///< what is wrong, in plain words
  std::string to_do;    ///< how to fix it
  bool unsafe = false;  ///< no verdict can be drawn from this run
};

/// Returns the failed checks of a run, unsafe ones first. They consider all batches, including
/// skipped ones.
/// @param work  of the same run.
std::vector<check> failed_checks(const run_data& run, const recorded_work& work);

/// The minimum that a command must read to run the checks.
inline constexpr run_parts checked_parts{false, false, true};

/// Why there is no verdict: the text of the unsafe checks. "" if none is unsafe.
std::string why_silent(const std::vector<check>& failed);

/// [{"id":…,"text":…,"unsafe":…}], where "text" also contains the advice.
void write_checks(json_writer& json, const std::vector<check>& failed);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_CHECK_HPP
