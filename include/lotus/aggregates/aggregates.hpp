// Operations that are counted and not recorded: where their sums stand in the ring file, and how
// the end of one gets into them.
#ifndef LOTUS_AGGREGATES_AGGREGATES_HPP
#define LOTUS_AGGREGATES_AGGREGATES_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/block_header.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread_ring.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// Durations fall into buckets of whole ticks: below 2 * 64 each number has its own, from there on
// each doubling has 64 of one width. A bucket's middle is so within 0.8 % of all that is in it.

inline constexpr unsigned octave_bits = 6;
inline constexpr std::uint32_t octave_buckets = 1U << octave_bits;
inline constexpr std::uint32_t octaves = 64 - octave_bits + 1;

/// The bucket of a duration; below octaves * octave_buckets.
constexpr std::uint32_t bucket_of(std::uint64_t ticks) noexcept {
  const auto shift = static_cast<unsigned>(63 - octave_bits) -
                     static_cast<unsigned>(__builtin_clzll(ticks | octave_buckets));
  return static_cast<std::uint32_t>((shift << octave_bits) + (ticks >> shift));
}

/// The least duration that falls into a bucket, in ticks.
constexpr std::uint64_t bucket_begin(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  if (octave == 0) return bucket;
  return std::uint64_t{octave_buckets + bucket % octave_buckets} << (octave - 1);
}
/// How many durations fall into a bucket.
constexpr std::uint64_t bucket_width(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  return std::uint64_t{1} << (octave == 0 ? 0 : octave - 1);
}

// A block of aggregates holds chunks, one behind the other: an aggregate for each name and loader,
// and the counts of an octave where a call first needs them. Only the thread whose they are writes
// to them.
//
// The last call of a thread stands by itself, and is added to its aggregate when the next one ends:
// to look for the bucket of a duration that has just been measured would keep the processor
// waiting, as the clock is read only when all before it is done.

/// A call that has ended.
struct aggregate_call {
  std::uint64_t key;    ///< which aggregate it belongs to
  std::uint64_t ticks;  ///< less than 0, by a few, where two processors' clocks are apart: then 0
  std::uint64_t self_ticks;  ///< of these, what no other scope had
};

constexpr bool is_negative(const aggregate_call& call) noexcept {
  return static_cast<std::int64_t>(call.ticks) < 0;
}

/// The key of a name and of a loader, by their ids.
constexpr std::uint64_t aggregate_key(std::uint32_t name, std::uint32_t loader) noexcept {
  return std::uint64_t{loader} << 32 | name;
}

struct last_call {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> number;  ///< stored last
};

struct aggregates_block {
  block_header header;
  std::uint32_t chain;                 ///< the same in all blocks of a thread
  std::atomic<std::uint32_t> threads;  ///< whose they have been, one after the other
  std::atomic<std::uint32_t> tid;      ///< of the last of them
  std::uint32_t unused;
  std::atomic<std::uint64_t> used_bytes;  ///< of the chunks
  last_call last[2];  ///< of the greater number; in the thread's first block, in others 0

  char* chunks() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* chunks() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  /// @param number  of the call, from 1
  LOTUS_DETAIL_ALWAYS_INLINE void append(const aggregate_call& call,
                                         std::uint64_t number) noexcept {
    last_call& to = last[number % 2];
    to.key.store(call.key, std::memory_order_relaxed);
    to.ticks.store(call.ticks, std::memory_order_relaxed);
    to.self_ticks.store(call.self_ticks, std::memory_order_relaxed);
    to.number.store(number, std::memory_order_release);
  }
};

/// Of so many names and loaders a thread has sums; all others are one aggregate more.
inline constexpr std::uint32_t most_aggregates = 4096;

enum class chunk_kind : std::uint32_t { none = 0, aggregate = 1, octave = 2 };

struct chunk_header {
  chunk_kind kind;
  std::uint32_t number;  ///< of the aggregate, among those of its thread
};

