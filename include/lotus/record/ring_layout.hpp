// What stands in a ring file: everything that is needed to write the lines of a process that died.
//
// A ring file is a header, then blocks, each as long as its header says, up to the first of no
// kind.
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
inline constexpr std::size_t least_page_bytes = 4096;  ///< blocks are multiples of it
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

/// What a ring file's header says of its run.
inline constexpr std::uint32_t ticks_are_ns_flag = 1;  ///< the hardware counter was not used
inline constexpr std::uint32_t compact_flag = 2;       ///< records go into compact logs
inline constexpr std::uint32_t aggregates_recovered_flag = 4;  ///< what it has of them is in files

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< where the first block begins
  std::uint32_t pid;
  std::uint32_t flags;  ///< ticks_are_ns_flag, compact_flag, aggregates_recovered_flag
  char version[16];
  char prefix[max_prefix_bytes + 1];  ///< of the logs, which lie in the same directory
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];     ///< clocks[clock_index] is whole at any instant
  std::uint64_t begun_ns;  ///< CLOCK_REALTIME: no two recordings of a process have the same
};

/// The logs of a thread: those in Lotus' format, and a hidden one for what that cannot hold.
enum class log_role : std::uint32_t { main = 0, worker = 1, beside = 2 };
inline constexpr std::size_t log_roles = 3;

/// How far a log file is known to hold whole, committed lines.
struct log_position {
  std::uint64_t inode;       ///< 0: not written yet
  std::uint64_t length;      ///< bytes
  bool appending;            ///< what lies beyond `length` is an append that was not committed
  std::uint32_t number = 0;  ///< at the end of the log's name; 0: the thread's id
  std::uint32_t loader = 0;  ///< whose log it is: id of the name, 0: the default one's
};

/// The main lane takes records; the other one those of a signal handler that interrupted the
/// storing of a record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< records before it stand in the logs
  std::uint32_t loader;       ///< of the records behind the main lane's tail
  std::uint32_t in_memory;    ///< records that were taken out of the ring and are not in the logs
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  std::atomic<std::uint32_t> tid;  ///< whose records these are; names the logs where it can
  std::uint32_t capacity;          ///< of the main lane, in records; a power of two
  alignas(64) std::atomic<std::uint64_t> published[lanes];  ///< records before it are complete
  std::atomic<std::uint64_t>
      waiting_since;  ///< ticks: the thread waits for a batch; 0: it does not
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is whole at any instant
  record interrupt_slots[interrupt_lane_records];
  // Followed by `capacity` records.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  /// Records of the main lane that are not in the logs.
  std::uint64_t used() const noexcept {
    return published[0].load(std::memory_order_relaxed) - committed().tail[0];
  }
  bool full() const noexcept { return used() >= capacity; }
  /// To the main lane, which is not full.
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

/// Names by id; entries follow, each a stored_name and its bytes, padded to a multiple of 8.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< of the entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< of the text that follows: how a line begins, comma included
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

// Locks on bytes of the file (F_OFD_SETLK), each of them held by at most one; looking takes none.
inline constexpr off_t owner_lock_byte = 0;     ///< its process lives
inline constexpr off_t recovery_lock_byte = 1;  ///< somebody recovers it

/// Returns 0 or errno; EAGAIN where somebody else holds it.
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
  // Where this cannot be known, nobody may touch the file.
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Blocks are mapped one by one, so they are whole pages of the machine that writes the file.
inline std::size_t to_file_blocks(std::size_t bytes) noexcept {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RING_LAYOUT_HPP
