// lotus-tool compare: shows what became slower or faster from one run to another.
#ifndef LOTUS_TOOL_COMMANDS_COMPARE_HPP
#define LOTUS_TOOL_COMMANDS_COMPARE_HPP

#include <ostream>
#include <string>

#include "comparison/comparison.hpp"

namespace lotus::tool {

/// The exit status if something became slower than allowed.
inline constexpr int exit_slower = 3;

struct compare_options : compared_sides {
  bool json = false;
  bool strict = false;
  bool quiet = false;
};

/// Reads "5%", "5 %" or "0.05" as 0.05. Throws usage_error that names `option`.
double parse_share(const std::string& text, const std::string& option);

/// Prints how the preprocessing time of a batch and the throughput changed, and why. Then prints
/// the change in the mean of every operation, batch quantity, stage and counted call, and of CPU
/// times if both sides have them. Loaders are matched by name. Intervals are from bootstrap if each
/// side is one run, else from the differences of the runs' means; counted calls have intervals only
/// with several runs. With fail_above: returns exit_slower if an operation, preprocess, wait or
/// step became slower by more than that and its interval is above 0. The delay does not count,
/// because it grows when preprocessing gets faster. Throws input_error.
int run_compare(const compare_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_COMPARE_HPP
