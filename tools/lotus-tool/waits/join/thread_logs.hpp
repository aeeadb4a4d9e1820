// Finds the logs that belong to a thread id.
#ifndef LOTUS_TOOL_WAITS_JOIN_THREAD_LOGS_HPP
#define LOTUS_TOOL_WAITS_JOIN_THREAD_LOGS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "log/process_info.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

class thread_logs {
 public:
  explicit thread_logs(const run_data& run)
      : processes_(run_processes::read(run.files->info_dir, run.files->earlier_info)) {
    for (std::size_t f = 0; f < run.files->files.size(); ++f) {
      const std::uint64_t number = run.files->files[f].number;
      const process_info* const process = processes_.process_of(number);
      logs_[process != nullptr ? process->thread_of(number) : number].emplace_back(f, process);
    }
  }

  /// Returns the indices of a thread's logs. Threads in different containers may have the same id,
  /// so only logs of the given process are returned if there are any. If several threads had the
  /// same id one after another, returns the logs of all, because their times do not overlap.
  std::vector<std::size_t> of(std::uint64_t tid, const std::string& process_ending) const {
    const auto found = logs_.find(tid);
    if (found == logs_.end()) return {};
    const process_info* const own = processes_.process_named(process_ending);
    std::vector<std::size_t> all;
    std::vector<std::size_t> of_process;
    for (const auto& [file, process] : found->second) {
      all.push_back(file);
      if (process == own) of_process.push_back(file);
    }
    return of_process.empty() ? all : of_process;
  }

 private:
  run_processes processes_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::size_t, const process_info*>>> logs_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_THREAD_LOGS_HPP
