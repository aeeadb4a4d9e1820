// Defines the layout of a ring file, which contains the rings of a process. If the process dies,
// the records that are not in its logs yet can be recovered from this file alone.
//
// A ring file consists of a header and blocks. The header of each block contains the block's
// length; a block of kind `none` marks the end of the file.
#ifndef LOTUS_RECORD_RING_LAYOUT_HPP
#define LOTUS_RECORD_RING_LAYOUT_HPP

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/block_header.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char ring_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'R', 'N', 'G'};
inline constexpr std::uint32_t ring_file_layout = 6;
/// The size of each block is a multiple of this.
inline constexpr std::size_t min_page_bytes = 4096;
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

/// Flags in the header of a ring file.
inline constexpr std::uint32_t ticks_are_ns_flag = 1;  ///< ticks are ns of CLOCK_MONOTONIC
inline constexpr std::uint32_t compact_flag = 2;       ///< logs are in the compact format
/// Set when the aggregates in this ring file have been written to files of their own.
inline constexpr std::uint32_t aggregates_recovered_flag = 4;

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< offset of the first block in the file
  std::uint32_t pid;
  std::uint32_t flags;  ///< any of ticks_are_ns_flag, compact_flag and aggregates_recovered_flag
  char version[16];
  /// Prefix of the logs' names; the logs are in the ring file's directory.
  char prefix[max_prefix_bytes + 1];
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];  ///< clocks[clock_index] is valid at every moment, even after a kill
  /// CLOCK_REALTIME at the recording's start, in ns; unique among the recordings of a process.
  std::uint64_t began_ns;
};

/// The logs of a thread. The main and the worker log are in the text format of the paper "Lotus"; a
/// hidden side log contains the records that this format cannot express.
enum class log_role : std::uint32_t { main = 0, worker = 1, side = 2 };
inline constexpr std::size_t log_roles = 3;

/// A log file, and its length at the last commit. Up to this length, it consists of complete lines.
struct log_position {
  std::uint64_t inode;   ///< inode of the log file; 0: nothing was written yet
  std::uint64_t length;  ///< length of the committed lines in bytes
  bool appending;  ///< whether bytes after `length` may be part of an append that was not committed
  std::uint32_t number = 0;  ///< number at the end of the log's name; 0: the id of the thread
  std::uint32_t loader = 0;  ///< id of the name of the log's loader; 0: the default loader
};

/// Number of lanes of a ring; a lane is a circular buffer of records. The thread stores records in
/// the main lane. A signal handler that interrupts the storing of a record uses the interrupt lane,
/// so that it does not overwrite the unfinished record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;
/// Minimum size of the main lane in records.
inline constexpr std::uint32_t min_ring_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< position in each lane before which all records are in the logs
  /// Id of the name of the loader to which the first record after the main lane's tail belongs.
  std::uint32_t loader;
  /// Number of records that were moved from the ring to memory and are not in the logs yet.
  std::uint32_t in_memory;
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  /// Id of the thread; its logs are named after the id if possible.
  std::atomic<std::uint32_t> tid;
  std::uint32_t capacity;  ///< size of the main lane in records, a power of two
  /// Position in each lane before which all records are completely stored.
  alignas(64) std::atomic<std::uint64_t> published[lanes];
  /// Start of the thread's current wait for a batch, in ticks; 0: the thread is not waiting.
  std::atomic<std::uint64_t> waiting_since;
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is valid at every moment, even after a kill
  record interrupt_slots[interrupt_lane_records];
  // The main lane, an array of `capacity` records, follows this struct in memory.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  /// Returns how many records in the main lane are not in the logs yet.
  std::uint64_t used() const noexcept {
    return published[0].load(std::memory_order_relaxed) - committed().tail[0];
  }
  bool full() const noexcept { return used() >= capacity; }
  /// Appends a record to the main lane, which must not be full.
  void append(const record& r) noexcept {
    const std::uint64_t at = published[0].load(std::memory_order_relaxed);
    slot(0, at) = r;
    published[0].store(at + 1, std::memory_order_release);
  }
  const commit_point& committed() const noexcept {
    return commits[commit_index.load(std::memory_order_acquire)];
  }
  void commit(const commit_point& c) noexcept {
    const std::uint32_t next = 1 - commit_index.load(std::memory_order_relaxed);
    commits[next] = c;
    commit_index.store(next, std::memory_order_release);
  }
  static constexpr std::size_t bytes_for(std::size_t capacity) noexcept {
    return sizeof(ring_block) + capacity * sizeof(record);
  }
};

/// A block with the names of operations and their ids. The entries follow this struct in memory.
/// Each entry is a stored_name and its text, padded to a multiple of 8 bytes.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< total size of the complete entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< length of the text that follows: "S<name>,"
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

// The ring file has two file locks (F_OFD_SETLK), each on one byte. At most one process holds each
// lock.
inline constexpr off_t owner_lock_byte = 0;     ///< held by the writing process while it runs
inline constexpr off_t recovery_lock_byte = 1;  ///< held by the process that recovers the file

/// Describes a lock on one byte of the file.
/// @param type  F_WRLCK or F_UNLCK.
inline struct flock byte_lock(short type, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

/// Tries to lock a byte of the file. Returns 0 or errno; EAGAIN if another process holds the lock.
inline int take_file_lock(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_WRLCK, byte);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno == EACCES ? EAGAIN : errno;
}

/// Releases a lock that this process holds, even if mappings keep the open file description alive.
inline void release_file_lock(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_UNLCK, byte);
  static_cast<void>(fcntl(fd, F_OFD_SETLK, &lock));
}

inline bool file_lock_is_taken(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_WRLCK, byte);
  // If the lock cannot be tested, it counts as taken, so that the file is not changed or deleted.
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Rounds the size of a block up to whole pages of this machine, because each block is mapped into
/// memory on its own.
inline std::size_t to_file_blocks(std::size_t bytes) noexcept {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RING_LAYOUT_HPP
