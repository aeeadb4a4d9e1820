#include "aggregates/live/live_counts.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <lotus/aggregates/aggregate_copies.hpp>
#include <lotus/recovery/ring_copy.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "log/operation_names.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::aggregate_chain;
using lotus::detail::aggregate_state;
using lotus::detail::aggregates_block;
using lotus::detail::whole_aggregate;

// Limits for reading the blocks of aggregates in a ring file, which happens every second.
// max_bytes, the limit for all blocks together, is the size of about 4,000 usual blocks.
constexpr std::uint64_t max_block_bytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20U;

counted_calls calls_of(const whole_aggregate& of) {
  counted_calls calls;
  calls.count = of.count;
  calls.total_ticks = of.total_ticks;
  calls.self_ticks = of.self_ticks;
  std::uint64_t remaining = of.count;
  for (std::uint32_t b = 0; remaining > 0 && b < std::size(of.counts); ++b) {
    if (of.counts[b] == 0) continue;
    remaining -= of.counts[b];
    calls.buckets.emplace_back(b, of.counts[b]);
  }
  return calls;
}

}  // namespace

void live_counts::found(std::uint64_t at, std::uint64_t bytes) {
  if (bytes < sizeof(aggregates_block) || bytes > max_block_bytes || bytes > max_bytes - bytes_)
    return;
  bytes_ += bytes;
  blocks_.push_back({at, bytes});
}

counted_by_name live_counts::read(int fd, const names& of) {
  if (room_ == nullptr) room_ = std::make_unique<whole_aggregate>();
  lotus::detail::aggregate_copies copies;
  for (const located_block& p : blocks_) {
    aggregates_block* const block = copies.add(p.bytes);
    if (block == nullptr || !lotus::detail::read_at(fd, static_cast<void*>(block), p.bytes, p.at)) {
      return {};
    }
    block->header.bytes = p.bytes;
  }
  copies.finish();
  counted_by_name all;
  copies.for_each_chain(aggregate_state::moving, [&](aggregate_chain& chain) {
    chain.for_each(*room_, [&](const whole_aggregate& one) {
      const std::string folder = of.folder(one.loader());
      const std::string_view start = of.line_start(one.name());
      all[{folder, decode_name(start.substr(0, start.size() - 1))}].add(calls_of(one));
    });
  });
  return all;
}

}  // namespace lotus::tool
