// lotus-tool top: shows what running programs do at the moment.
#ifndef LOTUS_TOOL_COMMANDS_TOP_TOP_HPP
#define LOTUS_TOOL_COMMANDS_TOP_TOP_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "commands/top/screen.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

struct top_options {
  std::vector<std::string> dirs;
  std::string prefix{default_prefix};
  std::int64_t window_ns = 10'000'000'000;
  std::int64_t interval_ns = 1'000'000'000;
  live_order order = live_order::self;
  bool once = false;
  /// File for the output of openmetrics_text(), which replaces the screen; "": none.
  std::string metrics;
};

/// Shows the last seconds of the runs in options.dirs until the user quits. If `out` is not a
/// terminal, prints them once as plain text. With options.metrics, prints nothing but rewrites the
/// metrics file at every interval until the process is killed (or once, with options.once). Never
/// writes to the runs. Returns the exit status; throws input_error.
int run_top(const top_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_TOP_HPP
