#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/accelerator_described.hpp"
#include "base/errors.hpp"
#include "cli/commands/log_commands.hpp"
#include "commands/map/map_attribute.hpp"
#include "commands/stats/stats.hpp"
#include "commands/tune/tune_print.hpp"
#include "commands/whatif/answers.hpp"
#include "comparison/comparison_json.hpp"
#include "describe/description.hpp"
#include "describe/schema.hpp"
#include "findings/diagnosis.hpp"
#include "mapping/mapping_file.hpp"
#include "sampling/commands/map_join.hpp"
#include "threads/commands/threads.hpp"

namespace lotus::tool {
namespace {

/// A command with the option --json.
struct json_command {
  std::string_view words;  ///< the command as the user types it, such as "map join"
  value_type (*output)();
};

const std::vector<json_command>& json_commands() {
  static const std::vector<json_command> all{
      {"stats", type_of_output<stats_output>},
      {"diagnose", type_of_output<one_or_several<diagnosis>>},
      {"whatif", type_of_output<one_or_several<whatif_answers>>},
      {"tune", type_of_output<tune_result>},
      {"compare", type_of_output<shown_comparison>},
      {"accelerator", type_of_output<shown_accelerator>},
      {"threads", type_of_output<threads_result>},
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

}  // namespace lotus::tool
