// lotus-tool whatif: predicts the effect of changes to a pipeline.
#ifndef LOTUS_TOOL_COMMANDS_WHATIF_WHATIF_HPP
#define LOTUS_TOOL_COMMANDS_WHATIF_WHATIF_HPP

#include <optional>
#include <ostream>
#include <string>

#include "log/folder/log_files.hpp"
#include "replay/change.hpp"

namespace lotus::tool {

struct whatif_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string also;        ///< folder of another run of the same pipeline; "": none
  pipeline_change change;  ///< the change to predict; empty: print a table of single changes
  std::optional<double> recorded_cpus;  ///< number of CPUs that the recorded run could use
  std::optional<double> target_per_s;
  bool feed_consumer = false;
  /// The quantity whose curve is drawn instead, see axis_named(); "": none.
  std::string curve;
  std::string format;  ///< "svg": the curve is written as a picture
  bool json = false;
  bool strict = false;
  bool quiet = false;
};

/// Prints how to reach the target in `options` or, without a target, the predicted effect of the
/// change in `options`. Without both, prints the effects of several single changes, the best one
/// first.
/// Returns the exit status; throws input_error and usage_error.
int run_whatif(const whatif_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_WHATIF_WHATIF_HPP
