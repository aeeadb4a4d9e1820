#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accelerator/accelerator_described.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/help.hpp"
#include "commands/map/map_attribute.hpp"
#include "commands/stats/stats.hpp"
#include "commands/tune/tune.hpp"
#include "commands/whatif/answers.hpp"
#include "comparison/conclusion.hpp"
#include "describe/description.hpp"
#include "describe/schema.hpp"
#include "findings/diagnosis.hpp"
#include "mapping/mapping.hpp"
#include "model/ranks/exposed_time.hpp"

namespace lotus::tool {
namespace {

/// A command of lotus-tool: the words that the user types, such as "map build", and its CLI11
/// object.
struct named_command {
  std::string words;
  const CLI::App* app;
};

void add_commands(const CLI::App& of, const std::string& before, std::vector<named_command>& all) {
  for (const CLI::App* sub : of.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string words = before + sub->get_name();
    all.push_back({words, sub});
    add_commands(*sub, words + ' ', all);
  }
}

std::vector<named_command> commands_of(const CLI::App& app) {
  std::vector<named_command> all;
  add_commands(app, "", all);
  return all;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// Escapes a text for the manual page, so that troff prints it literally and interprets nothing in
/// it as a command.
std::string troff(std::string text) {
  text = replaced(std::move(text), "\\", "\\e");
  text = replaced(std::move(text), "-", "\\-");
  text = replaced(std::move(text), "\n.", "\n\\&.");
  text = replaced(std::move(text), "\n'", "\n\\&'");
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) text.insert(0, "\\&");
  return text;
}

std::string value_name(const CLI::Option& option) {
  if (!takes_value(option)) return "";
  const std::string& text = option.get_option_text();
  return text.empty() ? "VALUE" : text;
}

void describe_options(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : options_of(app)) {
    const std::string value = value_name(*option);
    page += ".TP\n\\fB" +
            troff(option->get_name(option->get_positional(), !option->get_positional())) + "\\fR";
    if (!option->get_positional() && !value.empty()) page += " \\fI" + troff(value) + "\\fR";
    page += '\n' + troff(option->get_description()) + '\n';
  }
}

/// Returns the words that an option accepts, such as "chrome perfetto"; empty if it accepts any
/// text.
std::string choices_of(const CLI::Option& option) {
  const std::string& text = option.get_option_text();
  return text.find('|') == std::string::npos ? "" : replaced(text, "|", " ");
}

/// Returns the words that may follow a command on the command line, except options: its
/// subcommands, and the words that its positional arguments accept.
std::string plain_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(sub->get_name());
  }
  for (const CLI::Option* option : options_of(app)) {
    if (option->get_positional() && !choices_of(*option).empty()) {
      words.push_back(choices_of(*option));
    }
  }
  return joined(words, " ");
}

/// Returns shell code for the beginning of a completion script. The code finds out which command
/// the user has typed before the word that the shell completes, and stores its name in $command.
std::string find_command(const CLI::App& app, const std::string& words_before) {
  const std::string names =
      joined(commands_of(app), "|", [](const named_command& c) { return '"' + c.words + '"'; });
  return "  for word in " + words_before +
         "; do\n"
         "    case \"${command:+$command }$word\" in\n"
         "      " +
         names + ") command=\"${command:+$command }$word\" ;;\n    esac\n  done\n";
}

/// Returns the branches of the shell statement `case "$command/$previous"`, in which $previous is
/// the word before the one that the shell completes. Each option that accepts only certain words
/// has a branch; it consists of `before`, these words and `behind`.
std::string value_cases(const CLI::App& app, std::string_view before, std::string_view behind) {
  std::string text;
  for (const named_command& c : commands_of(app)) {
    for (const CLI::Option* option : options_of(*c.app)) {
      if (option->get_positional() || choices_of(*option).empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        text += "    \"" + c.words + "/--" + name + "\") ";
        text.append(before).append(choices_of(*option)).append(behind) += " ;;\n";
      }
    }
  }
  return text;
}

