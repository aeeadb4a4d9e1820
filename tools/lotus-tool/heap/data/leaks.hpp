// What stays behind with every batch.
#ifndef LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
#define LOTUS_TOOL_HEAP_DATA_LEAKS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// What an operation allocated and nobody frees: so many bytes for each unit (batch) that begins.
struct leak {
  std::uint32_t name = 0;       ///< of the innermost operation at the allocation, run_data::names
  std::uint32_t unit_name = 0;  ///< process_heap::unit_name
  double bytes_per_unit = 0;
  double low = 0;  ///< of the 99 % interval
  double high = 0;
  std::uint64_t units = 0;  ///< that it is told from
};

/// The growth that is beyond chance, the largest first.
///
/// What a pipeline has in flight, keeps in caches or in its last batch is held too. So it is not
/// the heap's growth that is looked at, but what was allocated by generation (recovery/
/// heap_hook.hpp): of the first half of a process's units, without a tenth for what is made once,
/// all would be gone at the end. Where it is not, its bytes a unit are a mean over generations
/// (weighted by their length) with Student's interval; what a few generations left, as an array
/// that was made longer, is no leak: both halves of these must have left something three times.
std::vector<leak> find_leaks(const heap_data& heap);

/// "SDecode leaves 256 B behind with every batch (99 %: 250 B to 262 B, from 40 batches)"
std::string leak_text(const leak& told, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_LEAKS_HPP
