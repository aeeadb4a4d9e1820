// Implements the tools that `lotus-tool mcp` offers.
#ifndef LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP
#define LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
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

  /// Returns the JSON Schema of the arguments.
  std::string input_schema() const;
};

/// The answer of a tool. If it failed, the text tells the language model why, so it can try again.
struct mcp_answer {
  std::string text;
  bool failed = false;
};

/// Runs tools on one run. Not thread-safe.
class mcp_tools {
 public:
  /// @param dir  absolute path of an existing folder.
  mcp_tools(std::string dir, std::vector<mcp_tool> tools, command_runner run_command);
  mcp_tools(const mcp_tools&) = delete;
  mcp_tools& operator=(const mcp_tools&) = delete;
  ~mcp_tools();

  const std::vector<mcp_tool>& all() const noexcept { return tools_; }

  /// Calls a tool of all(). Invalid arguments and errors of the command
  /// become a failed answer, so only bad_alloc can be thrown.
  mcp_answer call(const mcp_tool& tool, const nlohmann::json& arguments);

 private:
  class database;

  mcp_answer answer_of(const std::vector<std::string>& command) const;
  std::string folder_within(const std::string& name) const;
  mcp_answer query(const std::string& sql);

  std::string dir_;
  std::vector<mcp_tool> tools_;
  command_runner run_command_;
  std::unique_ptr<database> database_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP
