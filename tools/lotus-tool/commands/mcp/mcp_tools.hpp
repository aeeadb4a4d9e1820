// Implements the tools that `lotus-tool mcp` offers.
#ifndef LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP
#define LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_runner.hpp"

namespace lotus::tool {

struct mcp_tool {
  const char* name;
  const char* title;
  std::string description;   ///< explains the tool to the language model that chooses one
  const char* input_schema;  ///< JSON Schema of the arguments
};

/// The answer of a tool. If it failed, the text tells the language model why, so it can try again.
struct mcp_answer {
  std::string text;
  bool failed = false;
};

/// Runs the tools on one run. Not thread-safe.
class mcp_tools {
 public:
  /// @param dir  absolute path of an existing folder.
  mcp_tools(std::string dir, command_runner run_command);
  mcp_tools(const mcp_tools&) = delete;
  mcp_tools& operator=(const mcp_tools&) = delete;
  ~mcp_tools();

  static const std::vector<mcp_tool>& all();

  /// Calls the tool `name`, which must be one of all(). Invalid arguments and errors of the command
  /// become a failed answer, so only bad_alloc can be thrown.
  mcp_answer call(std::string_view name, const nlohmann::json& arguments);

 private:
  class database;

  mcp_answer answer_of(const std::vector<std::string>& command) const;
  std::string folder_within(const std::string& name) const;
  mcp_answer query(const std::string& sql);

  std::string dir_;
  command_runner run_command_;
  std::unique_ptr<database> database_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MCP_MCP_TOOLS_HPP
