// Keeps the runs that `top` shows, and adds new records to them at every update.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/top/live_figures.hpp"
#include "commands/top/live_folder.hpp"
#include "describe/described.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// Minimum number of received batches for a verdict.
inline constexpr std::size_t min_batches = 20;

/// The state of the processes that consume a run's batches.
enum class run_state : std::uint8_t { unknown, running, killed, ended };

/// What limits a run, and what to try; or why there is no verdict.
struct live_verdict {
  phrase words;
  std::optional<verdict> is = {};
};

/// A wait for a batch, or a time without one, that is unusually long.
struct live_hang {
  bool is_wait = false;
  std::int64_t ns = 0;  ///< how long it has lasted so far
};

/// The time of an operation of which samples show what it waited for.
struct live_wait {
  std::string name;  ///< with the S that it has in logs
  std::int64_t total_ns = 0;
  std::optional<std::int64_t> blocked_ns;  ///< nullopt: not measured
};

/// A loader of a run with one of the processes (such as ranks) that consume its batches. `top`
/// shows each such pair as a run of its own.
struct live_run {
  std::string dir;
  std::string info_dir;
  std::string loader;     ///< the loader's name; "" for the default loader
  std::string consumer;   ///< description such as "host, rank 0, pid 4711", if known
  std::uint32_t pid = 0;  ///< pid of the consumer, if known
  /// Number of one of the consumer's logs; 0 if there is only one consumer.
  std::uint64_t main = 0;
  live_figures now;
  std::vector<seen_process> processes;  ///< all processes of the run
  bool has_info_files = false;          ///< whether the run's processes wrote information files
  record_counts records;                ///< numbers of dropped and lost records of all processes
  std::int64_t looked_ns = 0;           ///< time of the last update, in ns since 1970
  std::int64_t clock_set_ns = 0;        ///< see live_folder::clock_set_ns()
  // The following values keep their last value if no new records arrive.
  std::optional<std::int64_t> last_batch_ns;
  std::int64_t usual_gap_ns = 0;
  std::int64_t longest_gap_ns = 0;
  live_verdict verdict;
  std::int64_t verdict_ns = 0;
  std::optional<std::int64_t> next_verdict_ns;
  // What operations wait for, updated together with the verdict.
  run_blocked_on blocked_on;
  std::vector<live_wait> waits;  ///< the operation with the most blocked time comes first

  run_state state() const;
  std::optional<live_hang> hang() const;
};

/// Describes the values of a run: the metrics, by their names, and the columns of the table of
/// runs.
const description<live_run>& description_of(const live_run*);

/// Returns "running", "was killed" or "has ended"; "-" if the state is unknown.
std::string_view words_of(run_state state);

class live_runs {
 public:
  live_runs(const std::vector<std::string>& dirs, const std::string& prefix,
            std::int64_t window_ns);

  /// Reads new records of all runs. Computes operations and verdict only for the run `chosen`.
  void look(std::size_t chosen);

  const std::vector<live_run>& all() const noexcept { return runs_; }
  /// Returns the CPU time that the last look() spent on computing a verdict. The CPU time for
  /// verdicts is limited, so most calls of look() compute no verdict.
  std::int64_t judging_ns() const noexcept { return judging_ns_; }
  /// Whether aggregated calls were seen in only one update, so that it is unknown when they
  /// happened.
  bool needs_second_reading() const;

 private:
  void look_once(std::size_t chosen);
  std::size_t index_of(const std::string& dir, const std::string& info_dir,
                       const std::string& loader, std::uint64_t main = 0, std::uint32_t pid = 0);
  void update_run(const live_folder& folder, const run_files& files, std::uint64_t main,
                  std::size_t chosen);
  std::size_t index_of_calls(const seen_calls& calls, const std::string& info_dir,
                             const run_processes& processes);
  void add_counted_calls(std::size_t chosen);

  std::vector<std::unique_ptr<live_folder>> folders_;
  std::vector<live_run> runs_;
  std::int64_t now_ns_ = 0;
  std::int64_t steady_ns_ = 0;  // the same moment on a clock that is never set
  std::int64_t judging_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_RUNS_HPP
