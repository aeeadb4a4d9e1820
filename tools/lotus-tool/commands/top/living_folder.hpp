// The last seconds of all runs in a folder, while they are being recorded.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVING_FOLDER_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVING_FOLDER_HPP

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
#include "commands/top/living_ring.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// A process whose ring file exists.
struct seen_process {
  std::uint32_t pid = 0;
  living_ring::state state = living_ring::state::living;
  std::uint64_t in_ring = 0;  ///< records that are not in any log yet
  std::int64_t waiting_since_ns =
      0;  ///< when the longest current wait for a batch began; 0: no thread waits
};

/// Calls that a process counted in the last seconds without recording them.
struct seen_calls {
  std::string dir;   ///< folder of the run, or of its loader
  std::string ring;  ///< the end of its ring file's name, which its information file's name shares
  std::string name;  ///< decoded, including its S
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t max_ns = 0;      ///< within 0.8 %
  std::int64_t stretch_ns = 0;  ///< length of the interval in which these calls were counted
};

/// Reads what is new in the logs and rings of a folder and its subfolders, and keeps the last
/// seconds.
class living_folder {
 public:
  /// The limit for the lines of all logs; beyond it the window becomes shorter.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20U;

  living_folder(std::string dir, std::string prefix, std::int64_t window_ns)
      : dir_(std::move(dir)), prefix_(std::move(prefix)), window_ns_(window_ns) {}

  /// Throws input_error if the folder cannot be read.
  /// @param now_ns  since 1970.
  void look(std::int64_t now_ns);

  /// Returns the records of the last seconds as runs whose logs are in memory.
  std::vector<run_files> runs() const;

  /// The window ends now, or with the last record if no process is running any more.
  std::int64_t begin_ns() const noexcept { return begin_ns_; }
  std::int64_t end_ns() const noexcept { return end_ns_; }
  /// The folders with ring files of processes that run or were killed.
  std::set<std::string> with_processes() const;
  /// Whether processes wrote information files in this folder. They show when a process has ended.
  bool is_told_of(const std::string& info_dir) const { return with_info_.count(info_dir) != 0; }
  /// The counted calls of processes in the folders of this run: `info_dir` and its loaders'
  /// folders. For a process that has ended, the values of the last look.
  std::vector<seen_calls> calls(const std::string& info_dir) const;
  /// Whether another look is needed to know when counted calls happened, because they were seen in
  /// only one look.
  bool wants_another_look() const;
  /// The processes of the run whose information files are in `info_dir`.
  std::vector<seen_process> processes(const std::string& info_dir) const;

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
    log_extent on_disk;                    ///< inode 0: the file does not exist
    std::vector<std::string> coming = {};  ///< new lines that this update found in the ring
    kept_blocks* blocks = nullptr;         ///< the compact log that the lines will be written to
  };
  struct kept_ring {
    std::string dir;
    std::unique_ptr<living_ring> ring;
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
  void look_at_rings();
  void take(const kept_ring& from, ring_look look);
  bool is_held(const log_file& log) const;
  void read_logs();
  void read_blocks(const std::string& path, kept_blocks& log);
  void place_window(std::int64_t now_ns);

  std::string dir_;
  std::string prefix_;
  std::int64_t window_ns_;
  std::map<std::string, kept_log> logs_;  // by path; lines of compact logs: by the text log's path
  std::map<std::string, kept_blocks> compact_;  // by path
  std::map<std::string, kept_ring> rings_;      // by path
  std::map<std::string, kept_ring> ended_;      // by path; ended, with counted calls in the window
  std::set<std::string> with_info_;
  std::set<std::pair<std::string, std::uint64_t>> held_;  // logs that are not read in this look
  std::optional<std::int64_t> last_ns_;                   // end of the latest record
  std::optional<std::int64_t> first_begin_ns_;  // of the first look; older logs are ignored
  std::int64_t begin_ns_ = 0;  // of the window; set by place_window(), as is end_ns_
  std::int64_t end_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVING_FOLDER_HPP
