#include "cli/commands/schema_cli.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "commands/schema/schema.hpp"

namespace lotus::tool {

void add_schema(CLI::App& app, action& chosen) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("schema", "Print the JSON Schema of a command's --json output");
  command->footer(
      "Examples:\n"
      "  lotus-tool schema stats > stats.schema.json\n"
      "  lotus-tool schema map join\n"
      "The schema (draft 2020-12) describes every key that this version prints.\n"
      "Later versions may add keys.");
  std::string known;
  for (const command_schema& of : command_schemas()) {
    known += (known.empty() ? "" : "|") + std::string(of.command);
  }
  command->add_option("COMMAND", *words, "the command")->required()->option_text(known);
  command->callback([words, &chosen] {
    chosen = [words](std::ostream& out, std::ostream&) { return run_schema(*words, out); };
  });
}

}  // namespace lotus::tool
