#include "cli/commands/mcp_cli.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <ostream>

#include "cli/cli.hpp"
#include "commands/mcp/mcp.hpp"

namespace lotus::tool {
void add_mcp(CLI::App& app, action& chosen) {
  auto options = std::make_shared<mcp_options>();
  CLI::App* command = app.add_subcommand("mcp", "Answer an AI assistant's questions about a run");
  command->footer(
      "Examples:\n"
      "  {\"mcpServers\": {\"lotus\": {\"command\": \"lotus-tool\", \"args\": [\"mcp\", "
      "\"run/\"]}}}\n"
      "  lotus-tool mcp run/ < requests.jsonl\n"
      "Runs a Model Context Protocol (MCP) server on standard input and output.\n"
      "The first example is an entry for the assistant's list of MCP servers.\n"
      "The server offers the commands diagnose, stats, whatif and compare, and SQL queries "
      "on the tables that 'lotus-tool export' writes.\n"
      "The server reads only this folder, changes nothing, and opens no connection.");
  command->add_option("DIR", options->dir, "folder of the logs of one or several runs")->required();
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream&) {
      return run_mcp(*options, run_in_process, std::cin, out);
    };
  });
}

}  // namespace lotus::tool
