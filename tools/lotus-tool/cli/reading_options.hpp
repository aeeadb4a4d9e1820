// Declares what commands of lotus-tool have in common: what they do when called, and their options.
#ifndef LOTUS_TOOL_CLI_READING_OPTIONS_HPP
#define LOTUS_TOOL_CLI_READING_OPTIONS_HPP

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>

#include "cli/arguments.hpp"

namespace lotus::tool {

/// A function that executes a command of lotus-tool and returns its exit status. When CLI11 parses
/// the command line, the command that the user called stores its function in a variable. This
/// variable must outlive the CLI::App object, which refers to it.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

/// Makes `command` call `run(*options, out, err)`, such as run_stats().
template <class Options, class Run>
void runs(CLI::App& command, action& chosen, const std::shared_ptr<Options>& options,
          const Run& run) {
  command.callback([options, run, &chosen] {
    chosen = [options, run](std::ostream& out, std::ostream& err) {
      return run(*options, out, err);
    };
  });
}

/// Adds an option.
/// @param value  what the help shows for the value, such as "FILE".
template <class Value>
CLI::Option* add_value(CLI::App& command, const char* name, Value& to, const std::string& value,
                       const char* meaning) {
  return command.add_option(name, to, meaning)->option_text(value);
}
/// Adds an option with a value that is not empty.
template <class Value>
CLI::Option* add_text(CLI::App& command, const char* name, Value& to, const char* value,
                      const char* meaning) {
  return add_value(command, name, to, value, meaning)->check(not_empty());
}
/// Adds an option that may be repeated, each time with one value.
template <class Value>
CLI::Option* add_repeated(CLI::App& command, const char* name, Value& to, const char* value,
                          const char* meaning) {
  return add_value(command, name, to, value, meaning)->allow_extra_args(false);
}
/// Adds an option whose value is a whole number of at least `least`.
template <class Value>
CLI::Option* add_count(CLI::App& command, const char* name, Value& to, std::size_t least,
                       const char* meaning) {
  return add_value(command, name, to, "N", meaning)->check(whole_number(least));
}

/// Descriptions of the argument DIR of commands that read the logs of one or several runs.
inline constexpr const char* logs_folder = "folder of the logs that the recorded program wrote";
inline constexpr const char* logs_folders = "folders of the logs that the program wrote";

inline CLI::Option* add_json(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "print JSON (see 'lotus-tool schema')");
}
/// Adds the flags --json and --csv to a command whose output has one of several forms.
template <class Form>
CLI::Option* add_json(CLI::App& command, Form& form, Form json) {
  return command.add_flag_callback(
      "--json", [&form, json] { form = json; }, "print JSON (see 'lotus-tool schema')");
}
template <class Form>
void add_json_and_csv(CLI::App& command, Form& form) {
  CLI::Option* const json = add_json(command, form, Form::json);
  command
      .add_flag_callback(
          "--csv", [&form] { form = Form::csv; }, "print CSV")
      ->excludes(json);
}

inline void add_quiet(CLI::App& command, bool& quiet) {
  command.add_flag("-q,--quiet", quiet, "print no 'note: ...' lines and no progress bar");
}

inline CLI::Option* add_prefix(CLI::App& command, std::string& prefix) {
  return command.add_option("--prefix", prefix, "how log file names start")
      ->capture_default_str()
      ->option_text("PREFIX");
}

/// Adds the options that are common to all commands that read logs.
template <class Options>
void add_reading(CLI::App& command, Options& options) {
  add_prefix(command, options.prefix);
  command.add_flag("--all-runs",
                   "if several runs recorded into the same folder,\n"
                   "read all of them, not only the newest");
  command.add_flag("--strict", options.strict,
                   "exit with status 1 if a line of the logs is malformed");
  add_quiet(command, options.quiet);
}

/// The names of the options that add_window() adds.
inline constexpr const char* window_options[] = {"--from", "--to", "--last"};

/// Adds the options that select a part of each run. The command itself ignores them: run_cli() sets
/// which part is read.
inline void add_window(CLI::App& command) {
  constexpr const char* meanings[] = {("begin at this time after the start (such as 2.5s), or\n"
                                       "at this batch (batch:INDEX or batch:EPOCH/INDEX)"),
                                      "end at this time, or at the end of this batch",
                                      "read only the end of the run, such as the last 5s"};
  for (std::size_t i = 0; i < std::size(window_options); ++i) {
    command.add_option(window_options[i])
        ->description(meanings[i])
        ->check(not_empty())
        ->option_text("TIME");
  }
}

/// Adds the flag --wide to a command that prints tables. The command itself ignores the flag:
/// run_cli() checks whether it was given.
inline void add_wide(CLI::App& command) {
  command.add_flag("--wide", "show all columns; do not wrap lines");
}
inline void add_table_options(CLI::App& command) {
  add_wide(command);
  command.add_flag("--explain", "after the output, explain the labels of its tables");
}

inline void add_skipping(CLI::App& command, std::size_t& skip_batches) {
  add_count(command, "--skip-batches", skip_batches, 0,
            "ignore the first N batches of each epoch in the\n"
            "batch times");
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_READING_OPTIONS_HPP
