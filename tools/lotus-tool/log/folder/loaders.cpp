#include "log/folder/loaders.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <utility>

#include "base/printable.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

using consumer_processes = std::map<const process_info*, std::uint32_t>;

/// Returns the index of the consumer to which the log with this number belongs. The consumer is the
/// process that wrote the log or, if that process does not consume batches, its nearest ancestor
/// process that does.
std::optional<std::uint32_t> consumer_of(std::uint64_t number, const run_processes& info,
                                         const consumer_processes& consumers) {
  const process_info* process = info.process_of(number);
  constexpr int max_generations = 16;  // a damaged file may name a process as its own ancestor
  for (int i = 0; i < max_generations && process != nullptr; ++i) {
    const auto found = consumers.find(process);
    if (found != consumers.end()) return found->second;
    process = info.parent_of(*process);
  }
  return std::nullopt;
}

bool is_main(const log_file& file) noexcept {
  return file.role == file_role::main;
}

}  // namespace

void join_loaders(std::vector<run_files>& runs, const std::set<std::string>& with_info) {
  std::map<std::string, std::vector<std::size_t>> of_run;  // indexes in `runs`, by info_dir
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
        const std::vector<log_file>& theirs = runs[from].side_files;
        runs[to].elsewhere.insert(runs[to].elsewhere.end(), theirs.begin(), theirs.end());
      }
    }
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(), std::mem_fn(&run_files::empty)), runs.end());
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
      same->wanted = loader.wanted;
    }
    same->files.insert(same->files.end(), loader.files.begin(), loader.files.end());
    same->side_files.insert(same->side_files.end(), loader.side_files.begin(),
                            loader.side_files.end());
  }
  return whole;
}

void find_consumers(run_files& run) {
  std::vector<log_file>& files = run.files;
  if (std::count_if(files.begin(), files.end(), is_main) < 2) return;
  const run_processes info = run_processes::read(run.info_dir, run.earlier_info);
  consumer_processes consumers;
  for (const log_file& file : files) {
    if (!is_main(file)) continue;
    const process_info* const process = info.process_of(file.number);
    if (process == nullptr) return;
    consumers.try_emplace(process, static_cast<std::uint32_t>(consumers.size()));
  }
  if (consumers.size() < 2) return;
  std::vector<std::uint32_t> found;
  for (const log_file& file : files) {
    const std::optional<std::uint32_t> consumer = consumer_of(file.number, info, consumers);
    if (!consumer) return;
    found.push_back(*consumer);
  }
  for (std::size_t i = 0; i < files.size(); ++i) files[i].consumer = found[i];
}

std::vector<consumer_logs> logs_of_consumers(const run_files& run) {
  const run_processes info = run_processes::read(run.info_dir, run.earlier_info);
  consumer_processes consumers;
  std::map<std::uint32_t, consumer_logs> found;
  for (const log_file& file : run.files) {
    consumer_logs& logs = found[file.consumer];
    logs.files.files.push_back(file);
    logs.files.files.back().consumer = 0;
    const process_info* const process = info.process_of(file.number);
    if (!is_main(file) || process == nullptr) continue;
    consumers.try_emplace(process, file.consumer);
    if (!logs.rank) logs.rank = process->rank;
  }
  for (const log_file& file : run.side_files) {
    std::optional<std::uint32_t> consumer = consumer_of(file.number, info, consumers);
    if (found.size() == 1) consumer = found.begin()->first;
    if (consumer) found[*consumer].files.side_files.push_back(file);
  }
  std::vector<consumer_logs> all;
  for (auto& [consumer, logs] : found) {
    logs.files.dir = run.dir;
    logs.files.loader = run.loader;
    logs.files.info_dir = run.info_dir;
    logs.files.earlier_info = run.earlier_info;
    if (found.size() == 1) logs.files.elsewhere = run.elsewhere;
    logs.files.window = run.window;
    logs.files.wanted = run.wanted;
    logs.files.part = run.part;
    all.push_back(std::move(logs));
  }
  return all;
}

}  // namespace lotus::tool
