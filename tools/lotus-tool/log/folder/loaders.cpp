#include "log/folder/loaders.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

void join_loaders(std::vector<run_files>& runs, const std::set<std::string>& with_info) {
  std::map<std::string, std::vector<std::size_t>> of_run;  // by info_dir
  for (std::size_t i = 0; i < runs.size(); ++i) {
    run_files& run = runs[i];
    const fs::path path(run.dir);
    const std::string above = path.parent_path().string();
    const bool loader = with_info.count(run.dir) == 0 && with_info.count(above) != 0;
    run.info_dir = loader ? above : run.dir;
    if (loader) run.loader = printable(decode_name(path.filename().string()));
    of_run[run.info_dir].push_back(i);
  }
  for (const auto& [dir, members] : of_run) {
    for (const std::size_t to : members) {
      for (const std::size_t from : members) {
        if (from == to) continue;
        const std::vector<log_file>& theirs = runs[from].beside;
        runs[to].elsewhere.insert(runs[to].elsewhere.end(), theirs.begin(), theirs.end());
      }
    }
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [](const run_files& run) {
                              return run.files.empty() && run.beside.empty() &&
                                     run.aggregated.empty();
                            }),
             runs.end());
}

std::vector<run_files> whole_runs(const std::vector<run_files>& loaders) {
  std::vector<run_files> whole;
  for (const run_files& loader : loaders) {
    auto same = std::find_if(whole.begin(), whole.end(), [&loader](const run_files& run) {
      return run.info_dir == loader.info_dir;
    });
    if (same == whole.end()) {
      same = whole.insert(same, run_files());
      same->dir = same->info_dir = loader.info_dir;
      same->earlier_info = loader.earlier_info;
    }
    same->files.insert(same->files.end(), loader.files.begin(), loader.files.end());
    same->beside.insert(same->beside.end(), loader.beside.begin(), loader.beside.end());
  }
  return whole;
}

void find_consumers(run_files& run) {
  std::vector<log_file>& files = run.files;
  const auto is_main = [](const log_file& file) { return file.role == file_role::main; };
  if (std::count_if(files.begin(), files.end(), is_main) < 2) return;
  const run_processes info = run_processes::read(run.info_dir, run.earlier_info);
  std::map<const process_info*, std::uint32_t> consumers;
  for (const log_file& file : files) {
    if (!is_main(file)) continue;
    const process_info* const process = info.process_of(file.number);
    if (process == nullptr) return;
    consumers.try_emplace(process, static_cast<std::uint32_t>(consumers.size()));
  }
  if (consumers.size() < 2) return;
  std::vector<std::uint32_t> found;
  for (const log_file& file : files) {
    const process_info* process = info.process_of(file.number);
    constexpr int most_generations = 16;  // a damaged file may make a process its own ancestor
    for (int i = 0; i < most_generations && process != nullptr; ++i) {
      if (consumers.count(process) != 0) break;
      process = info.parent_of(*process);
    }
    const auto consumer = consumers.find(process);
    if (consumer == consumers.end()) return;
    found.push_back(consumer->second);
  }
  for (std::size_t i = 0; i < files.size(); ++i) files[i].consumer = found[i];
}

}  // namespace lotus::tool
