// What could make a conclusion about a run wrong, each as a value.
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
  std::string to_do;    ///< what to do about it
  bool unsafe = false;  ///< no verdict may rest on this run
};

/// The checks of a run that failed, unsafe ones first. They see all batches, skipped ones too.
/// @param work  of the same run.
std::vector<check> failed_checks(const run_data& run, const recorded_work& work);

/// What a command that shows checks reads, or more.
inline constexpr run_parts checked_parts{false, false, true};

/// Why there is no verdict: what the unsafe ones say. "" where none is unsafe.
std::string why_silent(const std::vector<check>& failed);

/// [{"id":…,"text":…,"unsafe":…}]: text and advice in one.
void write_checks(json_writer& json, const std::vector<check>& failed);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_CHECK_HPP
