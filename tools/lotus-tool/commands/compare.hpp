// lotus-tool compare: what became slower or quicker from one run to another.
#ifndef LOTUS_TOOL_COMMANDS_COMPARE_HPP
#define LOTUS_TOOL_COMMANDS_COMPARE_HPP

#include <ostream>
#include <string>

#include "comparison/comparison.hpp"

namespace lotus::tool {

/// The exit status of a comparison that found something slower than allowed.
inline constexpr int exit_slower = 3;

struct compare_options : compared_sides {
  bool json = false;
  bool strict = false;
  bool quiet = false;
};

/// "5%", "5 %" or "0.05" as 0.05. Throws usage_error that names `option`.
double parse_share(const std::string& text, const std::string& option);

/// Prints what became of preprocessing a batch and why, of the throughput, and the change of every
/// operation's and batch quantity's mean, of their CPU time where both sides know it, of calls that
/// were counted only, and of every stage; loaders are matched by name. Intervals are of one run a
/// side by bootstrap, of several by how their means differ; of counted calls only of several.
/// With fail_above: returns exit_slower when an operation, preprocess, wait or step has become
/// slower by more than that and its interval lies above 0. The delay does not count: it grows
/// when preprocessing gets quicker. Throws input_error.
int run_compare(const compare_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_COMPARE_HPP
