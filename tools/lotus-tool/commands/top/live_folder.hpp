// Reads the last seconds of all runs in a folder while they are being recorded.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <lotus/folder/log_appender.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "commands/top/growing_blocks.hpp"
#include "commands/top/growing_log.hpp"
#include "commands/top/line_window.hpp"
#include "commands/top/live_ring.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// State of a process whose ring file exists.
struct seen_process {
  std::uint32_t pid = 0;
  live_ring::state state = live_ring::state::running;
  std::uint64_t in_ring = 0;          ///< number of records that are not in any log yet
  std::uint64_t in_memory = 0;        ///< number of records that are only in the process's memory
  std::int64_t waiting_since_ns = 0;  ///< start of the longest current wait for a batch; 0: none
};

/// An aggregated operation: its calls in one process in the last seconds.
struct seen_calls {
  std::string dir;  ///< folder of the run or of its loader
  /// Ending of the names of the process's ring file and of its information file.
  std::string ring;
  std::string name;  ///< decoded name, which begins with the S of names in logs
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t max_ns = 0;       ///< longest call in ns, inexact by up to 0.8 %
  std::int64_t interval_ns = 0;  ///< length in ns of the interval in which these calls were counted
};

/// Reads new data from logs and rings below a folder, and keeps the records of the last seconds,
/// which are called the window.
class live_folder {
 public:
  /// Maximum size in bytes of the lines of all logs; if it is exceeded, the window gets shorter.
  static constexpr std::size_t max_bytes = std::size_t{64} << 20U;

  live_folder(std::string dir, std::string prefix, std::int64_t window_ns)
      : dir_(std::move(dir)), prefix_(std::move(prefix)), window_ns_(window_ns) {}

  /// Reads the new data. Throws input_error if the folder cannot be read.
  /// @param now_ns  present time in ns since 1970.
  void look(std::int64_t now_ns);

  /// Returns the records of the last seconds as runs whose logs are in memory instead of files.
  std::vector<run_files> runs() const;

  /// Returns the beginning of the window, which ends now or, if no process is running any more,
  /// with the last record.
  std::int64_t begin_ns() const noexcept { return begin_ns_; }
  std::int64_t end_ns() const noexcept { return end_ns_; }
  /// Returns the folders that contain ring files of processes that are running or were killed.
  std::set<std::string> with_processes() const;
  /// Whether this folder contains information files, which show when a process has ended.
  bool has_info_files(const std::string& info_dir) const { return with_info_.count(info_dir) != 0; }
  /// Returns the aggregated calls of all processes that have recorded to `info_dir` or to the
  /// folders of its loaders. For a process that has ended, these are the values of the last update.
  std::vector<seen_calls> calls(const std::string& info_dir) const;
  /// Whether some aggregated calls were seen in only one update. They have no times, so only the
  /// difference to a second update shows which calls are recent.
  bool needs_second_reading() const;
  /// Returns the processes of the run whose information files are in `info_dir`.
  std::vector<seen_process> processes(const std::string& info_dir) const;
  /// Returns how many records were only in the memory of killed processes; see
  /// run_files::lost_in_rings.
  std::map<std::string, std::uint64_t> lost_in_rings(const std::string& info_dir) const;

 private:
  struct kept_blocks {
    log_file what;
    growing_blocks reader;
    log_extent on_disk;
  };
  struct kept_log {
    log_file what;
    growing_log reader;
    line_window lines;
    log_extent on_disk;  ///< state of the file; the inode is 0 if the file does not exist
    std::vector<std::string> coming = {};  ///< new lines that the current update found in a ring
    /// The compact log to which the process will write the lines in `coming`; null for a text log.
    kept_blocks* blocks = nullptr;
  };
  struct kept_ring {
    std::string dir;
    std::unique_ptr<live_ring> ring;
    seen_process process;
    bool there = true;
    counted_window counted;
    double ns_per_tick = 0;
  };

  void walk();
  void forget(const std::string& path, kept_ring& ring);
  void found(const std::filesystem::directory_entry& entry);
  kept_log* log_at(const std::string& path);
  kept_blocks* compact_at(const std::string& path);
  std::string log_path(const std::string& folder, lotus::detail::log_role role, bool compact,
                       std::uint64_t number) const;
  void read_rings();
  void add_ring_contents(const kept_ring& from, ring_look look);
  bool is_held(const log_file& log) const;
  void read_logs();
  void read_blocks(const std::string& path, kept_blocks& log);
  void place_window(std::int64_t now_ns);

  std::string dir_;
  std::string prefix_;
  std::int64_t window_ns_;
  // Text logs by path. The lines of compact logs are stored here too, under the paths that text
  // logs with these lines would have.
  std::map<std::string, kept_log> logs_;
  std::map<std::string, kept_blocks> compact_;  // compact logs by path
  std::map<std::string, kept_ring> rings_;      // rings by path
  // Rings of ended processes by path, if they contain aggregated calls of the time that is shown.
  std::map<std::string, kept_ring> ended_;
  std::set<std::string> with_info_;
  // Folders and numbers of the logs that are not read in the current update.
  std::set<std::pair<std::string, std::uint64_t>> held_;
  std::optional<std::int64_t> last_ns_;  // end time of the latest record
  // Beginning of the first window; logs whose last record is older are ignored.
  std::optional<std::int64_t> first_begin_ns_;
  std::int64_t begin_ns_ = 0;  // beginning of the window; place_window() sets it and end_ns_
  std::int64_t end_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP
