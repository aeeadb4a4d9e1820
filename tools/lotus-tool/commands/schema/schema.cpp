#include "commands/schema/schema.hpp"

#include <ostream>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "commands/schema/schema_texts.hpp"

namespace lotus::tool {

const std::vector<command_schema>& command_schemas() {
  static const std::vector<command_schema> all{
      {"stats", stats_schema},
      {"diagnose", diagnose_schema},
      {"whatif", whatif_schema},
      {"tune", tune_schema},
      {"compare", compare_schema},
      {"accelerator", accelerator_schema},
      {"threads", threads_schema},
      {"map run", map_schema},
      {"map build", map_schema},
      {"map join", map_join_schema},
      {"map attribute", map_attribute_schema},
  };
  return all;
}

int run_schema(const std::vector<std::string>& words, std::ostream& out) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  std::string known;
  for (const command_schema& of : command_schemas()) {
    if (of.command == command) {
      out << of.text;
      return exit_fine;
    }
    known += (known.empty() ? "" : ", ") + std::string(of.command);
  }
  throw usage_error("'" + command + "' is not a command that prints JSON; these are: " + known);
}

}  // namespace lotus::tool
