#include "accelerator/rank_logs.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

using candidates = std::vector<const consumer_logs*>;

/// Keeps the candidates for which `is_better` returns true; if it returns true for none, keeps all.
template <class IsBetter>
void prefer(candidates& of, IsBetter is_better) {
  candidates better;
  for (const consumer_logs* const logs : of) {
    if (is_better(*logs)) better.push_back(logs);
  }
  if (!better.empty()) of = std::move(better);
}

}  // namespace

rank_logs::rank_logs(const std::vector<run_files>& runs) {
  for (const run_files& run : runs) {
    for (consumer_logs& logs : logs_of_consumers(run)) all_.push_back(std::move(logs));
  }
}

std::vector<const run_files*> rank_logs::of(const device_trace& trace) const {
  candidates possible;
  for (const consumer_logs& logs : all_) {
    const bool other_rank = logs.rank && trace.rank && *logs.rank != *trace.rank;
    if (!other_rank) possible.push_back(&logs);
  }
  const fs::path parent = fs::path(trace.path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  prefer(possible, [&](const consumer_logs& logs) {
    std::error_code error;
    return fs::equivalent(logs.files.info_dir, folder, error);
  });
  if (trace.rank)
    prefer(possible, [&](const consumer_logs& logs) { return logs.rank == trace.rank; });
  std::set<std::uint64_t> processes;
  for (const host_thread& thread : trace.threads) processes.insert(thread.process);
  prefer(possible, [&](const consumer_logs& logs) {
    return std::any_of(logs.files.files.begin(), logs.files.files.end(),
                       [&](const log_file& file) { return processes.count(file.number) != 0; });
  });
  std::vector<const run_files*> found;
  found.reserve(possible.size());
  for (const consumer_logs* const logs : possible) found.push_back(&logs->files);
  return found;
}

}  // namespace lotus::tool
