// lotus-tool mcp: a server of the Model Context Protocol that answers questions about one run.
#ifndef LOTUS_TOOL_COMMANDS_MCP_MCP_HPP
#define LOTUS_TOOL_COMMANDS_MCP_MCP_HPP

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "base/command_runner.hpp"

namespace lotus::tool {

/// An argument of a tool. It becomes an option or argument of the command.
struct mcp_argument {
  enum class kind : std::uint8_t {
    flag,
    integer,
    number,
    text,
    texts,    ///< a list of texts; the option is repeated
    factors,  ///< numbers by name; the option is repeated, as in --faster NAME=2
    folder    ///< a subfolder of the served folder
  };
  std::string name;    ///< such as "skip_batches"
  std::string option;  ///< such as "--skip-batches"; "": an argument, which is required
  kind is = kind::flag;
  std::string meaning;
  std::vector<std::string> words = {};  ///< if not empty, a text is one of these
};

/// A tool that runs a command on the served folder.
struct mcp_tool {
  std::string name;  ///< the command; or threads or sql, which query the tables of the run
  std::string title;
  std::string description;  ///< explains the tool to the language model that chooses one
  std::vector<mcp_argument> arguments = {};
};

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
