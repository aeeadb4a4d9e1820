// Analyzes the traces of several ranks (processes of a distributed training), finds the logs that
// belong to each, and compares the ranks.
#ifndef LOTUS_TOOL_ACCELERATOR_RANKS_HPP
#define LOTUS_TOOL_ACCELERATOR_RANKS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/analysis.hpp"
#include "accelerator/trace/device_trace.hpp"
#include "base/diagnostics.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/log_files.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A function that returns the run that Lotus recorded of the program in a trace, read with
/// run_parts::operations; null if there is none.
using run_of_trace = std::function<std::shared_ptr<const run_data>(const device_trace&)>;

/// Analyzes traces one after the other, so that only one is in memory at a time.
class rank_collector {
 public:
  rank_collector(const analysis_options& options, run_of_trace run, diagnostic_log& diagnostics)
      : options_(options), run_(std::move(run)), diagnostics_(diagnostics) {}

  /// Adds the traces in a file. Throws input_error.
  void add(const std::string& path);

  /// Adds the traces in a folder. Ignores files that are not traces, with a note, and traces that
  /// `lotus-tool viz` wrote. If a rank has several traces, uses the last one in natural order.
  /// @param below  whether to search all subfolders too.
  void add_folder(const std::string& dir, bool below);

  /// Reports damaged traces to another log than the constructor's.
  void report_damage_to(diagnostic_log& diagnostics) noexcept { damage_ = &diagnostics; }

  /// Returns the analyses in order of their ranks.
  std::vector<accelerator_analysis> take();

 private:
  void analyze(device_trace&& trace);
  void add_found(const std::string& path);

  analysis_options options_;
  run_of_trace run_;
  diagnostic_log& diagnostics_;
  diagnostic_log* damage_ = &diagnostics_;
  std::vector<accelerator_analysis> found_;
};

/// Analyzes the traces in the run's folder. Returns an empty list if none of them contains work of
/// an accelerator during the run.
/// @param run          read with run_parts::operations.
/// @param diagnostics  gets what is wrong in traces.
std::vector<accelerator_analysis> find_accelerators(const run_data& run,
                                                    diagnostic_log& diagnostics);

/// Reads a run. If its logs contain no waits for batches, takes them from a trace in its folder,
/// and says so.
run_data read_run_and_waits(const run_files& run, run_parts parts, diagnostic_log& diagnostics);

/// Returns whether there are devices and all worked during at least 90 % of the run, not counting
/// communication. Then a faster input pipeline could gain at most a tenth of the run's time.
bool are_busy(const std::vector<accelerator_analysis>& ranks, const run_data& run) noexcept;

/// What a rank is called: by its number, by that of its only process, or by the trace's file.
struct rank_name {
  std::string_view word;  ///< the word before the number; "" before a file
  std::string id;         ///< the number, or the name or path of the file

  std::string text() const { return std::string(word) + id; }
  bool operator==(const rank_name& of) const { return word == of.word && id == of.id; }
};

/// Shows which rank makes the other ranks wait. When ranks communicate, each rank waits for the
/// slowest one. Therefore all ranks take equally long for a step, and the slowest rank is the one
/// that spends the least time in communication.
struct rank_comparison {
  std::vector<rank_name> names;
  std::vector<std::int64_t> own_ns;  ///< time outside communication, in total or per step
  bool by_step = false;              ///< whether own_ns is per profiler step
  /// The rank that spends the most time outside communication (own_ns), if this time is 5 % above
  /// the median of the other ranks, and not by chance.
  std::optional<std::size_t> slowest;
  std::int64_t others_ns = 0;  ///< the median of the other ranks' own_ns
  /// The rank whose device waits longest for batches, if it waits for more than 5 % of its time.
  std::optional<std::size_t> waits_for_data;
  /// The rank whose verdict is shown: `slowest`, or else the rank whose device is idle longest.
  std::size_t decisive = 0;
};

/// Compares ranks.
/// @param ranks  at least one.
rank_comparison compare_ranks(const std::vector<accelerator_analysis>& ranks);

/// The logs of all ranks in one or several runs. All ranks may record to one folder, or each rank
/// to its own.
class rank_logs {
 public:
  explicit rank_logs(const std::vector<run_files>& runs);

  /// Returns the logs that may belong to a trace. Searches the logs in the trace's folder or, if
  /// there are none, all logs. Among these, prefers logs of the trace's rank, and then logs of a
  /// process in the trace. The result points into this object.
  std::vector<const run_files*> of(const device_trace& trace) const;

 private:
  std::vector<consumer_logs> all_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_RANKS_HPP
