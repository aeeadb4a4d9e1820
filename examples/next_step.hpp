// Prints which commands a user can run on the logs of an example.
#ifndef EXAMPLES_NEXT_STEP_HPP
#define EXAMPLES_NEXT_STEP_HPP

#include <filesystem>
#include <iostream>
#include <string>

/// Prints where the logs are and a command to read them.
/// @param log_file  the prefix of the logs' names; "none": there are no logs, so print nothing.
inline void print_next_step(const std::string& log_file) {
  if (log_file == "none") return;
  const std::filesystem::path logs{log_file};
  const std::string directory = logs.has_parent_path() ? logs.parent_path().string() : ".";
  std::cout << "logs: " << log_file << "_*\nnext: lotus-tool stats " << directory;
  if (logs.filename() != "lotustrace_log") std::cout << " --prefix " << logs.filename().string();
  std::cout << "\n";
}

#endif  // EXAMPLES_NEXT_STEP_HPP
