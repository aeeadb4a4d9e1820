// lotus-tool compare: shows what became slower or faster from one run to another.
#ifndef LOTUS_TOOL_COMMANDS_COMPARE_HPP
#define LOTUS_TOOL_COMMANDS_COMPARE_HPP

#include <cstdint>
#include <ostream>
#include <string>

#include "comparison/comparison.hpp"

namespace lotus::tool {

/// Exit status of `compare` if an operation or a time of a batch became significantly slower, by
/// more than the user allowed with `fail_above`.
inline constexpr int exit_slower = 3;

enum class compare_form : std::uint8_t { table, json, markdown };

struct compare_options : compared_sides {
  compare_form form = compare_form::table;
  bool strict = false;
  bool quiet = false;
};

/// Converts a share as text, such as "5%", "5 %" or "0.05", to a number, here 0.05. Throws
/// usage_error with the name of `option`.
double parse_share(const std::string& text, const std::string& option);

/// Prints how the preprocess time of a batch and the throughput changed, and why. Then prints by
/// how much the means changed: of every operation, of the times of a batch (such as its wait), of
/// every stage and of every aggregated operation. CPU times follow if both sides have them. Loaders
/// are matched by name.
/// If each side is one run, confidence intervals are computed by bootstrap, otherwise from the
/// differences of the runs' means. Aggregated operations have intervals only if there are several
/// runs.
/// With `fail_above`, checks the times of operations, the preprocess time, the wait and the step.
/// Returns exit_slower if one of them grew by more than `fail_above` and the whole confidence
/// interval of its change is above 0. The delay is not checked, because it grows when preprocessing
/// gets faster. Throws input_error.
int run_compare(const compare_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_COMPARE_HPP
