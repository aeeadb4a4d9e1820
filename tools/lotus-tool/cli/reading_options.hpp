// Options that several commands have.
#ifndef LOTUS_TOOL_CLI_READING_OPTIONS_HPP
#define LOTUS_TOOL_CLI_READING_OPTIONS_HPP

#include <CLI/CLI.hpp>
#include <cstddef>

#include "cli/arguments.hpp"

namespace lotus::tool {

/// Options that every command which reads logs has.
template <class Options>
void add_reading(CLI::App& command, Options& options) {
  command.add_option("--prefix", options.prefix, "what the names of the logs begin with")
      ->capture_default_str();
  command.add_flag("--all-runs",
                   "read everything in a folder that several runs recorded into, not the newest");
  command.add_flag("--strict", options.strict, "fail on any malformed line (status 1)");
  command.add_flag("-q,--quiet", options.quiet, "no notes; errors and warnings stay");
}

/// Of commands that print tables; what they do is done where the command is called.
inline void add_wide(CLI::App& command) {
  command.add_flag("--wide", "all columns, and no line broken, however wide the terminal is");
}
inline void add_table_options(CLI::App& command) {
  add_wide(command);
  command.add_flag("--explain", "behind the tables, what their labels mean");
}

inline void add_skipping(CLI::App& command, std::size_t& skip_batches) {
  command
      .add_option("--skip-batches", skip_batches,
                  "leave the first N batches of every epoch out of what is told per batch")
      ->check(whole_number(0))
      ->option_text("N");
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_READING_OPTIONS_HPP
