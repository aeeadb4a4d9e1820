// Provides the memory for a thread's aggregates (sums of counted calls), which grows as needed.
#ifndef LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP
#define LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Function that allocates one more block for a thread's aggregates. Returns null if there is no
/// memory.
using new_aggregates_block = function_ref<aggregates_block*()>;

/// The blocks with one thread's aggregates, and a hash table that finds the aggregates in them. The
/// table is in private memory directly from the kernel. Thread safety: none. Only the thread itself
/// adds blocks; other threads that read them must hold the `guard` of that thread's producer.
struct aggregate_memory {
  static constexpr std::size_t page_bytes = std::size_t{16} << 10;
  static constexpr std::size_t max_blocks = std::size_t{1} << 14;

  struct page {
    page* before;
    std::size_t bytes;
    std::size_t used;
  };
  struct place {
    aggregates_block* block;
    place* before;
  };

  std::uint32_t chain = 0;
  std::uint32_t aggregates = 0;  ///< number of aggregates of this thread
  std::size_t blocks = 0;
  /// Whether the thread no longer uses the blocks, because the recording has ended or because this
  /// process is a forked child and the blocks belong to its parent.
  bool retired = false;
  aggregates_block* first = nullptr;
  place* last_block = nullptr;
  std::size_t left = 0;  ///< number of free bytes in the last block
  page* last_page = nullptr;
  local_aggregate** table = nullptr;
  std::size_t places = 0;  ///< size of the hash table, a power of two

  /// Creates the object for one thread. Returns null if there is no memory.
  LOTUS_DETAIL_COLD static aggregate_memory* make(std::uint32_t chain) noexcept {
    auto* const first = static_cast<page*>(map_memory(page_bytes));
    if (first == nullptr) return nullptr;
    *first = {nullptr, page_bytes, sizeof(page) + sizeof(aggregate_memory)};
    auto* const made = new (first + 1) aggregate_memory;
    made->chain = chain;
    made->last_page = first;
    return made;
  }

  /// Releases all memory, including this object.
  /// @param in_use  whether this is called in a signal handler that interrupted the thread while it
  ///   added a call. Then the thread will write to the blocks again. So the blocks are replaced by
  ///   private memory at the same addresses, and nothing else is released.
  void give_back(bool in_use) const noexcept {
    for (place* p = last_block; p != nullptr; p = p->before) {
      if (in_use) {
        static_cast<void>(mmap(p->block, p->block->header.bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
      } else {
        munmap(p->block, p->block->header.bytes);
      }
    }
    if (in_use) return;
    // The first page contains this object itself, so it must be released last.
    for (page* p = last_page; p != nullptr;) {
      page* const before = p->before;
      munmap(p, p->bytes);
      p = before;
    }
  }

  /// Calls `each(aggregates_block&)` for every block, beginning with the block that was added last.
  void for_each_block(function_ref<void(aggregates_block&)> each) const noexcept {
    for (place* p = last_block; p != nullptr; p = p->before) each(*p->block);
  }

  /// Adds a call to the thread's aggregates. First allocates memory that this call needs, and also
  /// memory for the previous call, because that call becomes part of the sums only now. Returns
  /// false if there is no memory.
  /// @param new_block  aggregates_block*(): returns another block, or null.
  bool take(thread_aggregates& a, aggregate_call call, new_aggregates_block new_block) noexcept {
    if (first == nullptr && take_chunk(sizeof(stored_aggregate), new_block) == nullptr)
      return false;
    last_call& last = first->last[a.calls % 2];
    if (a.calls > 0) {
      aggregate_call before{0, last.ticks.load(std::memory_order_relaxed), 0};
      if (is_negative(before)) {
        last.self_ticks.store(0, std::memory_order_relaxed);
        last.ticks.store(0, std::memory_order_relaxed);
        before.ticks = 0;
      }
      if (make_room(last.key.load(std::memory_order_relaxed), before.ticks, new_block) == nullptr) {
        return false;
      }
    }
    if (is_negative(call)) call.ticks = call.self_ticks = 0;
    const local_aggregate* const to = make_room(call.key, call.ticks, new_block);
    if (to == nullptr) return false;
    a.table = table;
    a.mask = places - 1;
    if (a.calls > 0 && !a.add_last(*first)) return false;
    a.reported_name = static_cast<std::uint32_t>(to->key);
    a.unreported_ticks += call.self_ticks;
    a.last_to = to;
    // If the thread already has max_aggregates aggregates, `to` is the one that all further names
    // share.
    first->append({to->key, call.ticks, call.self_ticks}, ++a.calls);
    return true;
  }

 private:
  /// Returns the aggregate with this key, and allocates it and its buckets for this duration if
  /// they do not exist yet. Returns null if there is no memory.
  LOTUS_DETAIL_COLD local_aggregate* make_room(std::uint64_t key, std::uint64_t ticks,
                                               new_aggregates_block new_block) noexcept {
    const std::uint32_t octave = bucket_of(ticks) >> octave_bits;
    local_aggregate* const of = find_or_add(key, new_block);
    if (of == nullptr) return nullptr;
    std::atomic<std::uint64_t>*& counts = of->octave_counts[octave];
    if (counts != nullptr) return of;
    auto* const chunk = static_cast<stored_octave*>(take_chunk(sizeof(stored_octave), new_block));
    if (chunk == nullptr) return nullptr;
    chunk->octave = octave;
    finish_chunk({chunk_kind::octave, of->stored->header.number}, chunk->header,
                 sizeof(stored_octave));
    counts = chunk->counts;
    return of;
  }

  void* take(std::size_t bytes) noexcept {
    if (last_page->bytes - last_page->used < bytes) {
      const std::size_t room =
          bytes + sizeof(page) > page_bytes ? bytes + sizeof(page) : page_bytes;
      auto* const more = static_cast<page*>(map_memory(room));
      if (more == nullptr) return nullptr;
      *more = {last_page, room, sizeof(page)};
      last_page = more;
    }
    void* const taken = reinterpret_cast<char*>(last_page) + last_page->used;
    last_page->used += bytes;
    return taken;
  }

  void* take_chunk(std::size_t bytes, new_aggregates_block new_block) noexcept {
    if (left < bytes) {
      if (blocks == max_blocks) return nullptr;
      auto* const more = static_cast<place*>(take(sizeof(place)));
      aggregates_block* const block = more == nullptr ? nullptr : new_block();
      if (block == nullptr) return nullptr;
      *more = {block, last_block};
      last_block = more;
      if (first == nullptr) first = block;
      left = block->header.bytes - sizeof(aggregates_block);
      ++blocks;
    }
    return last_block->block->chunks() +
           last_block->block->used_bytes.load(std::memory_order_relaxed);
  }

  /// Fills in the chunk's header and adds the chunk to the block's used bytes. The caller must have
  /// written the rest of the chunk already, because readers can see the chunk from this call on.
  void finish_chunk(const chunk_header& is, chunk_header& head, std::size_t bytes) noexcept {
    head = is;
    last_block->block->used_bytes.fetch_add(bytes, std::memory_order_release);
    left -= bytes;
  }

  local_aggregate* find_or_add(std::uint64_t key, new_aggregates_block new_block) noexcept {
    if (table == nullptr && !grow_table(64)) return nullptr;
    if (local_aggregate* const found = *place_of(key)) return found;
    if (aggregates >= max_aggregates) {
      key = unnamed_id;
      if (local_aggregate* const found = *place_of(key)) return found;
    }
    if (2 * std::size_t{aggregates + 1} > places && !grow_table(2 * places)) return nullptr;
    auto* const of = static_cast<local_aggregate*>(take(sizeof(local_aggregate)));
    if (of == nullptr) return nullptr;
    auto* const chunk =
        static_cast<stored_aggregate*>(take_chunk(sizeof(stored_aggregate), new_block));
    if (chunk == nullptr) return nullptr;
    chunk->key = key;
    finish_chunk({chunk_kind::aggregate, ++aggregates}, chunk->header, sizeof(stored_aggregate));
    of->key = key;
    of->stored = chunk;
    *place_of(key) = of;
    return of;
  }

  local_aggregate** place_of(std::uint64_t key) const noexcept {
    std::size_t i = thread_aggregates::home_of(key, places - 1);
    while (table[i] != nullptr && table[i]->key != key) i = (i + 1) & (places - 1);
    return &table[i];
  }

  bool grow_table(std::size_t to) noexcept {
    auto** const grown = static_cast<local_aggregate**>(take(to * sizeof(void*)));
    if (grown == nullptr) return false;
    local_aggregate** const old = table;
    const std::size_t old_places = places;
    table = grown;
    places = to;
    for (std::size_t i = 0; i < old_places; ++i) {
      if (old[i] != nullptr) *place_of(old[i]->key) = old[i];
    }
    return true;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP
