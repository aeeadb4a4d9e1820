// Defines a function type through which one command runs another without depending on its code.
#ifndef LOTUS_TOOL_BASE_COMMAND_RUNNER_HPP
#define LOTUS_TOOL_BASE_COMMAND_RUNNER_HPP

#include <functional>
#include <string>
#include <vector>

namespace lotus::tool {

struct command_output {
  int status = 0;
  std::string out;
  std::string err;
};

/// A function that runs a command of lotus-tool in this process and returns its output. The
/// arguments are, for example, {"stats", "run", "--json"}. It throws nothing.
using command_runner = std::function<command_output(const std::vector<std::string>&)>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_COMMAND_RUNNER_HPP
