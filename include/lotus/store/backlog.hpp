// Keeps records in memory while they cannot be written to the disk.
#ifndef LOTUS_STORE_BACKLOG_HPP
#define LOTUS_STORE_BACKLOG_HPP

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy, in private memory, of a full ring whose records could not be written to the logs.
struct backlog_chunk {
  backlog_chunk* next;
  std::uint64_t bytes;  ///< size of this chunk's mapping
  ring_block ring;      ///< the last member, because the ring's records follow it
};

/// Moves records from rings to memory: into a list of chunks for each thread, the oldest chunk
/// first. Call begin() while no other function is running, and the other functions while
/// producer::guard is held.
class backlog {
 public:
  void begin(std::size_t max_bytes) noexcept { max_bytes_ = max_bytes; }

  /// Moves all records of `p`'s ring to memory. Returns false, without moving anything, if the
  /// memory limit is reached or no memory is available.
  bool set_aside(producer& p) noexcept {
    ring_block& ring = *p.ring;
    const std::size_t bytes = offsetof(backlog_chunk, ring) + ring_block::bytes_for(ring.capacity);
    if (used_bytes_.load(std::memory_order_relaxed) + bytes > max_bytes_) return false;
    auto* chunk = static_cast<backlog_chunk*>(map_memory(bytes));
    if (chunk == nullptr) return false;
    used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    chunk->bytes = bytes;
    chunk->ring.capacity = ring.capacity;
    chunk->ring.tid.store(ring.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const lane_heads heads{ring};
    copy_records(ring, heads, chunk->ring);
    skip_records(ring, heads, heads.beyond(ring.committed()));
    (p.backlog_first == nullptr ? p.backlog_first : p.backlog_last->next) = chunk;
    p.backlog_last = chunk;
    return true;
  }

  /// Frees the oldest chunk of `p`. Returns how many unwritten records were in the chunk.
  std::uint64_t drop_oldest(producer& p) noexcept {
    backlog_chunk* const chunk = p.backlog_first;
    if (chunk == nullptr) return 0;
    const std::uint64_t records = lane_heads{chunk->ring}.beyond(chunk->ring.committed());
    if (p.ring != nullptr && records > 0) {
      commit_point c = p.ring->committed();
      c.in_memory -= static_cast<std::uint32_t>(records);
      p.ring->commit(c);
    }
    p.backlog_first = chunk->next;
    if (p.backlog_first == nullptr) p.backlog_last = nullptr;
    used_bytes_.fetch_sub(chunk->bytes, std::memory_order_relaxed);
    munmap(chunk, chunk->bytes);
    return records;
  }

 private:
  std::atomic<std::size_t> used_bytes_{0};
  std::size_t max_bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_BACKLOG_HPP
