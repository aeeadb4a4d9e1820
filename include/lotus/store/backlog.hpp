// Records in memory while the disk does not take them.
#ifndef LOTUS_STORE_BACKLOG_HPP
#define LOTUS_STORE_BACKLOG_HPP

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A ring block that was full when the disk was, in private memory, waiting with what it held.
struct backlog_chunk {
  backlog_chunk* next;
  std::uint64_t bytes;  ///< of the mapping
  ring_block ring;      ///< last, since its records follow
};

/// Moves what `p`'s ring holds into memory and empties the ring. False when `used_bytes` would pass
/// `most_bytes` or there is no memory; then nothing has moved. Caller holds p.guard.
inline bool set_aside(producer& p, std::atomic<std::size_t>& used_bytes,
                      std::size_t most_bytes) noexcept {
  ring_block& ring = *p.ring;
  const std::size_t bytes = offsetof(backlog_chunk, ring) + ring_block::bytes_for(ring.capacity);
  if (used_bytes.load(std::memory_order_relaxed) + bytes > most_bytes) return false;
  auto* chunk = static_cast<backlog_chunk*>(map_memory(bytes));
  if (chunk == nullptr) return false;
  used_bytes.fetch_add(bytes, std::memory_order_relaxed);
  chunk->bytes = bytes;
  chunk->ring.capacity = ring.capacity;
  chunk->ring.tid.store(ring.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const lane_heads heads{ring};
  copy_records(ring, heads, chunk->ring);
  skip_records(ring, heads);
  (p.backlog_last == nullptr ? p.backlog_first : p.backlog_last->next) = chunk;
  p.backlog_last = chunk;
  return true;
}

/// Drains a chunk through the logs of the ring it came from, whose commits survive a kill.
class backlog_sink {
 public:
  backlog_sink(ring_block& chunk, log_appender& logs) noexcept : chunk_{chunk}, logs_{logs} {}
  int begin(log_role role, std::uint32_t loader) noexcept { return logs_.begin(role, loader); }
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    return logs_.append(role, lines, bytes);
  }
  void undo(log_role role) noexcept { logs_.undo(role); }
  const log_position& position(log_role role) const noexcept { return logs_.position(role); }
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) noexcept {
    commit_point c = chunk_.committed();
    c.tail[lane] = tail;
    c.loader = loader;
    chunk_.commit(c);
    return logs_.commit_lines();
  }

 private:
  ring_block& chunk_;
  log_appender& logs_;
};

/// Frees the oldest chunk of `p`. Caller holds p.guard.
inline void drop_oldest(producer& p, std::atomic<std::size_t>& used_bytes) noexcept {
  backlog_chunk* chunk = p.backlog_first;
  p.backlog_first = chunk->next;
  if (p.backlog_first == nullptr) p.backlog_last = nullptr;
  used_bytes.fetch_sub(chunk->bytes, std::memory_order_relaxed);
  munmap(chunk, chunk->bytes);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_BACKLOG_HPP
