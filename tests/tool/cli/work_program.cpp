// Runs commands of lotus-tool in one process: reads one command per line, with tabs between its
// arguments. work_test.py counts the instructions of each, and starts valgrind, which takes longer
// than most commands, only once.
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/command_runner.hpp"
#include "cli/cli.hpp"

/// valgrind counts the instructions of each call of this function, which it knows by this name.
extern "C" [[gnu::noinline]] int measured_command(const std::vector<std::string>& arguments) {
  const lotus::tool::command_output said = lotus::tool::run_in_process(arguments);
  if (said.status != 0) std::cerr << said.err;
  return said.status;
}

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> arguments;
    std::istringstream words(line);
    for (std::string word; std::getline(words, word, '\t');) arguments.push_back(word);
    if (measured_command(arguments) != 0) return 1;
  }
}
