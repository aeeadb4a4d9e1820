// Puts the analyses of the traces of one or several ranks into words and tables.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP

#include <cstdint>
#include <ostream>
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

/// Returns a text such as "12.3 GB/s"; "-" if it is unknown.
std::string bandwidth_text(const copy_sum& copies);

/// Returns a share in whole percent, such as "12 %".
std::string share_text(std::int64_t ns, std::int64_t of_ns);

/// Returns the verdict as one sentence. If there are several ranks, this is the verdict of the
/// slowest rank or, if no rank is much slower, of the rank whose device is idle longest.
/// @param ranks  at least one; this applies to the functions below too.
std::string accelerator_headline(const std::vector<accelerator_analysis>& ranks);

/// Returns what the user should change; "" if the accelerators are busy.
std::string accelerator_advice(const std::vector<accelerator_analysis>& ranks);

/// Returns only the rank with this name or number. Throws usage_error if there is none.
std::vector<accelerator_analysis> only_rank(std::vector<accelerator_analysis> ranks,
                                            const std::string& wanted);

/// Prints all results of one trace, or a table of several ranks.
/// @param all      whether to print all rows of tables.
/// @param command  the arguments of the command, each after a space, for what to run next.
void print_accelerator(const std::vector<accelerator_analysis>& ranks, bool all,
                       const std::string& command, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_TEXT_HPP
