#include "cli/help.hpp"

#include <cstddef>
#include <memory>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "lotus/base/environment.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t help_columns = 80;
constexpr std::size_t name_columns = 24;
/// If an option accepts only certain words, the help shows them after the option's name, as in
/// "--form json|csv". A list that is longer than this is printed after the option's description
/// instead.
constexpr std::size_t max_choices = 30;

bool is_repeated(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  return app.get_options(
      [positional](const CLI::Option* option) { return option->get_positional() == positional; });
}

std::string positional_name(const CLI::Option& option) {
  return option.get_name(true) + (is_repeated(option) ? "..." : "");
}

std::string usage(const CLI::App& app, const std::string& words) {
  std::string line = words;
  if (!options_of(app, false).empty()) line += " [OPTIONS]";
  if (!app.get_subcommands(nullptr).empty()) line += " COMMAND";
  for (const CLI::Option* option : options_of(app, true)) {
    // The usage line shows "--" before PROGRAM, because the user types it there to separate the
    // program and its arguments from the options of lotus-tool.
    if (option->get_name(true) == "PROGRAM") line += " --";
    const std::string name = positional_name(*option);
    line += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  return line;
}

/// Formats the name of an option or argument and its description, in two columns. If the name is
/// too long for its column, the description begins on the next line. Line ends in the description
/// are kept.
std::string described(const std::string& name, const std::string& text) {
  const std::string margin(2 + name_columns + 1, ' ');
  std::string all;
  std::string before = margin;
  if (columns_of(name) <= name_columns) {
    before = "  " + name + std::string(name_columns + 1 - columns_of(name), ' ');
  } else {
    all = "  " + name + '\n';
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); before = margin) {
    all += in_lines(line, help_columns, before, margin) + '\n';
  }
  return all;
}

/// Converts "words|of|one" to "words, of, one".
std::string listed(std::string text) {
  return replaced(std::move(text), "|", ", ");
}

/// Whether a description contains each of the words in "words|of|one".
bool names_all(const std::string& description, const std::string& words) {
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, '|');) {
    if (description.find(word) == std::string::npos) return false;
  }
  return true;
}

std::string option_entry(const CLI::Option& option) {
  std::string name;
  for (const std::string& word : option.get_snames()) name += "-" + word + ", ";
  for (const std::string& word : option.get_lnames()) name += "--" + word + ", ";
  name.resize(name.size() - 2);
  std::string text = option.get_description();
  if (option.get_items_expected_max() > 0) {
    std::string value = option.get_option_text();
    if (value.size() > max_choices) {
      if (!names_all(text, value)) text += "\none of " + listed(value);
      value = "WORD";
    }
    name += ' ' + (value.empty() ? "VALUE" : value);
  }
  if (!option.get_default_str().empty()) text += "; default: " + option.get_default_str();
  if (option.get_required()) text += "; required";
  return described(name, text);
}

/// Returns the text of `lotus-tool help environment`. It lists the environment variables that the
/// library and the tool read.
std::string environment_topic() {
  std::string text =
      "Environment variables of programs that record with lotus.\n"
      "An empty variable counts as not set.\n"
      "An invalid value is reported once, and the default is used unless noted below.\n"
      "LOTUS_MAP_REGION is a macro. It marks a block of code that 'lotus-tool map run'\n"
      "samples with a profiler, which is called the collector.\n"
      "\nVariables:\n";
  for (const detail::variable_row& row : detail::environment_table) {
    text += described(row.name, std::string(row.meaning) + "\nvalue: " + listed(row.values) +
                                    "; default: " + row.otherwise);
  }
  return text;
}

constexpr std::string_view exit_status = "Exit status: ";

/// What the commands of lotus-tool are for, in the order of its help.
struct command_group {
  const char* heading;
  std::vector<const char*> commands;
};
const std::vector<command_group>& command_groups() {
  static const std::vector<command_group> all{
      {"Record", {"run", "attach", "snapshot", "recover", "unpack", "map"}},
      {"Understand", {"diagnose", "stats", "threads", "accelerator", "compare"}},
      {"Change", {"whatif", "tune"}},
      {"Show", {"report", "viz", "top", "export"}},
      {"Other", {"mcp", "schema", "completion", "man", "help"}},
  };
  return all;
}

