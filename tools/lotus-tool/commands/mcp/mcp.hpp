// lotus-tool mcp: a server of the Model Context Protocol that answers questions about one run.
#ifndef LOTUS_TOOL_COMMANDS_MCP_MCP_HPP
#define LOTUS_TOOL_COMMANDS_MCP_MCP_HPP

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "commands/mcp/mcp_tools.hpp"

namespace lotus::tool {

struct mcp_options {
  std::string dir;
  std::vector<mcp_tool> tools;
};

/// Reads JSON-RPC 2.0 messages from `in`, one per line, and answers each request on `out`, until
/// `in` ends or `out` cannot be written. Reads only options.dir, opens no connection, and writes
/// only temporary files. Answers invalid messages with an error. Throws input_error if options.dir
/// does not exist.
int run_mcp(const mcp_options& options, const command_runner& run_command, std::istream& in,
            std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MCP_MCP_HPP
