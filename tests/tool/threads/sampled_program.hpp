// Starts programs that a test samples.
#ifndef LOTUS_TESTS_SAMPLED_PROGRAM_HPP
#define LOTUS_TESTS_SAMPLED_PROGRAM_HPP

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// A program that runs while the object exists.
class running_program {
 public:
  /// @param output  file for stdout; stderr goes to a file with this name and ".err"; "": both go
  ///   where the output of this process goes.
  explicit running_program(const std::vector<std::string>& command, const std::string& output = "")
      : pid_(fork()) {
    if (pid_ != 0) return;
    if (!output.empty()) {
      if (std::freopen(output.c_str(), "w", stdout) == nullptr) _exit(126);
      if (std::freopen((output + ".err").c_str(), "w", stderr) == nullptr) _exit(126);
    }
    unsetenv("LOTUS_LOG_FILE");
    std::vector<char*> arguments;
    for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(126);
  }
  running_program(const running_program&) = delete;
  running_program& operator=(const running_program&) = delete;
  ~running_program() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    wait();
  }

  pid_t pid() const { return pid_; }
  std::string number() const { return std::to_string(pid_); }
  /// Waits for the end. Returns the exit status, or 128 + the signal that ended the program.
  int wait() {
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_;
  int status_ = -1;
};

/// Returns the group of threads that began with the function `start`.
/// @param program  the end of the path of the group's program.
inline json group_of(const json& threads, const std::string& start,
                     const std::string& program = "") {
  for (const json& group : threads["groups"].array()) {
    const std::string path = group["program"].text();
    const bool is_program =
        path.size() >= program.size() &&
        path.compare(path.size() - program.size(), program.size(), program) == 0;
    if (group["start"].text() == start && is_program) return group;
  }
  FAIL("no group " << start << " of " << program);
  return parse_json("{}");
}

inline double blocked_share(const json& group) {
  double sum = 0;
  for (const json& part : group["blocked"].array()) sum += part["share"].number();
  return sum;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_SAMPLED_PROGRAM_HPP
