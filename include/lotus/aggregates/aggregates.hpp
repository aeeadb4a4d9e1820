// Defines aggregates (the sums of the calls of an operation that is counted instead of recorded),
// their layout in the ring file, and how a call is added.
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

// The durations of calls are counted in buckets, from which percentiles are computed. Each duration
// below 128 ticks has a bucket of its own. Above that, each octave (durations from 2^k to 2^(k+1)
// ticks) is divided into 64 buckets of equal width, so the middle of a bucket differs by at most
// 0.8 % from each duration in it.

inline constexpr unsigned octave_bits = 6;
inline constexpr std::uint32_t octave_buckets = 1U << octave_bits;
inline constexpr std::uint32_t octaves = 64 - octave_bits + 1;

/// Returns the number of the bucket that contains a duration.
constexpr std::uint32_t bucket_of(std::uint64_t ticks) noexcept {
  const auto shift = static_cast<unsigned>(63 - octave_bits) -
                     static_cast<unsigned>(__builtin_clzll(ticks | octave_buckets));
  return static_cast<std::uint32_t>((shift << octave_bits) + (ticks >> shift));
}

/// Returns the smallest duration of a bucket, in ticks.
constexpr std::uint64_t bucket_begin(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  if (octave == 0) return bucket;
  return std::uint64_t{octave_buckets + bucket % octave_buckets} << (octave - 1);
}
/// Returns the width of a bucket: how many different durations, in ticks, it contains.
constexpr std::uint64_t bucket_width(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  return std::uint64_t{1} << (octave == 0 ? 0 : octave - 1);
}

// Aggregates are stored in blocks of memory that consist of chunks. Each pair of a name and a
// loader has one chunk for its sums, and one chunk with the bucket counts of each octave of
// durations that has occurred. A chunk is added when a call first needs it. Only the owning thread
// writes to its blocks.
//
// A thread's last call is stored separately, and is added to its aggregate when the next call ends.
// The reason is speed: the processor finishes a clock reading only after all earlier instructions,
// so an immediate lookup of the duration's bucket would have to wait for that reading.

/// A call that has ended.
struct aggregate_call {
  std::uint64_t key;  ///< key of the call's aggregate: see aggregate_key()
  /// Duration. If the clocks of two processors differ slightly, the value may be negative; then it
  /// counts as 0.
  std::uint64_t ticks;
  std::uint64_t self_ticks;  ///< the part of the duration that was not spent in other scopes
};

constexpr bool is_negative(const aggregate_call& call) noexcept {
  return static_cast<std::int64_t>(call.ticks) < 0;
}

/// Returns the key of the aggregate for a name and a loader, which are given by their ids.
constexpr std::uint64_t aggregate_key(std::uint32_t name, std::uint32_t loader) noexcept {
  return std::uint64_t{loader} << 32 | name;
}

struct last_call {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> number;  ///< number of the call within its thread; stored last
};

struct aggregates_block {
  block_header header;
  std::uint32_t chain;  ///< identifies the thread's blocks: the same number in all of them
  std::atomic<std::uint32_t> threads;  ///< number of threads that used the block, one after another
  std::atomic<std::uint32_t> tid;      ///< id of the latest of these threads
  std::uint32_t unused;
  std::atomic<std::uint64_t> used_bytes;  ///< total size of the chunks
  /// The thread's last call is the element with the greater number; the other element is free for
  /// the next call. Used only in a thread's first block.
  last_call last[2];

  char* chunks() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* chunks() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  /// Stores a call as the thread's last one. @param number  number of the call, counted from 1.
  LOTUS_DETAIL_ALWAYS_INLINE void append(const aggregate_call& call,
                                         std::uint64_t number) noexcept {
    last_call& to = last[number % 2];
    to.key.store(call.key, std::memory_order_relaxed);
    to.ticks.store(call.ticks, std::memory_order_relaxed);
    to.self_ticks.store(call.self_ticks, std::memory_order_relaxed);
    to.number.store(number, std::memory_order_release);
  }
};

/// Maximum number of aggregates of a thread. Further pairs of a name and a loader share one
/// aggregate.
inline constexpr std::uint32_t max_aggregates = 4096;

enum class chunk_kind : std::uint32_t { none = 0, aggregate = 1, octave = 2 };

struct chunk_header {
  chunk_kind kind;
  std::uint32_t number;  ///< number of the aggregate within its thread
};

/// The sums of an aggregate after one of its calls. Readers see either all of these values or none.
struct aggregate_sums {
  std::atomic<std::uint64_t> total_ticks;
  std::atomic<std::uint64_t> self_ticks;
  /// Bucket of the last call and the bucket's new count, combined by bucket_content().
  std::atomic<std::uint64_t> in_bucket;
  std::atomic<std::uint64_t> call;  ///< number of the last call within its thread
};

/// Combines a bucket's number and new count in one word, so that both change together. The bucket's
/// own counter is updated a moment later.
inline constexpr unsigned bucket_bits = 12;
constexpr std::uint64_t bucket_content(std::uint32_t bucket, std::uint64_t count) noexcept {
  return count << bucket_bits | bucket;
}

