#include "aggregates/live/live_counts.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <lotus/aggregates/aggregate_copies.hpp>
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

counted_by_name read_counts(const detail::dead_ring_file& file, const ring_names& names) {
  lotus::detail::aggregate_copies copies;
  std::uint64_t all_bytes = 0;
  bool read = true;
  file.for_each_aggregates_block([&](std::uint64_t at, std::uint64_t bytes) {
    if (bytes < sizeof(aggregates_block) || bytes > max_block_bytes ||
        bytes > max_bytes - all_bytes || !read) {
      return;
    }
    all_bytes += bytes;
    aggregates_block* const block = copies.add(bytes);
    read = block != nullptr &&
           lotus::detail::read_at(file.descriptor(), static_cast<void*>(block), bytes, at);
    if (read) block->header.bytes = bytes;
  });
  if (!read || all_bytes == 0) return {};
  copies.finish();
  counted_by_name all;
  const auto room = std::make_unique<whole_aggregate>();
  copies.for_each_chain(aggregate_state::moving, [&](aggregate_chain& chain) {
    chain.for_each(*room, [&](const whole_aggregate& one) {
      const std::string folder = names.folder(one.loader());
      const std::string_view start = names.line_start(one.name());
      all[{folder, decode_name(start.substr(0, start.size() - 1))}].add(calls_of(one));
    });
  });
  return all;
}

}  // namespace lotus::tool
