// All runs that `top` shows, and what is remembered of them from one look to the next.
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

/// Below it nothing is said of what bounds a run.
inline constexpr std::size_t least_batches = 20;

/// A loader of a run, of several consuming processes one, such as a rank.
struct live_run {
  std::string dir;
  std::string info_dir;
  std::string loader;      ///< its name; "" of the default one
  std::string consumer;    ///< "host, rank 0, pid 4711", where it is known
  std::uint32_t pid = 0;   ///< of the consumer, where it is known
  std::uint64_t main = 0;  ///< number of a log of the consumer; 0 where the run has only one
  live_figures now;
  std::vector<seen_process> processes;  ///< of all its run
  bool tells_of_itself = false;         ///< its processes do
  std::int64_t looked_ns = 0;           ///< when that was
  // Remembered also when nothing comes any more.
  std::optional<std::int64_t> last_batch_ns;
  std::int64_t usual_gap_ns = 0;
  std::int64_t longest_gap_ns = 0;
  std::string verdict;  ///< a sentence
  std::int64_t verdict_ns = 0;
  std::optional<std::int64_t> next_verdict_ns;

  /// Which of several it is.
  std::string title() const;
  /// "lives", "was killed", "has ended"; "" where its processes do not tell.
  std::string state() const;
  /// That a wait lasts, or no batch has come, for longer than ever before; "" where that is not so.
  std::string hang() const;

 private:
  std::int64_t longest_wait_ns() const;
  bool processes_unread() const;
};

class live_runs {
 public:
  live_runs(const std::vector<std::string>& dirs, const std::string& prefix,
            std::int64_t window_ns);

  /// Reads what is new. The whole is told of the chosen run only.
  void look(std::size_t chosen);

  const std::vector<live_run>& all() const noexcept { return runs_; }
  /// CPU time that a verdict took at the last look; it has a share of its own, and is not always
  /// made.
  std::int64_t judging_ns() const noexcept { return judging_ns_; }
  /// Whether processes count calls of which one look does not tell when they were.
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
