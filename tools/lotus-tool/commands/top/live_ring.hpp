// Reads the records in the ring file of a running process that are not in any log yet.
//
// The process is not disturbed: its ring file is only read and not locked. While a copy is made,
// the process may commit records, which means that it declares them to be in a log. Such a copy is
// discarded, so each record is seen exactly once, either in the ring or in a log.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <lotus/format/drain.hpp>
#include <lotus/recovery/dead_ring.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "aggregates/live/live_counts.hpp"

namespace lotus::tool {

/// Identifies a log by its loader's folder, its role and its number.
struct ring_log {
  /// Folder of the loader, relative to the run's folder; "" for the default loader.
  std::string folder;
  lotus::detail::log_role role = lotus::detail::log_role::main;
  std::uint32_t number = 0;
};

/// The result of reading a ring file once.
struct ring_look {
  struct new_lines {
    ring_log log;
    std::string lines;  ///< lines of records that are new since the last reading and in no log
  };
  struct committed {
    ring_log log;
    std::uint64_t inode = 0;
    /// Number of bytes of complete records in the log; all later records are still in the ring.
    std::uint64_t bytes = 0;
  };
  std::vector<new_lines> lines;
  std::vector<committed> logs;
  /// Numbers of the logs that the process changed while its ring was read. Do not read these logs.
  std::vector<std::uint32_t> held;
  std::uint64_t left = 0;  ///< number of records in the rings that are not in a log
  /// Number of records that are only in the process's memory; they are lost if it was killed.
  std::uint64_t in_memory = 0;
  std::int64_t waiting_since_ns = 0;  ///< start of the longest current wait for a batch; 0: none
  /// The process's aggregated calls since the recording began; nullopt if there are none.
  std::optional<counted_by_name> counted;
};

/// Reads one ring file repeatedly. Validates its content before using it.
class live_ring {
 public:
  enum class state : std::uint8_t {
    running,
    dead,        ///< the process was killed; its remaining records can be recovered
    gone,        ///< all records of the process are in its logs
    unreadable,  ///< not a ring file, of another version, or without permission to read
  };

  explicit live_ring(std::string path) : path_(std::move(path)) {}
  live_ring(const live_ring&) = delete;
  live_ring& operator=(const live_ring&) = delete;
  ~live_ring();

  /// Reads the records that were added to the file since the last call. Records that an earlier
  /// call returned are not returned again.
  state look(ring_look& to);

  /// The process's id, which is read from the file; valid after the first look().
  std::uint32_t pid() const noexcept { return pid_; }
  const std::string& prefix() const noexcept { return prefix_; }
  /// Whether the process writes its records to a compact log.
  bool compact() const noexcept { return compact_; }
  /// When the recording began, in ns since 1970; valid after the first look().
  std::int64_t began_ns() const noexcept { return began_ns_; }
  /// Returns the ns per tick of the clock that measures aggregated calls.
  double ns_per_tick() const;

 private:
  struct seen_ring {
    std::uint64_t at;
    std::uint64_t bytes;
    /// For each lane (0: normal code, 1: signal handlers), the position after the last returned
    /// record.
    std::uint64_t seen[lotus::detail::lanes];
    std::uint32_t loader;  ///< loader of the next records that are not from signal handlers
    bool was_read;
  };
  struct names_place {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint64_t done = 0;  ///< number of bytes of the block that were already read
  };

  bool open();
  bool read_header();
  bool read_clock();
  void read_blocks();
  void read_names();
  std::string_view line_start(std::uint64_t id);
  void read_ring(seen_ring& ring, ring_look& to);
  bool try_ring(seen_ring& ring, ring_look& to);
  bool is_unchanged(const seen_ring& ring, const lotus::detail::commit_point& before);
  std::string folder_of(std::uint32_t loader);

  std::string path_;
  int fd_ = -1;
  bool checked_ = false;
  std::uint32_t pid_ = 0;
  std::string prefix_;
  bool compact_ = false;
  std::int64_t began_ns_ = 0;
  std::uint64_t next_block_ = 0;  ///< position of the first block that was not read yet
  std::deque<seen_ring> rings_;   // a deque, because it may grow while one of its elements is read
  live_counts counts_;
  names_place names_block_;  ///< the block of names that was added last
  /// For each name, the beginning of a log line with this name; the index is the name's id - 1.
  std::deque<std::string> names_;
  std::size_t names_bytes_ = 0;
  lotus::detail::ring_copy copy_;
  std::unique_ptr<lotus::detail::ring_file_header> header_;
  std::unique_ptr<lotus::detail::ring_block> reread_;
  std::unique_ptr<lotus::detail::drain_buffer> buffer_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP
