#include "cli/cli.hpp"

#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <optional>
#include <sstream>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/progress.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/glossary.hpp"
#include "cli/help.hpp"
#include "cli/reading_options.hpp"
#include "log/folder/starts.hpp"
#include "log/window/wanted_part.hpp"

namespace lotus::tool {
namespace {

int report(std::ostream& err, const char* what, int status) {
  err << styled(err, style::red, "lotus-tool:") << ' ' << printable_line(what) << '\n';
  return status;
}

/// Returns the option with this name if the user gave it to the called command or, for a command
/// such as "map join", to the called subcommand; otherwise null.
const CLI::Option* given(const CLI::App& app, const std::string& name) {
  for (const CLI::App* const command : app.get_subcommands()) {
    const CLI::Option* const option = command->get_option_no_throw(name);
    if (option != nullptr && option->count() > 0) return option;
    if (const CLI::Option* const deeper = given(*command, name)) return deeper;
  }
  return nullptr;
}

bool is_given(const CLI::App& app, const std::string& flag) {
  return given(app, flag) != nullptr;
}

/// Returns the part of each run that the user requested with the options of add_window().
std::optional<wanted_part> given_part(const CLI::App& app) {
  std::optional<wanted_part> part;
  for (const char* const name : window_options) {
    const CLI::Option* const option = given(app, name);
    if (option == nullptr) continue;
    if (!part) part.emplace();
    part->take(name, option->as<std::string>());
  }
  return part;
}

/// Returns a message of one line that explains the error and tells the user which command shows the
/// relevant help.
std::string one_line(const CLI::App* app, const CLI::Error& error) {
  std::string command = "lotus-tool";
  for (const CLI::App* at = app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    command += ' ' + at->get_name();
  }
  std::string text = printable_line(error.what());
  // CLI11 says of an option without its value: "--without: 1 required TEXT missing".
  const std::size_t missing = text.find(": 1 required ");
  if (missing != std::string::npos) text = text.substr(0, missing) + " needs a value";
  return "lotus-tool: " + text + "; see '" + command + " --help'\n";
}

}  // namespace

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, int terminal) {
  try {
    action chosen;
    CLI::App app("Analyzes logs that the Lotus library wrote in C++ or PyTorch programs",
                 "lotus-tool");
    app.set_version_flag("-v,--version", "lotus-tool " LOTUS_TOOL_VERSION);
    app.require_subcommand(1);
    app.failure_message(one_line);
    app.formatter_fn([](const CLI::App* of, const std::string& words, CLI::AppFormatMode) {
      return help_text(*of, words);
    });
    app.footer(
        "Examples:\n"
        "  lotus-tool run -- ./train     # records it, and shows its bottleneck\n"
        "  lotus-tool whatif run         # what changes would gain\n"
        "'lotus-tool COMMAND --help' describes a command.\n"
        "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
        "Exit status 3: 'diagnose --fail-if' or 'compare --fail-above' reports a failure.\n"
        "Exit status 4: 'diagnose --fail-if' gets no verdict, or --target is not reached.");
    add_log_commands(app, chosen);
    add_self_description(app, chosen);
    add_help(app, chosen);
    group_commands(app);
    if (argc < 2) {
      err << app.help();
      return exit_wrong_use;
    }
    check_command(app, argc, argv);
    int status = exit_fine;
    try {
      app.parse(argc, argv);
      const bool wanted = terminal >= 0 && !is_given(app, "--quiet");
      const progress_bar bar(wanted ? terminal : -1);
      if (is_given(app, "--wide")) {
        for (std::ostream* const to : {&out, &err}) set_line_width(*to, 0);
      }
      read_all_starts(is_given(app, "--all-runs"));
      read_only_part(given_part(app));
      std::optional<noted_labels> labels;
      if (is_given(app, "--explain")) labels.emplace(out);
      status = chosen(out, err);
      if (labels) print_glossary(labels->all(), out);
    } catch (const CLI::ExtrasError& stop) {
      check_options(app);
      status = app.exit(stop, out, err) == 0 ? exit_fine : exit_wrong_use;
    } catch (const CLI::ParseError& stop) {
      status = app.exit(stop, out, err) == 0 ? exit_fine : exit_wrong_use;
    }
    out.flush();
    if (!out) throw input_error("standard output: cannot be written");
    return status;
  } catch (const usage_error& error) {
    return report(err, error.what(), exit_wrong_use);
  } catch (const input_error& error) {
    return report(err, error.what(), exit_bad_input);
  } catch (const std::bad_alloc&) {
    return report(err, "out of memory", exit_bad_input);
  } catch (const std::exception& error) {
    return report(err, error.what(), exit_bad_input);
  }
}

command_output run_in_process(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"lotus-tool"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_cli(static_cast<int>(argv.size()), argv.data(), out, err);
  return {status, out.str(), err.str()};
}

}  // namespace lotus::tool
