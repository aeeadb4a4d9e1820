// Reads the aggregates (sums of counted calls) in a ring file.
#ifndef LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP
#define LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP

#include <cstdint>

#include "lotus/aggregates/aggregate_chain.hpp"
#include "lotus/aggregates/dead_aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/recovery/dead_ring.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies the aggregates of a ring file to memory.
/// @param file   borrowed; its read_blocks() must have been called.
/// @param state  `moving` if the file's process may still be running.
LOTUS_DETAIL_COLD inline dead_aggregates read_aggregates(const dead_ring_file& file,
                                                         aggregate_state state) noexcept {
  return dead_aggregates{
      {file.descriptor(), file.header().began_ns, mean_rate(file.clocks()), file.names()},
      state,
      [&file](auto&& each) { file.for_each_aggregates_block(each); }};
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP
