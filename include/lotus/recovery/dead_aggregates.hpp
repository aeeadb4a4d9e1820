// The aggregates that a dead process left in its ring file.
#ifndef LOTUS_RECOVERY_DEAD_AGGREGATES_HPP
#define LOTUS_RECOVERY_DEAD_AGGREGATES_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/aggregates.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/recovery/aggregate_chain.hpp"
#include "lotus/recovery/aggregate_text.hpp"
#include "lotus/recovery/dead_ring.hpp"
#include "lotus/recovery/ring_copy.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Copies of them, whose blocks have been found.
class LOTUS_DETAIL_PER_MODULE dead_aggregates {
 public:
  /// @param file  borrowed.
  explicit dead_aggregates(const dead_ring_file& file) noexcept : file_{file} {
    file.for_each_aggregates_block([this](std::uint64_t at, std::uint64_t bytes) {
      if (bytes > most_block_bytes) {
        ++doubted_;
        return;
      }
      void* const copy = blocks_.add(static_cast<std::size_t>(bytes));
      auto* const place = static_cast<block_place*>(places_.add(sizeof(block_place)));
      if (copy == nullptr || place == nullptr ||
          !read_at(file_.descriptor(), copy, static_cast<std::size_t>(bytes), at)) {
        failed_ = true;
        return;
      }
      auto& block = *static_cast<aggregates_block*>(copy);
      block.header.bytes = bytes;  // it may have been changed since it was looked at
      *place = {block.chain, static_cast<std::size_t>(blocks_.bytes() - bytes)};
    });
    std::sort(first_place(), behind_places());
  }

  /// Blocks that are not believed.
  std::uint64_t doubted() const noexcept { return doubted_; }

  /// As detail::for_each_section().
  template <class Append>
  int for_each_section(Append&& append) const noexcept {
    if (failed_) return ENOMEM;
    return detail::for_each_section(
        {file_.header().begun_ns, 0}, mean_rate(file_.clocks()),
        [this](std::uint32_t id) { return file_.line_start(id); },
        [this](auto&& each) {
          for (block_place* at = first_place(); at != behind_places();) {
            aggregate_chain chain;
            for (const std::uint32_t thread = at->chain;
                 at != behind_places() && at->chain == thread; ++at) {
              chain.add(*reinterpret_cast<const aggregates_block*>(blocks_.data() + at->in_blocks));
            }
            each(chain);
          }
        },
        append);
  }

 private:
  /// Ours are smaller.
  static constexpr std::uint64_t most_block_bytes = std::uint64_t{256} << 10;

  struct block_place {
    std::uint32_t chain;
    std::size_t in_blocks;

    bool operator<(const block_place& other) const noexcept {
      return chain != other.chain ? chain < other.chain : in_blocks < other.in_blocks;
    }
  };

  block_place* first_place() const noexcept {
    return reinterpret_cast<block_place*>(const_cast<char*>(places_.data()));
  }
  block_place* behind_places() const noexcept {
    return first_place() + places_.bytes() / sizeof(block_place);
  }

  const dead_ring_file& file_;
  growing_memory blocks_;  ///< one behind the other
  growing_memory places_;  ///< of block_place
  std::uint64_t doubted_ = 0;
  bool failed_ = false;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_AGGREGATES_HPP
