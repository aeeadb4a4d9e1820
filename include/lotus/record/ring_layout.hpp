// Layout of a ring file, which holds everything that is needed to write the log lines of a process
// that died.
//
// A ring file is a header followed by blocks. Each block's header gives its length; a block of kind
// none ends the list.
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
inline constexpr std::size_t least_page_bytes = 4096;  ///< block sizes are multiples of it
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

/// Flags in the header of a ring file.
inline constexpr std::uint32_t ticks_are_ns_flag = 1;  ///< ticks are ns; the hardware counter was
                                                       ///< not used
inline constexpr std::uint32_t compact_flag = 2;       ///< records go into compact logs
inline constexpr std::uint32_t aggregates_recovered_flag = 4;  ///< its aggregates have been written
                                                               ///< to files

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< offset of the first block
  std::uint32_t pid;
  std::uint32_t flags;  ///< ticks_are_ns_flag, compact_flag, aggregates_recovered_flag
  char version[16];
  char prefix[max_prefix_bytes + 1];  ///< prefix of the logs, which are in the same directory
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];     ///< clocks[clock_index] is consistent at any moment
  std::uint64_t begun_ns;  ///< CLOCK_REALTIME; differs between all recordings of a process
};

/// The logs of a thread: those in Lotus' format, and a hidden side log for what that cannot hold.
enum class log_role : std::uint32_t { main = 0, worker = 1, side = 2 };
inline constexpr std::size_t log_roles = 3;

/// How much of a log file is known to consist of whole, committed lines.
struct log_position {
  std::uint64_t inode;       ///< 0: nothing written yet
  std::uint64_t length;      ///< in bytes
  bool appending;            ///< whether bytes after `length` belong to an append that was not
                             ///< committed
  std::uint32_t number = 0;  ///< at the end of the log's name; 0: the thread's id is used
  std::uint32_t loader = 0;  ///< the loader of this log: id of its name; 0: the default one
};

/// The main lane holds records; the other lane holds those of a signal handler that interrupted the
/// storing of a record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< records before it are in the logs
  std::uint32_t loader;       ///< of the records from the main lane's tail on
  std::uint32_t in_memory;    ///< number of records that left the ring but are not in the logs yet
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  std::atomic<std::uint32_t> tid;  ///< thread of these records; its logs are named after it if
                                   ///< possible
  std::uint32_t capacity;          ///< of the main lane, in records; a power of two
  alignas(64) std::atomic<std::uint64_t> published[lanes];  ///< records before it are complete
  std::atomic<std::uint64_t>
      waiting_since;  ///< ticks when a wait for a batch began; 0: the thread does not wait
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is consistent at any moment
  record interrupt_slots[interrupt_lane_records];
  // Followed by `capacity` records.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  /// Number of records of the main lane that are not in the logs.
  std::uint64_t used() const noexcept {
    return published[0].load(std::memory_order_relaxed) - committed().tail[0];
  }
  bool full() const noexcept { return used() >= capacity; }
  /// Appends to the main lane, which must not be full.
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

/// Names by id. Entries follow: a stored_name and its bytes, padded to a multiple of 8.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< size of the entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< length of the text that follows: the start of a line, with the comma
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

// Locks on bytes of the file (F_OFD_SETLK). At most one process holds each; testing takes none.
inline constexpr off_t owner_lock_byte = 0;     ///< held while the file's process runs
inline constexpr off_t recovery_lock_byte = 1;  ///< held by whoever recovers the file

/// Returns 0 or errno; EAGAIN if another process holds the lock.
inline int take_file_lock(int fd, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno == EACCES ? EAGAIN : errno;
}

inline bool file_lock_is_taken(int fd, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  // If this is unknown, nobody may touch the file.
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Blocks are mapped one by one, so their sizes are whole pages of the machine that writes the
/// file.
inline std::size_t to_file_blocks(std::size_t bytes) noexcept {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RING_LAYOUT_HPP
