// Operations that are counted instead of recorded: the layout of their sums in the ring file, and
// how a call is added.
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

// Durations fall into buckets of whole ticks. Below 2 * 64 each number has its own bucket; above,
// each doubling is divided into 64 buckets of equal width. So the middle of a bucket is within 0.8
// % of all durations in it.

inline constexpr unsigned octave_bits = 6;
inline constexpr std::uint32_t octave_buckets = 1U << octave_bits;
inline constexpr std::uint32_t octaves = 64 - octave_bits + 1;

/// Returns the bucket of a duration; less than octaves * octave_buckets.
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
/// Returns how many different durations fall into a bucket.
constexpr std::uint64_t bucket_width(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  return std::uint64_t{1} << (octave == 0 ? 0 : octave - 1);
}

// A block of aggregates contains chunks, one after another: one with the aggregate for each name
// and loader, and one with the counts of an octave, added when a call first needs them. Only the
// thread that owns them writes to them.
//
// A thread's last call is stored separately and added to its aggregate when the next one ends: the
// clock is read only when all earlier instructions are done, so looking up the bucket of a duration
// that was just measured would stall the processor.

/// A call that has ended.
struct aggregate_call {
  std::uint64_t key;    ///< selects its aggregate
  std::uint64_t ticks;  ///< slightly negative if two processors' clocks differ; then counts as 0
  std::uint64_t self_ticks;  ///< the part of it in no other scope
};

constexpr bool is_negative(const aggregate_call& call) noexcept {
  return static_cast<std::int64_t>(call.ticks) < 0;
}

/// Returns the key for the ids of a name and a loader.
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
  std::uint32_t chain;                 ///< the same in all blocks of one thread
  std::atomic<std::uint32_t> threads;  ///< number of threads that used it, one after another
  std::atomic<std::uint32_t> tid;      ///< of the latest of them
  std::uint32_t unused;
  std::atomic<std::uint64_t> used_bytes;  ///< size of the chunks
  last_call last[2];  ///< the one with the greater number counts; only used in a thread's first
                      ///< block

  char* chunks() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* chunks() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  /// @param number  the call's number, from 1
  LOTUS_DETAIL_ALWAYS_INLINE void append(const aggregate_call& call,
                                         std::uint64_t number) noexcept {
    last_call& to = last[number % 2];
    to.key.store(call.key, std::memory_order_relaxed);
    to.ticks.store(call.ticks, std::memory_order_relaxed);
    to.self_ticks.store(call.self_ticks, std::memory_order_relaxed);
    to.number.store(number, std::memory_order_release);
  }
};

/// Maximum number of aggregates of a thread; all other names and loaders share one more.
inline constexpr std::uint32_t most_aggregates = 4096;

enum class chunk_kind : std::uint32_t { none = 0, aggregate = 1, octave = 2 };

struct chunk_header {
  chunk_kind kind;
  std::uint32_t number;  ///< the aggregate's number within its thread
};

/// The sums of an aggregate after a call; a reader sees all of them or none.
struct aggregate_sums {
  std::atomic<std::uint64_t> total_ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> in_bucket;  ///< bucket of that call: see bucket_content()
  std::atomic<std::uint64_t> call;       ///< its number within the thread
};

/// A bucket and its count after a call, which may not have been stored in the bucket itself yet.
inline constexpr unsigned bucket_bits = 12;
constexpr std::uint64_t bucket_content(std::uint32_t bucket, std::uint64_t count) noexcept {
  return count << bucket_bits | bucket;
}

struct stored_aggregate {
  chunk_header header;
  std::uint64_t key;
  std::atomic<std::uint64_t> count;  ///< sums[count % 2] is consistent at any moment
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

/// The location of an aggregate of this process.
struct local_aggregate {
  std::uint64_t key;
  stored_aggregate* stored;
  std::atomic<std::uint64_t>* octave_counts[octaves];  ///< null until needed
};

struct aggregate_memory;

/// The aggregates of one thread, and how much of its time they contain. For the owning thread,
/// except `memory`. The gate of the thread points to its first block.
struct thread_aggregates {
  const local_aggregate* last_to = nullptr;  ///< the aggregate of the last call
  std::uint64_t calls = 0;                   ///< number of calls that ended; the last one is
                                             ///< last[calls % 2] of the first block
  local_aggregate** table = nullptr;         ///< hash table by key, never full
  std::uint64_t mask = 0;                    ///< number of places in it - 1
  std::atomic<std::uintptr_t> storing{0};    ///< like thread_ring::storing, while a call is added
  std::uint32_t interrupting = 0;            ///< number of entries in interrupting_calls
  /// Ticks spent in scopes inside the open one. At least `recorded_inside` if a span began or ended
  /// in it, because then its other ticks are not its own either.
  std::uint64_t inner_ticks = 0;
  std::uint64_t untold_ticks = 0;      ///< self time of calls that no record contains yet
  aggregate_memory* memory = nullptr;  ///< guarded by the producer's guard
  std::uint32_t told_name = 0;         ///< the name of one of these calls
  /// Calls of signal handlers that interrupted the adding of a call.
  static constexpr std::uint32_t most_interrupting = 16;
  aggregate_call interrupting_calls[most_interrupting];

  static constexpr std::uint64_t recorded_inside = std::uint64_t{1} << 63;

  /// Returns where the search for a key in `table` begins.
  static constexpr std::size_t home_of(std::uint64_t key, std::uint64_t mask) noexcept {
    return (key ^ key >> 32) & mask;
  }

  /// Adds the last call to its aggregate. Returns false if there is no room for it yet.
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
    // Until this store, a reader must add the last call itself; from here on the sums contain it.
    // If its bucket does not contain it yet, the sums have the bucket's count.
    stored.count.store(so_many + 1, std::memory_order_release);
    count.store(in_bucket, std::memory_order_release);
    return true;
  }

  /// Returns null if there is none yet.
  LOTUS_DETAIL_ALWAYS_INLINE const local_aggregate* find(std::uint64_t key) const noexcept {
    for (std::size_t place = home_of(key, mask);; place = (place + 1) & mask) {
      const local_aggregate* const found = table[place];
      if (found == nullptr || LOTUS_DETAIL_LIKELY(found->key == key)) return found;
    }
  }

  /// Returns the self time of calls that no record contains yet, because a span begins or ends.
  std::uint64_t tell(record_tag& tag) noexcept {
    // A signal handler interrupted the adding of a call.
    if (storing.load(std::memory_order_relaxed) != 0) return 0;
    inner_ticks |= recorded_inside;
    const std::uint64_t own_ticks = untold_ticks;
    untold_ticks = 0;
    tag = {event_kind::aggregated, told_name, large_stage_number};
    return static_cast<std::int64_t>(own_ticks) > 0 ? own_ticks : 0;
  }

  /// A handler interrupted take() and abandoned it by siglongjmp: undoes the call, as if it had not
  /// begun.
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
    // The last call has been added already: removes it, because the next call will add it. Whatever
    // its bucket contains, the sums have the right count until their own count goes back.
    const std::uint64_t in_bucket = sums.in_bucket.load(relaxed);
    const std::uint64_t bucket = in_bucket & ((std::uint64_t{1} << bucket_bits) - 1);
    to->octave_counts[bucket >> octave_bits][bucket % octave_buckets].store(
        (in_bucket >> bucket_bits) - 1, std::memory_order_release);
    stored.count.store(so_many - 1, std::memory_order_release);
  }

  /// Adds a call; every reader sees it once this returns, even after a kill. Returns false if there
  /// is no room for it, or for the previous one.
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

/// The part of a thread's state that counts calls and stores records.
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
