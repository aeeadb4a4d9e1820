// Puts the findings about one accelerator trace into words.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_WORDS_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_WORDS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/analysis.hpp"
#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Returns the verdict in one or two sentences, such as "copy-bound: the device waits …".
std::string accelerator_headline(const accelerator_analysis& of);

/// Returns what the user should change; "" if the accelerators are busy.
std::string accelerator_advice(const accelerator_analysis& of);

/// Returns where the time of the verdict lies, in one sentence; "" if there is none.
std::string places_text(const accelerator_analysis& of);

/// Returns a sentence for each kind of fault in the trace that was mended, or whose events were
/// left out.
std::vector<std::string> fault_notes(const trace_faults& faults);

/// Returns what limits the statement of the trace or is left out of it, in sentences.
std::vector<std::string> limit_notes(const accelerator_analysis& of);

/// Returns how many times as fast the devices would be at most without the cause of the verdict.
std::optional<double> at_most_times(const accelerator_analysis& of);

/// Returns bytes per nanosecond, which is the same as GB/s; nullopt if it is unknown.
std::optional<double> bandwidth(const copy_sum& copies);
std::string bandwidth_text(const copy_sum& copies);

/// Returns a share in whole percent, such as "12 %".
std::string share_text(std::int64_t ns, std::int64_t of_ns);
std::string time_text(std::int64_t ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_WORDS_HPP
