#include "log/folder/record_losses.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "lotus/folder/hidden_files.hpp"

namespace lotus::tool {
namespace {

/// Calls `each(ending, records)` for each ring file whose lost records no information file counts.
/// A damaged ring file is kept after its recovery, which has counted its lost records.
template <class Each>
void for_each_uncounted(const run_files& run, const run_processes& processes, Each each) {
  for (const auto& [ending, records] : run.lost_in_rings) {
    const process_info* const process = processes.process_named(ending);
    if (process == nullptr || process->records.lost == 0) each(ending, records);
  }
}

}  // namespace

record_counts counted_records(const run_files& run, const run_processes& processes) {
  record_counts all = processes.records();
  for_each_uncounted(run, processes,
                     [&](const std::string&, std::uint64_t records) { all.lost += records; });
  return all;
}

void report_losses(const run_files& run, diagnostic_log& diagnostics) {
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  if (const std::string left = processes.left(run.info_dir); !left.empty()) {
    diagnostics.warning(left);
  }
  const record_counts records = counted_records(run, processes);
  if (records.dropped > 0) diagnostics.warning(run.info_dir + ": " + dropped_text(records));
  if (records.lost > 0) diagnostics.warning(run.info_dir + ": " + lost_text(records.lost));
  if (records.whole_from_ns != 0) diagnostics.note(run.info_dir + ": " + deleted_text(records));
}

void add_lost_to_copies(const run_files& run, const std::string& to) {
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  for_each_uncounted(run, processes, [&](const std::string& ending, std::uint64_t records) {
    const std::string path =
        (std::filesystem::path(to) / (lotus::detail::run_info_start + ending)).string();
    std::ofstream copy(path, std::ios::binary | std::ios::app);
    copy << "lost " << records << '\n';
    if (!copy.flush()) throw input_error(path + ": cannot be written");
  });
}

}  // namespace lotus::tool
