// Copies the aggregates (sums of counted calls) from the ring file of another process, block by
// block.
#ifndef LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP
#define LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "lotus/aggregates/aggregate_chain.hpp"
#include "lotus/aggregates/aggregate_copies.hpp"
#include "lotus/aggregates/aggregate_text.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The ring file from which aggregates are read.
struct aggregates_source {
  int descriptor;          ///< descriptor of the file; borrowed
  std::uint64_t began_ns;  ///< start of the recording, from the file's header
  std::uint64_t rate;      ///< mean_rate() of the file's clock
  name_lookup names;       ///< returns the start of a line, "S<name>,", for a name's id
};

using each_place = function_ref<void(std::uint64_t at, std::uint64_t bytes)>;

/// Copies of all aggregate blocks of a ring file.
class LOTUS_DETAIL_PER_MODULE dead_aggregates {
 public:
  /// @param state           `moving` if the file's process may still be running.
  /// @param for_each_block  calls its argument with position and size of every block in the file.
  dead_aggregates(const aggregates_source& of, aggregate_state state,
                  function_ref<void(each_place)> for_each_block) noexcept
      : of_{of}, state_{state} {
    for_each_block([this](std::uint64_t at, std::uint64_t bytes) { add(at, bytes); });
    copies_.finish();
  }

  /// Returns the number of blocks that were ignored because their size is implausible.
  std::uint64_t doubted() const noexcept { return doubted_; }

  /// Writes all aggregates as text; see detail::for_each_section().
  int for_each_section(append_section append) const noexcept {
    if (copies_.failed()) return ENOMEM;
    return detail::for_each_section(
        {of_.began_ns, 0}, of_.rate, of_.names,
        [this](each_chain each) { copies_.for_each_chain(state_, each); }, append);
  }

 private:
  /// Maximum size of a block. The library creates only smaller blocks, so a larger size shows
  /// damage.
  static constexpr std::uint64_t max_block_bytes = std::uint64_t{256} << 10;

  void add(std::uint64_t at, std::uint64_t bytes) noexcept {
    if (bytes > max_block_bytes) {
      ++doubted_;
      return;
    }
    aggregates_block* const block = copies_.add(static_cast<std::size_t>(bytes));
    if (block == nullptr) return;
    if (!read_at(of_.descriptor, static_cast<void*>(block), static_cast<std::size_t>(bytes), at)) {
      copies_.fail();
    }
    // Restores the size that was checked above, because a running process may have changed it in
    // the file before the block was read.
    block->header.bytes = bytes;
  }

  const aggregates_source of_;
  aggregate_state state_;
  aggregate_copies copies_;
  std::uint64_t doubted_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP
