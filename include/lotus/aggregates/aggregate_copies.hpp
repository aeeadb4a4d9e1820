// Copies the memory blocks with aggregates (sums of counted calls) to private memory, because their
// threads may still be changing them.
#ifndef LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP
#define LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lotus/aggregates/aggregate_chain.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies of the blocks with the aggregates of all threads of a process. Add all blocks, then call
/// finish(), then for_each_chain(). Thread safety: none.
class LOTUS_DETAIL_PER_MODULE aggregate_copies {
 public:
  /// Returns zeroed memory for the copy of a block of this size; null if there is no memory.
  /// Pointers from earlier calls become invalid.
  aggregates_block* add(std::size_t bytes) noexcept {
    void* const block = blocks_.add(bytes);
    auto* const place = static_cast<block_place*>(places_.add(sizeof(block_place)));
    if (block == nullptr || place == nullptr) {
      failed_ = true;
      return nullptr;
    }
    *place = {0, blocks_.bytes() - bytes};
    return static_cast<aggregates_block*>(block);
  }

  /// Copies all blocks of a thread of this process as they are at one moment. The thread may be
  /// adding one call, but must not begin another before this function returns.
  /// @param for_each_block  calls its argument for every block; add_whole() calls it repeatedly.
  void add_whole(function_ref<void(each_block)> for_each_block) noexcept {
    const std::size_t first = count();
    for_each_block([this](const aggregates_block& block) { add(used_bytes(block)); });
    if (failed_) return;
    // If the blocks are equal to their copies afterwards, the copies show one moment.
    constexpr int max_attempts = 100;
    bool same = false;
    for (int attempt = 0; !same && attempt < max_attempts; ++attempt) {
      std::size_t i = first;
      for_each_block(
          [&](const aggregates_block& block) { copy(block, at(i++), used_bytes(block)); });
      same = true;
      i = first;
      for_each_block([&](const aggregates_block& block) {
        same = is_still(block, at(i++), used_bytes(block)) && same;
      });
    }
    std::size_t i = first;
    for_each_block(
        [&](const aggregates_block& block) { at(i++).header.bytes = used_bytes(block); });
  }

  /// Sorts the blocks by thread for for_each_chain(). Call this function after all blocks were
  /// added.
  void finish() noexcept {
    for (std::size_t i = 0; i < count(); ++i) places()[i].chain = at(i).chain;
    // This is a Shellsort, because std::sort would be compiled in every file that uses the library.
    for (std::size_t step = count() / 2; step > 0; step /= 2) {
      for (std::size_t i = step; i < count(); ++i) {
        for (std::size_t k = i; k >= step && places()[k] < places()[k - step]; k -= step) {
          std::swap(places()[k], places()[k - step]);
        }
      }
    }
  }

  /// Whether there was not enough memory for all copies; then the copies must not be used.
  bool failed() const noexcept { return failed_; }
  void fail() noexcept { failed_ = true; }

  /// Calls `each(aggregate_chain&)` for every thread.
  void for_each_chain(aggregate_state state, each_chain each) const noexcept {
    for (std::size_t i = 0; i < count();) {
      aggregate_chain chain{state};
      for (const std::uint32_t thread = places()[i].chain;
           i < count() && places()[i].chain == thread; ++i) {
        chain.add(at(i));
      }
      each(chain);
    }
  }

 private:
  struct block_place {
    std::uint32_t chain;
    std::size_t in_blocks;

    bool operator<(const block_place& other) const noexcept {
      return chain != other.chain ? chain < other.chain : in_blocks < other.in_blocks;
    }
  };

  static std::size_t used_bytes(const aggregates_block& block) noexcept {
    return sizeof(block) +
           static_cast<std::size_t>(block.used_bytes.load(std::memory_order_acquire));
  }

  // Copies word by word with atomic loads, because the thread may be writing to the block.
  static void copy(const aggregates_block& from, aggregates_block& to, std::size_t bytes) noexcept {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(&from);
    auto* const out = reinterpret_cast<std::uint64_t*>(&to);
    for (std::size_t i = 0; i < bytes / sizeof(*words); ++i) {
      out[i] = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
    }
  }
  static bool is_still(const aggregates_block& from, const aggregates_block& copied,
                       std::size_t bytes) noexcept {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(&from);
    const auto* const before = reinterpret_cast<const std::uint64_t*>(&copied);
    for (std::size_t i = 0; i < bytes / sizeof(*words); ++i) {
      if (__atomic_load_n(words + i, __ATOMIC_ACQUIRE) != before[i]) return false;
    }
    return true;
  }

  std::size_t count() const noexcept { return places_.bytes() / sizeof(block_place); }
  block_place* places() const noexcept {
    return reinterpret_cast<block_place*>(const_cast<char*>(places_.data()));
  }
  aggregates_block& at(std::size_t i) const noexcept {
    return *reinterpret_cast<aggregates_block*>(const_cast<char*>(blocks_.data()) +
                                                places()[i].in_blocks);
  }

  growing_memory blocks_;  ///< the copied blocks, one after another
  growing_memory places_;  ///< array of block_place, one for each block
  bool failed_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP
