// Finds memory that is allocated for every batch and never freed.
#ifndef LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
#define LOTUS_TOOL_HEAP_DATA_LEAKS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Bytes that an operation allocates and nobody frees, per unit (batch) that begins.
struct leak {
  std::uint32_t name = 0;  ///< innermost operation at the allocation: number in run_data::names
  std::uint32_t unit_name = 0;  ///< process_heap::unit_name
  double bytes_per_unit = 0;
  double low = 0;  ///< lower end of the 99 % interval
  double high = 0;
  std::uint64_t units = 0;  ///< units from which the rate was calculated
};

/// Returns the statistically significant leaks, the largest first.
///
/// A growing heap is no proof, because a pipeline also holds what is in flight, in caches or in its
/// last batch. So this looks at allocations by generation (recovery/heap_hook.hpp): allocations of
/// the first half of a process's units, except the first tenth (setup), should all be freed at the
/// end. If they are not, the bytes per unit are a mean over generations, weighted by their length,
/// with Student's interval. Memory of only a few generations, such as an array that grew, is not a
/// leak: in each half of the tested generations, at least three must have unfreed memory.
std::vector<leak> find_leaks(const heap_data& heap);

/// "SDecode leaves 256 B behind with every batch (99 %: 250 B to 262 B, from 40 batches)"
std::string leak_text(const leak& told, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
