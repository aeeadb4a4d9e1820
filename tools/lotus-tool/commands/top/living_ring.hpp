// Reads the ring file of a running process: the records that are not in any log yet.
//
// The process is not disturbed: the file is only read, and its lock is not taken. A copy is used
// only if no commit happened while it was made. So each record is seen either in the ring or in a
// log, and the commit decides in which.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVING_RING_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVING_RING_HPP

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
#include "aggregates/live/living_counts.hpp"

namespace lotus::tool {

/// A log as identified in its ring.
struct ring_log {
  std::string folder;  ///< of the loader, relative to the run's folder; "" for the default loader
  lotus::detail::log_role role = lotus::detail::log_role::main;
  std::uint32_t number = 0;
};

/// The result of a look at a ring file.
struct ring_look {
  struct new_lines {
    ring_log log;
    std::string lines;  ///< of records that are new since the last look and not in any log
  };
  struct committed {
    ring_log log;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;  ///< valid bytes; records after them are still in the ring
  };
  std::vector<new_lines> lines;
  std::vector<committed> logs;
  std::vector<std::uint32_t> held;  ///< numbers of logs whose state is unknown in this update
  std::uint64_t left = 0;           ///< records in the rings
  std::int64_t waiting_since_ns =
      0;  ///< when the longest current wait for a batch began; 0: no thread waits
  /// What its process has counted since the recording began; nullopt if it does not count.
  std::optional<counted_by_name> counted;
};

/// One ring file, which is read repeatedly. Its content is validated before it is used.
class living_ring {
 public:
  enum class state : std::uint8_t {
    living,
    dead,        ///< the process was killed; its remaining records can be recovered
    gone,        ///< all its records are in the logs
    unreadable,  ///< not a ring file, from another version, or not permitted
  };

  explicit living_ring(std::string path) : path_(std::move(path)) {}
  living_ring(const living_ring&) = delete;
  living_ring& operator=(const living_ring&) = delete;
  ~living_ring();

  /// Records that an earlier look returned are not returned again.
  state look(ring_look& to);

  /// Read from the file; valid after the first look.
  std::uint32_t pid() const noexcept { return pid_; }
  const std::string& prefix() const noexcept { return prefix_; }
  /// Whether the process writes its records to a compact log.
  bool compact() const noexcept { return compact_; }
  /// When the recording began, in ns since 1970.
  std::int64_t begun_ns() const noexcept { return begun_ns_; }
  /// The duration of one tick of the clock that the process counts with.
  double ns_per_tick() const;

 private:
  struct place {
    std::uint64_t at;
    std::uint64_t bytes;
    std::uint64_t seen[lotus::detail::lanes];  ///< records before it were returned
    std::uint32_t loader;                      ///< the loader of the main lane's next records
    bool looked_at;
  };
  struct names_place {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint64_t done = 0;  ///< bytes of names that were read
  };

  bool open();
  bool read_header();
  bool read_clock();
  void read_blocks();
  void read_names();
  std::string_view line_start(std::uint64_t id);
  void look_at(place& ring, ring_look& to);
  bool try_ring(place& ring, ring_look& to);
  bool is_still(const place& ring, const lotus::detail::commit_point& before);
  std::string folder_of(std::uint32_t loader);

  std::string path_;
  int fd_ = -1;
  bool checked_ = false;
  std::uint32_t pid_ = 0;
  std::string prefix_;
  bool compact_ = false;
  std::int64_t begun_ns_ = 0;
  std::uint64_t next_block_ = 0;  ///< where the first block begins that was not read yet
  std::deque<place> rings_;       // a deque, because it may grow while one of them is read
  living_counts counts_;
  names_place names_block_;        ///< the last block of names
  std::deque<std::string> names_;  ///< beginnings of lines, by id - 1
  std::size_t names_bytes_ = 0;
  lotus::detail::ring_copy copy_;
  std::unique_ptr<lotus::detail::ring_file_header> header_;
  std::unique_ptr<lotus::detail::ring_block> again_;
  std::unique_ptr<lotus::detail::drain_buffer> buffer_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVING_RING_HPP
