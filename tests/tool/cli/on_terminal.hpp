// Runs lotus-tool on a new pseudo-terminal.
#ifndef LOTUS_TESTS_ON_TERMINAL_HPP
#define LOTUS_TESTS_ON_TERMINAL_HPP

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool_test {

/// Variables to set in the environment; a variable with a null value is removed.
using environment = std::vector<std::pair<const char*, const char*>>;

/// Runs LOTUS_TOOL_PROGRAM on the terminal and returns its output.
/// @param columns  width of the terminal; if 0, the program cannot find out the width.
inline std::string on_terminal(const std::vector<std::string>& arguments, const environment& set,
                               unsigned short columns = 0) {
  int master = -1;
  const winsize size{50, columns, 0, 0};
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("no terminal");
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    unsetenv("COLUMNS");
    for (const auto& [name, value] : set) {
      if (value != nullptr) {
        setenv(name, value, 1);
      } else {
        unsetenv(name);
      }
    }
    std::vector<char*> argv;
    std::string program = LOTUS_TOOL_PROGRAM;
    argv.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string& argument : copies) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> block{};
  ssize_t n = 0;
  while ((n = read(master, block.data(), block.size())) > 0) {
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  close(master);
  int status = 0;
  waitpid(child, &status, 0);
  return text;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_ON_TERMINAL_HPP
