#include "model/tracks.hpp"

#include <filesystem>
#include <map>

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

std::string role_name(file_role role) {
  switch (role) {
    case file_role::main:
      return "main";
    case file_role::worker:
      return "worker";
    case file_role::unknown:
    case file_role::side:
    case file_role::aggregated:
    case file_role::compact:
      break;
  }
  return "log";
}

/// Returns the complete name of a thread. A thread that was not named has the name of its program,
/// which Linux cuts to 15 characters; such a name is completed from the program's command line.
std::string whole_name(const std::string& name, const std::string& command) {
  constexpr std::size_t cut = 15;
  const std::string program = fs::path(command.substr(0, command.find(' '))).filename().string();
  return name.size() == cut && program.compare(0, cut, name) == 0 ? program : name;
}

}  // namespace

std::string run_title(const std::string& run_dir, const std::string& dir) {
  const fs::path below = fs::path(run_dir).lexically_relative(dir);
  if (!below.empty() && below != ".") return below.string();
  // Paths such as "run/" and "." have no last component, so use the absolute path.
  std::error_code error;
  const fs::path whole = fs::canonical(run_dir, error);
  return error || !whole.has_filename() ? run_dir : whole.filename().string();
}

std::string run_title(const run_files& run, const std::string& dir) {
  if (run.loader.empty()) return run_title(run.dir, dir);
  return run_title(run.info_dir, dir) + ", loader " + run.loader;
}

std::string log_title(const log_file& file, const process_info* process) {
  const std::uint64_t thread = process != nullptr ? process->thread_of(file.number) : file.number;
  std::string title = role_name(file.role) + ' ' + std::to_string(thread);
  if (process != nullptr) {
    const auto name = process->threads.find(thread);
    if (name != process->threads.end() && !name->second.empty()) {
      title += " (" + whole_name(name->second, process->command) + ')';
    }
  }
  return title;
}

std::uint32_t number_pool::take(std::uint64_t wanted) {
  if (wanted > 0 && wanted <= UINT32_MAX) {
    const auto number = static_cast<std::uint32_t>(wanted);
    if (taken_.insert(number).second) return number;
  }
  while (!taken_.insert(next_).second) ++next_;
  return next_;
}

void number_pool::reserve(std::uint64_t number) {
  if (number <= UINT32_MAX) taken_.insert(static_cast<std::uint32_t>(number));
}

std::vector<run_tracks> lay_tracks(const std::vector<run_files>& runs, const std::string& dir,
                                   const std::set<std::uint64_t>& taken) {
  number_pool pids;
  number_pool tids;
  for (const std::uint64_t number : taken) {
    pids.reserve(number);
    tids.reserve(number);
  }
  std::vector<run_tracks> all;
  for (const run_files& run : runs) {
    run_tracks tracks;
    const run_processes info = run_processes::read(run.info_dir, run.earlier_info);
    const std::string title = run_title(run, dir);
    std::map<const process_info*, std::uint32_t> pid_of;
    const auto pid_for = [&](const process_info* process, std::uint64_t otherwise) {
      auto [place, is_new] = pid_of.try_emplace(process, 0);
      if (is_new) {
        place->second = pids.take(process != nullptr ? process->pid : otherwise);
        tracks.processes.push_back(
            {place->second, process != nullptr ? title + ": " + process->title() : title});
      }
      return place->second;
    };
    // If the run contains only counters, it has side logs but no main or worker logs. Use a side
    // log to find its process.
    if (run.files.empty()) {
      const std::uint64_t number = run.side_files.front().number;
      pid_for(info.process_of(number), number);
    }
    for (const log_file& file : run.files) {
      const process_info* process = info.process_of(file.number);
      tracks.of_file.push_back(
          {pid_for(process, run.files.front().number),
           tids.take(process != nullptr ? process->thread_of(file.number) : file.number)});
      tracks.file_name.push_back(log_title(file, process));
    }
    tracks.pid = tracks.processes.front().pid;
    all.push_back(std::move(tracks));
  }
  return all;
}

}  // namespace lotus::tool