/// Returns the commands of lotus-tool, or of one of its commands, by their group.
std::vector<const CLI::App*> commands_in_groups(const CLI::App& app) {
  const std::vector<const CLI::App*> all = app.get_subcommands(nullptr);
  std::vector<const CLI::App*> commands;
  for (const command_group& group : command_groups()) {
    for (const char* const name : group.commands) {
      for (const CLI::App* const command : all) {
        if (command->get_name() == name) commands.push_back(command);
      }
    }
  }
  return commands.size() == all.size() ? commands : all;
}

}  // namespace

std::vector<std::string> option_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : options_of(app, false)) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  return words;
}

/// Formats the text at the end of a command's help: the examples, the sentences that define terms
/// (after a line "Terms:"), the other sentences (at the beginning, or after a line "Details:"), and
/// the exit statuses, each under a heading. A sentence begins on a new line. If the text does not
/// list the command's exit statuses, appends those that all commands share.
std::string closing_text(const CLI::App& app) {
  std::string text = app.get_footer();
  if (text.find(exit_status) == std::string::npos) {
    text += std::string(text.empty() ? "" : "\n") + std::string(exit_status) +
            "0 = success, 1 = bad input, 2 = usage error.";
  }
  std::string examples;
  std::string terms;
  std::string details;
  std::string statuses;
  std::string* part = &details;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("Example", 0) == 0) {
      part = &examples;
    } else if (line.rfind("Exit status", 0) == 0) {
      part = &statuses;
    } else if (line == "Terms:" || line == "Details:") {
      part = line == "Terms:" ? &terms : &details;
      continue;
    } else if (line.rfind(' ', 0) != 0 && part != &terms) {
      part = &details;
    }
    const bool is_indented = part == &terms || part == &details;
    const std::string margin(is_indented ? 2 : 0, ' ');
    if (line.rfind(' ', 0) == 0) {
      part->append(margin).append(line);
    } else {
      part->append(in_lines(line, help_columns, margin, margin));
    }
    *part += '\n';
  }
  std::string all = examples;
  for (const auto& [heading, sentences] : {std::pair{"Terms:\n", terms}, {"Details:\n", details}}) {
    if (sentences.empty()) continue;
    all.append(all.empty() ? "" : "\n").append(heading).append(sentences);
  }
  return all.append(all.empty() ? "" : "\n").append(statuses);
}

std::string help_text(const CLI::App& app, const std::string& words) {
  std::string text = in_lines(usage(app, words), help_columns, "Usage: ", "         ") + "\n\n" +
                     in_lines(app.get_description() + '.', help_columns) + '\n';
  std::string heading;
  for (const CLI::App* command : commands_in_groups(app)) {
    // Commands of a command, such as those of map, are not grouped.
    const std::string group = app.get_parent() == nullptr ? command->get_group() : "Commands";
    if (group != heading) text += '\n' + group + ":\n";
    heading = group;
    text += described(command->get_name(), command->get_description());
  }
  const std::vector<const CLI::Option*> arguments = options_of(app, true);
  if (!arguments.empty()) text += "\nArguments:\n";
  for (const CLI::Option* argument : arguments) {
    const std::string& choices = argument->get_option_text();
    text +=
        described(positional_name(*argument),
                  argument->get_description() + (choices.empty() ? "" : ": " + listed(choices)));
  }
  text += "\nOptions:\n";
  for (const CLI::Option* option : options_of(app, false)) text += option_entry(*option);
  return text + '\n' + closing_text(app);
}

void group_commands(CLI::App& app) {
  for (const command_group& group : command_groups()) {
    for (const char* const name : group.commands) {
      for (CLI::App* const command : app.get_subcommands(nullptr)) {
        if (command->get_name() == name) command->group(group.heading);
      }
    }
  }
}

void add_help(CLI::App& app, action& chosen) {
  auto typed = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "Show how a command is used");
  help->footer("Examples:\n  lotus-tool help map join\n  lotus-tool help environment");
  help->add_option("COMMAND", *typed,
                   "the command to describe, such as map join;\n"
                   "'environment' describes environment variables");
  help->callback([typed, &app, &chosen] {
    chosen = [typed, &app](std::ostream& out, std::ostream&) {
      if (*typed == std::vector<std::string>{"environment"}) {
        out << environment_topic();
        return exit_fine;
      }
      const CLI::App* at = &app;
      std::string called = app.get_name();
      for (const std::string& name : *typed) {
        at = &command_named(*at, name);
        called += ' ' + name;
      }
      out << help_text(*at, called);
      return exit_fine;
    };
  });
}

}  // namespace lotus::tool