/// What an aggregate came to with a call, all of it or nothing.
struct aggregate_sums {
  std::atomic<std::uint64_t> total_ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> in_bucket;  ///< that the call fell into: see bucket_content()
  std::atomic<std::uint64_t> call;       ///< its number among the thread's
};

/// A bucket and how much is in it, which its own count may not say yet.
inline constexpr unsigned bucket_bits = 12;
constexpr std::uint64_t bucket_content(std::uint32_t bucket, std::uint64_t count) noexcept {
  return count << bucket_bits | bucket;
}

struct stored_aggregate {
  chunk_header header;
  std::uint64_t key;
  std::atomic<std::uint64_t> count;  ///< sums[count % 2] is whole at any instant
  aggregate_sums sums[2];
};

struct stored_octave {
  chunk_header header;
  std::uint64_t octave;
  std::atomic<std::uint64_t> counts[octave_buckets];
};
static_assert(sizeof(aggregates_block) == 104 && sizeof(stored_aggregate) == 88 &&
                  sizeof(stored_octave) == 528 &&
                  octaves * octave_buckets <= std::uint32_t{1} << bucket_bits,
              "they stand in ring files");

/// Where an aggregate of this process stands.
struct local_aggregate {
  std::uint64_t key;
  stored_aggregate* stored;
  std::atomic<std::uint64_t>* octave_counts[octaves];  ///< null until one is needed
};

struct aggregate_memory;

/// The aggregates of one thread, and how much of its time is in them. For the owning thread, but
/// for `memory`. Its first block is in the thread's gate.
struct thread_aggregates {
  const local_aggregate* last_to = nullptr;  ///< what the last call belongs to
  std::uint64_t calls = 0;                   ///< that ended; the last one is last[calls % 2] of
                                             ///< the first block
  local_aggregate** table = nullptr;         ///< by key, with room left
  std::uint64_t mask = 0;                    ///< of places in it
  std::atomic<std::uintptr_t> storing{0};    ///< as thread_ring::storing, while a call is added
  std::uint32_t interrupting = 0;            ///< calls, below
  /// Ticks in scopes inside of the open one; at least `recorded_inside` where the rest of it is not
  /// its own either.
  std::uint64_t inner_ticks = 0;
  std::uint64_t untold_ticks = 0;      ///< calls' own, that no record has told of yet
  aggregate_memory* memory = nullptr;  ///< under the producer's guard
  std::uint32_t told_name = 0;         ///< one that the thread has calls of
  /// Those of handlers that interrupted the adding of a call.
  static constexpr std::uint32_t most_interrupting = 16;
  aggregate_call interrupting_calls[most_interrupting];

  static constexpr std::uint64_t recorded_inside = std::uint64_t{1} << 63;

  /// Where the key's stands in `table`, or would stand.
  static constexpr std::size_t home_of(std::uint64_t key, std::uint64_t mask) noexcept {
    return (key ^ key >> 32) & mask;
  }