/// Returns the branches of the shell statement `case "$command"`: one for each command, and the
/// branch "" if the user has typed no command. A branch consists of `before`, the result of words()
/// for the command, and `behind`.
std::string command_cases(const CLI::App& app, std::string_view before, std::string_view behind,
                          std::string (*words)(const CLI::App&)) {
  std::string text = "    \"\") ";
  text.append(before).append(words(app)).append(behind) += " ;;\n";
  for (const named_command& c : commands_of(app)) {
    text += "    \"" + c.words + "\") ";
    text.append(before).append(words(*c.app)).append(behind) += " ;;\n";
  }
  return text;
}

std::string all_options(const CLI::App& app) {
  return joined(option_words(app), " ");
}

std::string bash_script(const CLI::App& app) {
  // The option `-o default` makes bash complete file names if none of the script's words matches.
  return "# Completion of lotus-tool for bash.\n"
         "_lotus_tool() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local command= word words=\n" +
         find_command(app, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"") +
         "  if [[ $current == -* ]]; then\n    case \"$command\" in\n" +
         command_cases(app, "words=\"", "\"", all_options) +
         "    esac\n  else\n    case \"$command\" in\n" +
         command_cases(app, "words=\"", "\"", plain_words) +
         "    esac\n    case \"$command/$previous\" in\n" + value_cases(app, "words=\"", "\"") +
         "    esac\n  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _lotus_tool lotus-tool\n";
}

std::string zsh_script(const CLI::App& app) {
  return "#compdef lotus-tool\n"
         "# Completion of lotus-tool for zsh.\n"
         "_lotus_tool() {\n"
         "  local command= word\n" +
         find_command(app, "\"${(@)words[2,CURRENT-1]}\"") +
         "  case \"$command/$words[CURRENT-1]\" in\n" +
         value_cases(app, "compadd -- ", "; return") + "  esac\n  case \"$command\" in\n" +
         command_cases(app, "compadd -- ", "", plain_words) + "  esac\n  case \"$command\" in\n" +
         command_cases(app, "compadd -- ", "", all_options) +
         "  esac\n  [[ -n $command ]] && _files\n}\ncompdef _lotus_tool lotus-tool\n";
}

std::string fish_quoted(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  return '\'' + replaced(std::move(text), "'", "\\'") + '\'';
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# Completion of lotus-tool for fish.\n";
  std::string top;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    top += ' ' + sub->get_name();
  }
  for (const named_command& c : commands_of(app)) {
    const std::size_t space = c.words.rfind(' ');
    const std::string seen = space == std::string::npos
                                 ? "not __fish_seen_subcommand_from" + top
                                 : "__fish_seen_subcommand_from " + c.words.substr(0, space);
    text += "complete -c lotus-tool -n " + fish_quoted(seen) + " -a " + c.app->get_name() + " -d " +
            fish_quoted(c.app->get_description()) + '\n';
    for (const CLI::Option* option : options_of(*c.app)) {
      if (option->get_positional()) continue;
      text += "complete -c lotus-tool -n " +
              fish_quoted("__fish_seen_subcommand_from " + c.app->get_name());
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      if (takes_value(*option)) text += " -r";
      if (!choices_of(*option).empty()) text += " -f -a " + fish_quoted(choices_of(*option));
      text += " -d " + fish_quoted(option->get_description()) + '\n';
    }
  }
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string page = R"(.TH LOTUS\-TOOL 1 "" "lotus )" LOTUS_TOOL_VERSION
                     "\" \"User Commands\"\n.SH NAME\nlotus\\-tool \\- " +
                     troff(app.get_description()) +
                     "\n.SH SYNOPSIS\n.B lotus\\-tool\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n"
                     ".SH DESCRIPTION\nLotus records what every operation and every batch of a "
                     "preprocessing pipeline costs. This program reads such logs.\n.SH OPTIONS\n";
  describe_options(app, page);
  page += ".SH COMMANDS\n";
  for (const named_command& c : commands_of(app)) {
    page += ".SS lotus\\-tool " + troff(c.words) + '\n' + troff(c.app->get_description()) + ".\n";
    describe_options(*c.app, page);
    page += ".PP\n.nf\n" + troff(closing_text(*c.app)) + ".fi\n";
  }
  page +=
      ".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nBad input.\n.TP\n2\nUsage error.\n.TP\n3\n"
      "\\[aq]diagnose \\-\\-fail\\-if\\[aq] or \\[aq]compare \\-\\-fail\\-above\\[aq] reports a "
      "failure.\n.TP\n4\n\\[aq]diagnose \\-\\-fail\\-if\\[aq] gets no verdict, or "
      "\\-\\-target is not reached.\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set and not empty, output has no colors.\n"
      ".TP\n.B COLUMNS\nThe width of lines. Default: the terminal's width, or 80 in a pipe or "
      "file.\n";
  return page;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  throw usage_error("no completion for '" + shell + "'; there is one for bash, zsh and fish");
}

