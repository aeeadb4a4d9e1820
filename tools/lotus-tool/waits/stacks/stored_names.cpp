#include "waits/stacks/stored_names.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <map>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/process_files.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

/// Appends lines to a file at once, because a process that still runs may append too.
void append(const std::string& path, const std::string& lines) {
  if (lines.empty()) return;
  // NOLINTNEXTLINE(*-vararg)
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, lines.data(), lines.size());
  ::close(fd);
}

void store_names_of(const run_files& run) {
  diagnostic_log silent = diagnostic_log::silenced();
  for (const auto& [path, lines] : variable_names_text(run)) append(path, lines);
  std::map<std::string, std::string> newest;  // file of stacks of each process
  for (const process_file& file :
       files_of_processes(run, lotus::detail::stacks_file_start, silent)) {
    newest[file.ending] = file.path;
  }
  for (const auto& [ending, path] : newest) {
    unwound_stacks stacks(run, silent);
    for (const auto& [number, stack] : stacks.read(ending).by_number) stacks.add(ending, number);
    stacks.name_all();
    append(path, stacks.names_text(ending));
  }
}

}  // namespace

void store_names(const std::string& dir, const std::string& prefix) {
  diagnostic_log silent = diagnostic_log::silenced();
  try {
    for (const run_files& run : find_runs(dir, prefix, silent)) store_names_of(run);
  } catch (const input_error&) {
    // The program recorded nothing.
  }
}

}  // namespace lotus::tool