  /// Adds the last call to what it belongs to. False where there is no room for it yet.
  LOTUS_DETAIL_ALWAYS_INLINE bool add_last(const aggregates_block& in) const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::uint64_t number = calls;
    const last_call& call = in.last[number % 2];
    const local_aggregate* const to = last_to;
    const std::uint64_t ticks = call.ticks.load(relaxed);
    const std::uint32_t bucket = bucket_of(ticks);
    std::atomic<std::uint64_t>* const counts = to->octave_counts[bucket >> octave_bits];
    if (LOTUS_DETAIL_UNLIKELY(counts == nullptr)) return false;
    std::atomic<std::uint64_t>& count = counts[bucket % octave_buckets];
    stored_aggregate& stored = *to->stored;
    const std::uint64_t so_many = stored.count.load(relaxed);
    const aggregate_sums& before = stored.sums[so_many % 2];
    aggregate_sums& next = stored.sums[~so_many % 2];
    const std::uint64_t in_bucket = count.load(relaxed) + 1;
    next.total_ticks.store(before.total_ticks.load(relaxed) + ticks, relaxed);
    next.self_ticks.store(before.self_ticks.load(relaxed) + call.self_ticks.load(relaxed), relaxed);
    next.in_bucket.store(bucket_content(bucket, in_bucket), relaxed);
    next.call.store(number, relaxed);
    // Before this it is the last call that has to be added, from here on it is in; what its bucket
    // does not say yet is in the sums.
    stored.count.store(so_many + 1, std::memory_order_release);
    count.store(in_bucket, std::memory_order_release);
    return true;
  }

  /// Null where there is none yet.
  LOTUS_DETAIL_ALWAYS_INLINE const local_aggregate* find(std::uint64_t key) const noexcept {
    for (std::size_t place = home_of(key, mask);; place = (place + 1) & mask) {
      const local_aggregate* const found = table[place];
      if (found == nullptr || LOTUS_DETAIL_LIKELY(found->key == key)) return found;
    }
  }

  /// Of calls that no record has told of; a span begins or ends.
  std::uint64_t tell(record_tag& tag) noexcept {
    // A handler that interrupted the adding of a call.
    if (storing.load(std::memory_order_relaxed) != 0) return 0;
    inner_ticks |= recorded_inside;
    const std::uint64_t own_ticks = untold_ticks;
    untold_ticks = 0;
    tag = {event_kind::aggregated, told_name, large_stage_number};
    return static_cast<std::int64_t>(own_ticks) > 0 ? own_ticks : 0;
  }

  /// What a handler interrupted in take(), and left for good, is as if it had not begun.
  /// @param in  the thread's first block.
  void undo_unfinished(const aggregates_block& in) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::uint64_t numbers[2] = {in.last[0].number.load(relaxed),
                                      in.last[1].number.load(relaxed)};
    calls = numbers[0] > numbers[1] ? numbers[0] : numbers[1];
    const local_aggregate* const to = calls == 0 ? nullptr : find(in.last[calls % 2].key);
    if (to == nullptr) return;
    last_to = to;
    stored_aggregate& stored = *to->stored;
    const std::uint64_t so_many = stored.count.load(relaxed);
    const aggregate_sums& sums = stored.sums[so_many % 2];
    if (so_many == 0 || sums.call.load(relaxed) != calls) return;
    // The last call has been added: taken back, for the next one adds it. Whatever its bucket says,
    // the sums say the same until their count goes back.
    const std::uint64_t in_bucket = sums.in_bucket.load(relaxed);
    const std::uint64_t bucket = in_bucket & ((std::uint64_t{1} << bucket_bits) - 1);
    to->octave_counts[bucket >> octave_bits][bucket % octave_buckets].store(
        (in_bucket >> bucket_bits) - 1, std::memory_order_release);
    stored.count.store(so_many - 1, std::memory_order_release);
  }

  /// Takes a call; it is in what is read of this, also after a kill, once this returns. False where
  /// there is no room for it, or for the one before.
  /// @param in  the thread's first block, or null.
  LOTUS_DETAIL_ALWAYS_INLINE bool take(aggregates_block* in, const aggregate_call& call) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(in == nullptr)) return false;
    const local_aggregate* to = last_to;
    if (LOTUS_DETAIL_UNLIKELY(to->key != call.key)) {
      to = find(call.key);
      if (LOTUS_DETAIL_UNLIKELY(to == nullptr)) return false;
    }
    if (LOTUS_DETAIL_UNLIKELY(!add_last(*in))) return false;
    last_to = to;
    in->append(call, ++calls);
    untold_ticks += call.self_ticks;
    return true;
  }
};

/// What every thread has.
struct aggregating_ring : thread_ring {
  thread_aggregates aggregates;
};
LOTUS_DETAIL_ALWAYS_INLINE thread_aggregates& aggregates_of(thread_ring& ring) noexcept {
  return static_cast<aggregating_ring&>(ring).aggregates;
}
inline const thread_aggregates& aggregates_of(const thread_ring& ring) noexcept {
  return static_cast<const aggregating_ring&>(ring).aggregates;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATES_HPP
