// The ring file of a process that lives: what it recorded that stands in no log yet.
//
// Nothing is done to the process: the file is only read, and no lock of it is taken. What is read
// while the process goes on is kept only where no commit came in between: so each record is seen
// in the ring or in a log, and which of both the commit says.
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

/// A log as its ring knows it.
struct ring_log {
  std::string folder;  ///< of the loader, in the run's; "" of the default one
  lotus::detail::log_role role = lotus::detail::log_role::main;
  std::uint32_t number = 0;
};

/// What a look at a ring file found.
struct ring_look {
  struct new_lines {
    ring_log log;
    std::string lines;  ///< of records that were not there at the last look and are in no log
  };
  struct committed {
    ring_log log;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;  ///< what is beyond belongs to records that are in the ring
  };
  std::vector<new_lines> lines;
  std::vector<committed> logs;
  std::vector<std::uint32_t> held;  ///< numbers of logs of which now nothing can be told
  std::uint64_t left = 0;           ///< records in the rings
  std::int64_t waiting_since_ns =
      0;  ///< of the thread that waits for a batch longest; 0: none does
  /// What its process counts and does not record, since the recording began; none where it does
  /// not.
  std::optional<counted_by_name> counted;
};

/// One ring file, read again and again. Whatever stands in it is checked before it is believed.
class living_ring {
 public:
  enum class state : std::uint8_t {
    living,
    dead,        ///< it was killed, and what it left can be recovered
    gone,        ///< all of it stands in the logs
    unreadable,  ///< no ring file, another version's, or not permitted
  };

  explicit living_ring(std::string path) : path_(std::move(path)) {}
  living_ring(const living_ring&) = delete;
  living_ring& operator=(const living_ring&) = delete;
  ~living_ring();

  /// Records that were seen at an earlier look are not told again.
  state look(ring_look& to);

  /// As its process tells it; from the first look on.
  std::uint32_t pid() const noexcept { return pid_; }
  const std::string& prefix() const noexcept { return prefix_; }
  /// Whether its records go into a compact log.
  bool compact() const noexcept { return compact_; }
  /// When the recording began, since 1970.
  std::int64_t begun_ns() const noexcept { return begun_ns_; }
  /// Of the clock that it counts with.
  double ns_per_tick() const;

 private:
  struct place {
    std::uint64_t at;
    std::uint64_t bytes;
    std::uint64_t seen[lotus::detail::lanes];  ///< records before it were told
    std::uint32_t loader;                      ///< of the main lane's records behind these
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
  std::uint64_t next_block_ = 0;  ///< where the first block begins that was not seen yet
  std::deque<place> rings_;       // more may be found while one is looked at
  living_counts counts_;
  names_place names_block_;        ///< the last one
  std::deque<std::string> names_;  ///< how lines begin, by id - 1
  std::size_t names_bytes_ = 0;
  lotus::detail::ring_copy copy_;
  std::unique_ptr<lotus::detail::ring_file_header> header_;
  std::unique_ptr<lotus::detail::ring_block> again_;
  std::unique_ptr<lotus::detail::drain_buffer> buffer_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVING_RING_HPP
