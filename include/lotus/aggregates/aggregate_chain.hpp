// Reads the aggregates (sums of counted calls) of one thread from their memory blocks.
#ifndef LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The values of one aggregate (the sums for one name and one loader) at one moment.
struct whole_aggregate {
  std::uint64_t key;
  std::uint64_t count;
  std::uint64_t total_ticks;
  std::uint64_t self_ticks;
  std::uint64_t counts[octaves * octave_buckets];

  std::uint32_t name() const noexcept { return static_cast<std::uint32_t>(key); }
  std::uint32_t loader() const noexcept { return static_cast<std::uint32_t>(key >> 32); }
};

/// Whether the values in the copied memory blocks may belong to different moments.
enum class aggregate_state : std::uint8_t {
  whole,   ///< all values belong to one moment, except for at most one call that is being added
  moving,  ///< the blocks were copied while the thread continued to add calls
};

/// Reads aggregates, possibly while their thread adds to them, and checks that their values are
/// consistent. If the blocks were copied while the thread continued to add calls (`moving`),
/// computes the counts from the duration buckets; the sums may then belong to a slightly different
/// moment than the counts.
class LOTUS_DETAIL_PER_MODULE aggregate_chain {
 public:
  explicit aggregate_chain(aggregate_state state = aggregate_state::whole) noexcept
      : moving_{state == aggregate_state::moving} {}

  /// Adds a block, which must outlive this object. Returns false if there is no memory.
  bool add(const aggregates_block& block) noexcept {
    auto* const place = static_cast<const aggregates_block**>(blocks_.add(sizeof(void*)));
    if (place == nullptr) return false;
    *place = &block;
    if (block.threads.load(std::memory_order_relaxed) == 1) {
      tid_ = block.tid.load(std::memory_order_relaxed);
    }
    if (number_of_last(block) > 0) first_ = &block;
    return true;
  }

  /// Returns the id of the thread whose calls the blocks contain; 0 if several threads used the
  /// blocks one after another.
  std::uint32_t tid() const noexcept { return tid_; }

  /// Calls `each(const whole_aggregate&)` for every aggregate that has at least one call.
  /// @param to  buffer for one aggregate.
  /// @return number of aggregates that were omitted because their values are inconsistent.
  std::uint64_t for_each(whole_aggregate& to,
                         function_ref<void(const whole_aggregate&)> each) noexcept {
    std::uint64_t inconsistent = 0;
    std::uint32_t seen = 0;
    take_last();
    for_each_chunk([&](const chunk_header& head, const char* at) {
      if (head.kind != chunk_kind::aggregate || ++seen > max_aggregates + 1) return;
      if (!read(*reinterpret_cast<const stored_aggregate*>(at), to)) {
        ++inconsistent;
      } else if (to.count > 0) {
        each(static_cast<const whole_aggregate&>(to));
      }
    });
    if (last_number_ == 0) return inconsistent;
    // A thread's last call is stored separately until its next call ends. If no aggregate has the
    // key of the last call, that call is the first one of its name and gets an aggregate of its own
    // here.
    std::memset(static_cast<void*>(&to), 0, sizeof(to));
    to.key = last_.key;
    add_last(to);
    each(static_cast<const whole_aggregate&>(to));
    return inconsistent;
  }

 private:
  /// Calls `each(header, at)` for every complete chunk, which begins at the address `at` and has
  /// this header. A chunk contains the sums of an aggregate, or its counts for one range of
  /// durations.
  void for_each_chunk(function_ref<void(const chunk_header&, const char* at)> each) const noexcept {
    for (std::size_t i = 0; i < blocks_.bytes() / sizeof(void*); ++i) {
      const aggregates_block& block =
          *reinterpret_cast<const aggregates_block* const*>(blocks_.data())[i];
      const std::uint64_t room = block.header.bytes - sizeof(aggregates_block);
      const std::uint64_t used = block.used_bytes.load(std::memory_order_acquire);
      const std::uint64_t bytes = used < room ? used : room;
      for (std::uint64_t at = 0; bytes - at >= sizeof(chunk_header);) {
        chunk_header head{};
        std::memcpy(&head, block.chunks() + at, sizeof(head));
        const std::size_t length = head.kind == chunk_kind::aggregate ? sizeof(stored_aggregate)
                                   : head.kind == chunk_kind::octave  ? sizeof(stored_octave)
                                                                      : 0;
        if (length == 0 || length > bytes - at) break;
        each(head, block.chunks() + at);
        at += length;
      }
    }
  }

