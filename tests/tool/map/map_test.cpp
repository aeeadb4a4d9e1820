#include "map_test.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <lotus/sampling/perf_ring.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::map_test {

tool_test::result execute(const std::vector<std::string>& arguments, const environment& added) {
  const tool_test::temp_dir dir;
  const std::string out = dir.file("out", "");
  const std::string err = dir.file("err", "");
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& [name, value] : added) ::setenv(name.c_str(), value.c_str(), 1);
    ::dup2(::open(out.c_str(), O_WRONLY), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY), STDERR_FILENO);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          tool_test::read_file(out), tool_test::read_file(err)};
}

bool sampling_allowed() {
  const int event = detail::open_event(detail::sampling_event(1'000'000), 0, 0);
  if (event < 0) {
    lotus_test::skip("the kernel does not allow sampling here");
    return false;
  }
  ::close(event);
  return true;
}

bool installed(const std::string& program) {
  const bool found = execute({"sh", "-c", "command -v " + program}).status == 0;
  if (!found) lotus_test::skip(program + " is not installed");
  return found;
}

}  // namespace lotus::map_test