struct stored_aggregate {
  chunk_header header;
  std::uint64_t key;
  /// Number of calls. sums[count % 2] contains their sums; the other element is written while
  /// another call is added.
  std::atomic<std::uint64_t> count;
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

/// Where an aggregate is stored in the memory of this process.
struct local_aggregate {
  std::uint64_t key;
  stored_aggregate* stored;
  /// The bucket counts of each octave (durations from 2^k to 2^(k+1) ticks); null until a call has
  /// such a duration.
  std::atomic<std::uint64_t>* octave_counts[octaves];
};

struct aggregate_memory;

/// The aggregates of one thread. Only the owning thread uses this object, except for `memory`. The
/// pointer to the thread's first block is in its ring_gate (record/thread_ring.hpp).
struct thread_aggregates {
  const local_aggregate* last_to = nullptr;  ///< aggregate to which the last call will be added
  /// Number of this thread's calls that have ended. The latest of them is not part of the sums yet:
  /// it is stored in aggregates_block::last[calls % 2] of the thread's first block.
  std::uint64_t calls = 0;
  /// Hash table of the aggregates by key; it always has a free slot.
  local_aggregate** table = nullptr;
  std::uint64_t mask = 0;  ///< size of the hash table minus 1
  /// Stack pointer of the thread while it adds a call, otherwise 0. Signal handlers check it,
  /// because they must not add a call to the same sums meanwhile; see thread_ring::storing.
  std::atomic<std::uintptr_t> storing{0};
  std::uint32_t interrupting = 0;  ///< number of entries in interrupting_calls
  /// Ticks spent in other scopes inside the innermost aggregated scope that is open. The bit
  /// `recorded_inside` is also set if a span has begun or ended in that scope; then the scope's
  /// self time counts as 0.
  std::uint64_t inner_ticks = 0;
  /// Self time, in ticks, of counted calls that no record reports yet. The next span that begins or
  /// ends reports it, so that lotus-tool can subtract it from the self time of the enclosing
  /// operation.
  std::uint64_t unreported_ticks = 0;
  /// Memory of the aggregates; protected by producer::guard.
  aggregate_memory* memory = nullptr;
  /// Id of the name in the record that reports unreported_ticks: the name of the latest call that
  /// aggregate_memory::take() added.
  std::uint32_t reported_name = 0;
  /// Calls that ended in signal handlers while the thread was adding another call. They are added
  /// after that call.
  static constexpr std::uint32_t max_interrupting = 16;
  aggregate_call interrupting_calls[max_interrupting];

  static constexpr std::uint64_t recorded_inside = std::uint64_t{1} << 63;

  /// Returns the index in `table` at which the search for a key begins.
  static constexpr std::size_t home_of(std::uint64_t key, std::uint64_t mask) noexcept {
    return (key ^ key >> 32) & mask;
  }

  /// Adds the thread's last call, which was stored separately, to its aggregate. Returns false if
  /// memory for its bucket must be allocated first.
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
    const std::uint64_t stored_count = stored.count.load(relaxed);
    const aggregate_sums& before = stored.sums[stored_count % 2];
    aggregate_sums& next = stored.sums[~stored_count % 2];
    const std::uint64_t in_bucket = count.load(relaxed) + 1;
    next.total_ticks.store(before.total_ticks.load(relaxed) + ticks, relaxed);
    next.self_ticks.store(before.self_ticks.load(relaxed) + call.self_ticks.load(relaxed), relaxed);
    next.in_bucket.store(bucket_content(bucket, in_bucket), relaxed);
    next.call.store(number, relaxed);
    // From this store on, readers use the sums that include the last call. A reader that still sees
    // the old count adds the last call itself. The bucket's own counter is updated last, but
    // readers use the new count in `in_bucket`.
    stored.count.store(stored_count + 1, std::memory_order_release);
    count.store(in_bucket, std::memory_order_release);
    return true;
  }

  /// Returns the aggregate with this key; null if there is none yet.
  LOTUS_DETAIL_ALWAYS_INLINE const local_aggregate* find(std::uint64_t key) const noexcept {
    for (std::size_t place = home_of(key, mask);; place = (place + 1) & mask) {
      const local_aggregate* const found = table[place];
      if (found == nullptr || LOTUS_DETAIL_LIKELY(found->key == key)) return found;
    }
  }

  /// Called when a span begins or ends. Returns the self time of counted calls that no record
  /// reports yet, and resets it to 0.
  /// @param tag  set to the tag of the record with which the caller must report that time.
  std::uint64_t tell(record_tag& tag) noexcept {
    // If this is a signal handler that interrupted the adding of a call, a later span reports the
    // time.
    if (storing.load(std::memory_order_relaxed) != 0) return 0;
    inner_ticks |= recorded_inside;
    const std::uint64_t own_ticks = unreported_ticks;
    unreported_ticks = 0;
    tag = {event_kind::aggregated, reported_name, number_not_in_tag};
    return static_cast<std::int64_t>(own_ticks) > 0 ? own_ticks : 0;
  }

  /// Undoes the addition of a call that was never completed, because a signal handler interrupted
  /// take() and exited by siglongjmp.
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
    const std::uint64_t stored_count = stored.count.load(relaxed);
    const aggregate_sums& sums = stored.sums[stored_count % 2];
    if (stored_count == 0 || sums.call.load(relaxed) != calls) return;
    // The last call is in the sums already, but the next call would add it again, so it is removed
    // here. Readers take the bucket's count from the sums until `count` is reduced.
    const std::uint64_t in_bucket = sums.in_bucket.load(relaxed);
    const std::uint64_t bucket = in_bucket & ((std::uint64_t{1} << bucket_bits) - 1);
    to->octave_counts[bucket >> octave_bits][bucket % octave_buckets].store(
        (in_bucket >> bucket_bits) - 1, std::memory_order_release);
    stored.count.store(stored_count - 1, std::memory_order_release);
  }

  /// Adds a call. After this function returns, every reader sees the call, even if the process is
  /// killed. Returns false if memory must first be allocated for this call, or for the previous
  /// one, which becomes part of the sums only now.
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
    unreported_ticks += call.self_ticks;
    return true;
  }
};

/// The part of a thread's state with which it counts calls and stores records.
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