/// A command with the option --json.
struct json_command {
  std::string_view words;  ///< the command as the user types it, such as "map join"
  value_type (*output)();
};

const std::vector<json_command>& json_commands() {
  static const std::vector<json_command> all{
      {"stats", type_of_output<stats_output>},
      {"diagnose",
       type_of_output<
           std::variant<diagnosis, several<diagnosis>, exposed_time, several<exposed_time>>>},
      {"whatif", type_of_output<one_or_several<whatif_answers>>},
      {"tune", type_of_output<tune_result>},
      {"compare", type_of_output<shown_comparison>},
      {"accelerator", type_of_output<shown_accelerator>},
      {"threads", type_of_output<threads_view>},
      {"map run", type_of_output<mapping>},
      {"map build", type_of_output<mapping>},
      {"map join", type_of_output<joined_run>},
      {"map attribute", type_of_output<attributions>},
  };
  return all;
}

std::string command_words(std::string_view between) {
  return joined(json_commands(), between, [](const json_command& of) { return of.words; });
}

int run_schema(const std::vector<std::string>& words, bool markdown, std::ostream& out) {
  const std::string command = joined(words, " ");
  for (const json_command& of : json_commands()) {
    if (of.words != command) continue;
    if (markdown) {
      print_keys(of.output(), out);
    } else {
      print_schema("lotus-tool " + command + " --json", of.output(), out);
    }
    return exit_fine;
  }
  throw usage_error("'" + command +
                    "' is not a command that prints JSON; these are: " + command_words(", "));
}

}  // namespace

void add_schema(CLI::App& app, action& chosen) {
  struct options {
    std::vector<std::string> words;
    bool markdown = false;
  };
  auto given = std::make_shared<options>();
  CLI::App* command =
      app.add_subcommand("schema", "Print the JSON Schema of a command's --json output");
  command->footer(
      "Examples:\n"
      "  lotus-tool schema stats > stats.schema.json\n"
      "  lotus-tool schema map join\n"
      "The schema (draft 2020-12) describes every key that this version prints.\n"
      "Later versions may add keys.");
  command->add_option("COMMAND", given->words, "the command")
      ->required()
      ->option_text(command_words("|"));
  command->add_flag("--markdown", given->markdown, "print the keys as tables");
  command->callback([given, &chosen] {
    chosen = [given](std::ostream& out, std::ostream&) {
      return run_schema(given->words, given->markdown, out);
    };
  });
}

void add_self_description(CLI::App& app, action& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->footer(
      "Examples:\n"
      "  source <(lotus-tool completion bash)\n"
      "  lotus-tool completion fish > ~/.config/fish/completions/lotus-tool.fish");
  completion->add_option("SHELL", *shell, "the shell")->required()->option_text("bash|zsh|fish");
  completion->callback([shell, &app, &chosen] {
    chosen = [shell, &app](std::ostream& out, std::ostream&) {
      out << completion_script(app, *shell);
      return exit_fine;
    };
  });
  CLI::App* man = app.add_subcommand("man", "Print the manual page");
  man->footer("Examples:\n  lotus-tool man | man -l -\n  lotus-tool man > lotus-tool.1");
  man->callback([&app, &chosen] {
    chosen = [&app](std::ostream& out, std::ostream&) {
      out << man_page(app);
      return exit_fine;
    };
  });
}

}  // namespace lotus::tool
