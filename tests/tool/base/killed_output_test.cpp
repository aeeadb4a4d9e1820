// Kills real commands of lotus-tool while they write their output. The next run of the same command
// must remove what they left.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace fs = std::filesystem;

namespace {

/// Writes a log so large that commands take a noticeable time to write their output.
std::string large_run(const temp_dir& dir) {
  constexpr int records = support::rounds(400'000);
  std::string text;
  for (int i = 0; i < records; ++i) {
    // The names are different, so that all outputs are large.
    text += "SOperation" + std::to_string(i % 5000) + ',' + std::to_string(1'000 + 10 * i) + ",9\n";
  }
  dir.file("run/lotustrace_log_worker_pid_7", text);
  return dir.path() + "/run";
}

pid_t start_tool(const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  std::vector<char*> argv{const_cast<char*>(LOTUS_TOOL_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

/// Returns how many unfinished files and folders are in a folder or below it.
std::size_t unfinished_in(const temp_dir& folder) {
  std::size_t count = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder.path(), error), end; at != end && !error;
       at.increment(error)) {
    if (contains(at->path().filename().string(), ".lotus_")) ++count;
  }
  return count;
}

/// Runs a command, and kills it as soon as an unfinished file exists in the folder of its output.
/// Returns the command's wait status.
int run_and_kill(const std::vector<std::string>& arguments, const temp_dir& output) {
  const pid_t child = start_tool(arguments);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (unfinished_in(output) > 0) kill(child, SIGKILL);
  }
  return status;
}

}  // namespace

TEST_CASE("a command removes what the same command left when it was killed") {
  const temp_dir logs;
  const std::string run_folder = large_run(logs);
  const std::vector<std::string> command = GENERATE(
      std::vector<std::string>{"viz"}, std::vector<std::string>{"viz", "--format", "perfetto"},
      std::vector<std::string>{"report"}, std::vector<std::string>{"export", "--format", "sqlite"},
      std::vector<std::string>{"export", "--format", "csv"},
      std::vector<std::string>{"export", "--format", "pstats"});
  CAPTURE(command);
  const temp_dir output;
  std::vector<std::string> arguments = command;
  arguments.insert(arguments.end(), {run_folder, "-o", output.path() + "/out"});
  // The command may have finished before it is killed, so try again.
  int status = 0;
  for (int tries = 0; tries < 50; ++tries) {
    for (const std::string& name : output.names()) fs::remove_all(output.path() + '/' + name);
    status = run_and_kill(arguments, output);
    if (WIFSIGNALED(status) && unfinished_in(output) > 0) break;
    // lotus-tool may have been built without SQLite.
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return lotus_test::skip("no such format");
  }
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(unfinished_in(output) > 0);
  waitpid(start_tool(arguments), &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(unfinished_in(output) == 0);
  CHECK(output.names() == std::vector<std::string>{"out"});
}
