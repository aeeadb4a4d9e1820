// Reads the last seconds of all runs in a folder while they are being recorded.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// Returns the time of a clock in ns. For CLOCK_REALTIME, this is the time since 1970.
inline std::int64_t time_of(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

enum class ring_state : std::uint8_t {
  running,
  dead,        ///< the process was killed; its remaining records can be recovered
  gone,        ///< all records of the process are in its logs
  unreadable,  ///< not a ring file, of another version, or without permission to read
};

/// What a ring file said about one log.
struct ring_log {
  /// Folder of the loader, relative to the run's folder; "" for the default loader.
  std::string folder;
  lotus::detail::log_role role = lotus::detail::log_role::main;
  std::uint32_t number = 0;
  std::uint64_t inode = 0;  ///< 0 if the process has not created the log yet
  /// Number of bytes of complete records in the log; all later records are in `lines`.
  std::uint64_t bytes = 0;
  std::string lines;  ///< lines of the records that are in no log yet
};

/// State of a process whose ring file exists.
struct seen_process {
  std::uint32_t pid = 0;
  ring_state state = ring_state::unreadable;
  std::uint64_t in_ring = 0;  ///< number of records in the rings that are not in any log yet
  /// Number of records that are only in the process's memory; they are lost if it was killed.
  std::uint64_t in_memory = 0;
  std::int64_t waiting_since_ns = 0;  ///< start of the longest current wait for a batch; 0: none
};

/// The content of a ring file at one moment.
struct live_ring {
  seen_process process;
  std::string prefix;
  bool compact = false;       ///< whether the process writes its records to compact logs
  std::int64_t began_ns = 0;  ///< when the recording began, in ns since 1970
  double ns_per_tick = 0;     ///< of the clock that measures aggregated calls
  std::vector<ring_log> logs;
  /// The process's aggregated calls since the recording began.
  counted_by_name counted;
};

/// Reads a ring file. Validates its content before using it.
live_ring read_live_ring(const std::string& path);

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

/// Finds the runs below a folder, and narrows them to the last seconds, which are called the
/// window. The records of running processes that are in no log yet are read from their rings and
/// become the tails of the logs, so that all readers of logs get them.
class live_folder {
 public:
  /// Maximum number of bytes that are read of one log and of all logs; if it is exceeded, the
  /// window gets shorter.
  static constexpr std::uint64_t max_log_bytes = std::uint64_t{8} << 20U;
  static constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20U;

  live_folder(std::string dir, std::string prefix, std::int64_t window_ns)
      : dir_(std::move(dir)), prefix_(std::move(prefix)), window_ns_(window_ns) {}

  /// Finds what there is now. Throws input_error if the folder cannot be read.
  /// @param now_ns     present time in ns since 1970.
  /// @param steady_ns  the same moment on a clock that is never set.
  void look(std::int64_t now_ns, std::int64_t steady_ns);

  /// Returns by how many ns the computer's clock was last set forward between two looks, or, if
  /// negative, back; 0 if it was not set.
  std::int64_t clock_set_ns() const noexcept { return clock_set_ns_; }

  /// Returns the runs that have records since the first window.
  const std::vector<run_files>& runs() const noexcept { return files_.runs; }

  /// Returns the beginning of the window, which ends now or, if no process is running any more,
  /// with the last record.
  std::int64_t begin_ns() const noexcept { return begin_ns_; }
  std::int64_t end_ns() const noexcept { return end_ns_; }
  /// Returns the folders that contain ring files of processes that are running or were killed.
  std::set<std::string> with_processes() const;
  /// Whether this folder contains information files, which show when a process has ended.
  bool has_info_files(const std::string& info_dir) const {
    return files_.with_info.count(info_dir) != 0;
  }
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
  struct kept_ring {
    explicit kept_ring(std::int64_t window_ns) : counted(window_ns) {}

    std::string dir;
    seen_process process;
    bool there = true;  ///< whether the file existed in this update
    counted_window counted;
    double ns_per_tick = 0;
  };

  void read_rings(const std::string& dir, logs_by_folder& logs);
  void add_ring(const std::string& dir, live_ring&& ring, logs_by_folder& logs) const;
  void notice_setting(std::int64_t now_ns, std::int64_t steady_ns);
  void place_window(std::int64_t now_ns);
  void forget_old();

  std::string dir_;
  std::string prefix_;
  std::int64_t window_ns_;
  live_files files_;
  // Rings by path; also of ended processes, if they counted aggregated calls in the window.
  std::map<std::string, kept_ring> rings_;
  std::set<std::string> with_records_;     // logs that had records in a window
  std::optional<std::int64_t> last_ns_;    // end time of the latest record
  std::optional<std::int64_t> offset_ns_;  // now_ns - steady_ns of the last look
  std::int64_t clock_set_ns_ = 0;
  std::int64_t begin_ns_ = 0;  // beginning of the window; place_window() sets it and end_ns_
  std::int64_t end_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_FOLDER_HPP
