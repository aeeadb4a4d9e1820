// Reads the records in the ring file of a running process that are not in any log yet.
//
// The process is not disturbed: its ring file is only read and not locked. While a ring is copied,
// the process may commit records, which means that it declares them to be in a log. Such a copy is
// discarded, so each record is seen exactly once, either in the ring or in a log.
#ifndef LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP
#define LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP

#include <cstdint>
#include <lotus/folder/log_parts.hpp>
#include <string>
#include <vector>

#include "aggregates/live/counted_window.hpp"

namespace lotus::tool {

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

/// The content of a ring file at one moment.
struct live_ring {
  ring_state state = ring_state::unreadable;
  std::uint32_t pid = 0;
  std::string prefix;
  bool compact = false;       ///< whether the process writes its records to compact logs
  std::int64_t began_ns = 0;  ///< when the recording began, in ns since 1970
  double ns_per_tick = 0;     ///< of the clock that measures aggregated calls
  std::vector<ring_log> logs;
  std::uint64_t left = 0;  ///< number of records in the rings that are not in a log
  /// Number of records that are only in the process's memory; they are lost if it was killed.
  std::uint64_t in_memory = 0;
  std::int64_t waiting_since_ns = 0;  ///< start of the longest current wait for a batch; 0: none
  /// The process's aggregated calls since the recording began.
  counted_by_name counted;
};

/// Reads a ring file. Validates its content before using it.
live_ring read_live_ring(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_LIVE_RING_HPP
