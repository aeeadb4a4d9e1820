// Finds memory that is allocated for every batch and never freed.
#ifndef LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
#define LOTUS_TOOL_HEAP_DATA_LEAKS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Bytes that an operation allocates for each unit (batch) and that are never freed.
struct leak {
  /// Innermost operation at the allocation, as a number in run_data::names.
  std::uint32_t name = 0;
  std::uint32_t unit_name = 0;  ///< name of the units, as in process_heap::unit_name
  double bytes_per_unit = 0;
  double low = 0;  ///< lower end of the 99 % confidence interval
  double high = 0;
  std::uint64_t units = 0;  ///< number of units from which the rate was calculated
};

/// Returns the statistically significant leaks; the largest comes first.
///
/// A growing heap is no proof of a leak, because a pipeline also holds batches in flight and
/// caches. So liblotus_memory.so counts for each generation (a range of batches, see
/// lotus/heap/heap_hook.hpp) the bytes that were allocated in it and are not freed. At the end of a
/// run, the allocations of its first half should be freed, except those of the first tenth, which
/// is the setup. A leak's bytes per batch are the mean of the unfreed bytes over these generations,
/// weighted by their length, with Student's interval. An array that grew is no leak: it leaves
/// memory in only a few generations. So at least three generations in each half of the tested ones
/// must have unfreed memory.
std::vector<leak> find_leaks(const heap_data& heap);

/// Returns "Decode leaves 256 B behind with every batch (99 %: 250 B to 262 B, from 40 batches)".
std::string leak_text(const leak& found, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