  static std::uint64_t number_of_last(const aggregates_block& block) noexcept {
    const std::uint64_t a = block.last[0].number.load(std::memory_order_acquire);
    const std::uint64_t b = block.last[1].number.load(std::memory_order_acquire);
    return a > b ? a : b;
  }

  void take_last() noexcept {
    last_number_ = first_ == nullptr ? 0 : number_of_last(*first_);
    if (last_number_ == 0) return;
    const last_call& last = first_->last[last_number_ % 2];
    last_ = {last.key.load(std::memory_order_relaxed), last.ticks.load(std::memory_order_relaxed),
             last.self_ticks.load(std::memory_order_relaxed)};
    if (is_negative(last_) || last_.self_ticks > last_.ticks) last_.ticks = last_.self_ticks = 0;
  }

  void add_last(whole_aggregate& to) noexcept {
    ++to.count;
    to.total_ticks += last_.ticks;
    to.self_ticks += last_.self_ticks;
    ++to.counts[bucket_of(last_.ticks)];
    last_number_ = 0;
  }

  /// Reads an aggregate, and tries again if the thread changes the aggregate during the reading.
  bool read(const stored_aggregate& from, whole_aggregate& to) noexcept {
    // With `moving`, the aggregate is in a copy, which no longer changes, so a second attempt would
    // give the same result.
    const int max_attempts = moving_ ? 1 : 100;
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
      to.key = from.key;
      to.count = from.count.load(std::memory_order_acquire);
      // These loads use acquire order, because they must happen before the count is checked again
      // below.
      const aggregate_sums& sums = from.sums[to.count % 2];
      to.total_ticks = sums.total_ticks.load(std::memory_order_acquire);
      to.self_ticks = sums.self_ticks.load(std::memory_order_acquire);
      const std::uint64_t in_bucket = sums.in_bucket.load(std::memory_order_acquire);
      const std::uint64_t call = sums.call.load(std::memory_order_acquire);
      const std::uint64_t bucket = in_bucket % (std::uint64_t{1} << bucket_bits);
      if (bucket >= std::uint64_t{octaves} * octave_buckets || !read_counts(from.header.number, to))
        return false;
      if (to.count > 0) to.counts[bucket] = in_bucket >> bucket_bits;
      if (from.count.load(std::memory_order_relaxed) != to.count || !is_sum(to)) continue;
      if (last_number_ > 0 && last_.key == to.key) {
        if (call < last_number_) add_last(to);
        last_number_ = 0;
      }
      return true;
    }
    return moving_ && count_in_buckets(to);
  }

  /// Computes the number of calls from the duration buckets. The stored number of calls may differ
  /// from the sum of the buckets, because calls were added while the block was copied.
  bool count_in_buckets(whole_aggregate& to) noexcept {
    to.count = 0;
    for (const std::uint64_t n : to.counts) {
      if (__builtin_add_overflow(to.count, n, &to.count)) return false;
    }
    if (to.self_ticks > to.total_ticks) to.self_ticks = to.total_ticks;
    if (last_.key == to.key) last_number_ = 0;
    return true;
  }

  bool read_counts(std::uint32_t number, whole_aggregate& to) const noexcept {
    std::memset(to.counts, 0, sizeof(to.counts));
    bool sound = true;
    for_each_chunk([&](const chunk_header& head, const char* at) {
      if (head.kind != chunk_kind::octave || head.number != number) return;
      const auto& octave = *reinterpret_cast<const stored_octave*>(at);
      if (octave.octave >= octaves) {
        sound = false;
        return;
      }
      for (std::uint32_t b = 0; b < octave_buckets; ++b) {
        to.counts[octave.octave * octave_buckets + b] =
            octave.counts[b].load(std::memory_order_acquire);
      }
    });
    return sound;
  }

  static bool is_sum(const whole_aggregate& of) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : of.counts) {
      if (__builtin_add_overflow(sum, n, &sum)) return false;
    }
    return sum == of.count && of.self_ticks <= of.total_ticks;
  }

  bool moving_;
  growing_memory blocks_;  ///< array of pointers to the blocks
  const aggregates_block* first_ = nullptr;
  std::uint32_t tid_ = 0;
  aggregate_call last_{};
  /// Number of the last call if its aggregate does not contain it yet, otherwise 0.
  std::uint64_t last_number_ = 0;
};

using each_block = function_ref<void(aggregates_block&)>;
using each_chain = function_ref<void(aggregate_chain&)>;

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP
