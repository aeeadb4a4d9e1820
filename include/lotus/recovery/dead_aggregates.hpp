// The aggregates that a dead process left in its ring file.
#ifndef LOTUS_RECOVERY_DEAD_AGGREGATES_HPP
#define LOTUS_RECOVERY_DEAD_AGGREGATES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/format/aggregates/aggregate_chain.hpp"
#include "lotus/format/aggregates/aggregate_copies.hpp"
#include "lotus/format/aggregates/aggregate_text.hpp"
#include "lotus/record/aggregates.hpp"
#include "lotus/recovery/dead_ring.hpp"
#include "lotus/recovery/ring_copy.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Copies of them, whose blocks have been found.
class LOTUS_DETAIL_PER_MODULE dead_aggregates {
 public:
  /// @param file   borrowed.
  /// @param state  moving, where its process may live.
  explicit dead_aggregates(const dead_ring_file& file,
                           aggregate_state state = aggregate_state::whole) noexcept
      : file_{file}, state_{state} {
    file.for_each_aggregates_block([this](std::uint64_t at, std::uint64_t bytes) {
      if (bytes > most_block_bytes) {
        ++doubted_;
        return;
      }
      aggregates_block* const block = copies_.add(static_cast<std::size_t>(bytes));
      if (block == nullptr) return;
      if (!read_at(file_.descriptor(), static_cast<void*>(block), static_cast<std::size_t>(bytes),
                   at)) {
        copies_.fail();
      }
      block->header.bytes = bytes;  // it may have been changed since it was looked at
    });
    copies_.finish();
  }

  /// Blocks that are not believed.
  std::uint64_t doubted() const noexcept { return doubted_; }

  /// As detail::for_each_section().
  template <class Append>
  int for_each_section(Append&& append) const noexcept {
    if (copies_.failed()) return ENOMEM;
    return detail::for_each_section(
        {file_.header().begun_ns, 0}, mean_rate(file_.clocks()),
        [this](std::uint32_t id) { return file_.line_start(id); },
        [this](auto&& each) { copies_.for_each_chain(state_, each); }, append);
  }

 private:
  /// Ours are smaller.
  static constexpr std::uint64_t most_block_bytes = std::uint64_t{256} << 10;

  const dead_ring_file& file_;
  aggregate_state state_;
  aggregate_copies copies_;
  std::uint64_t doubted_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_AGGREGATES_HPP
