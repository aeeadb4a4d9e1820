// Keeps all runs that `top` shows, with the state that persists from one update to the next.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/top/live_figures.hpp"
#include "commands/top/living_folder.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"

namespace lotus::tool {

/// A verdict needs at least this many batches.
inline constexpr std::size_t least_batches = 20;

/// One loader of a run, or one of its consuming processes (such as a rank) if there are several.
struct live_run {
  std::string dir;
  std::string info_dir;
  std::string loader;      ///< the loader's name; "" for the default loader
  std::string consumer;    ///< "host, rank 0, pid 4711", if known
  std::uint32_t pid = 0;   ///< of the consumer, if known
  std::uint64_t main = 0;  ///< number of one of its logs; 0 if there is only one consumer
  live_figures now;
  std::vector<seen_process> processes;  ///< all processes of the run
  bool tells_of_itself = false;         ///< whether its processes wrote information files
  std::int64_t looked_ns = 0;           ///< time of the last look
  // The following values are kept even if no new records arrive.
  std::optional<std::int64_t> last_batch_ns;
  std::int64_t usual_gap_ns = 0;
  std::int64_t longest_gap_ns = 0;
  std::string verdict;  ///< a sentence
  std::int64_t verdict_ns = 0;
  std::optional<std::int64_t> next_verdict_ns;

  /// A title that distinguishes it from the other runs.
  std::string title() const;
  /// "lives", "was killed", "has ended"; "" if unknown.
  std::string state() const;
  /// A warning if a wait lasts, or no batch has arrived, for unusually long; otherwise "".
  std::string hang() const;

 private:
  std::int64_t longest_wait_ns() const;
  bool processes_unread() const;
};

class live_runs {
 public:
  live_runs(const std::vector<std::string>& dirs, const std::string& prefix,
            std::int64_t window_ns);

  /// Reads the new records of all runs. Measures operations only for the run at index `chosen`.
  void look(std::size_t chosen);

  const std::vector<live_run>& all() const noexcept { return runs_; }
  /// The CPU time that the last look spent on a verdict. It has its own budget, so not every look
  /// computes a verdict.
  std::int64_t judging_ns() const noexcept { return judging_ns_; }
  /// Whether a process has counted calls that were seen in only one look, so that their time is
  /// unknown.
  bool wants_another_look() const;

 private:
  std::size_t place_of(const run_files& files, std::uint64_t main, std::uint32_t pid);
  void take(const living_folder& folder, run_files files, std::uint64_t main, std::size_t chosen);
  std::size_t place_of_calls(const seen_calls& calls, const std::string& info_dir,
                             const run_processes& processes);
  void take_calls(std::size_t chosen);

  std::vector<std::unique_ptr<living_folder>> folders_;
  std::vector<live_run> runs_;
  std::int64_t now_ns_ = 0;
  std::int64_t judging_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP
