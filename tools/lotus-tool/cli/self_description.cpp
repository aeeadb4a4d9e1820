#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accelerator/accelerator_described.hpp"
#include "base/errors.hpp"
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
#include "sampling/commands/map_join.hpp"
#include "threads/commands/threads.hpp"

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

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
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

int run_schema(const std::vector<std::string>& words, bool markdown, std::ostream& out) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  std::string known;
  for (const json_command& of : json_commands()) {
    known += (known.empty() ? "" : ", ") + std::string(of.words);
    if (of.words != command) continue;
    if (markdown) {
      print_keys(of.output(), out);
    } else {
      print_schema("lotus-tool " + command + " --json", of.output(), out);
    }
    return exit_fine;
  }
  throw usage_error("'" + command + "' is not a command that prints JSON; these are: " + known);
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
  std::string known;
  for (const json_command& of : json_commands()) {
    known += (known.empty() ? "" : "|") + std::string(of.words);
  }
  command->add_option("COMMAND", given->words, "the command")->required()->option_text(known);
  command->add_flag("--markdown", given->markdown, "print the keys as tables");
  command->callback([given, &chosen] {
    chosen = [given](std::ostream& out, std::ostream&) {
      return run_schema(given->words, given->markdown, out);
    };
  });
}

void add_self_description(CLI::App& app, action& chosen) {
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
