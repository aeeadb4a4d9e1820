// Shows how operations used the heap, and which memory leaks with every batch.
#ifndef LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
#define LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "describe/described.hpp"
#include "heap/data/heap_data.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct operation_calls {
  std::string name;
  std::uint64_t calls = 0;
};

/// How one operation, or the preprocessing of all batches, used the heap.
struct memory_row {
  std::string name;  ///< as in the logs
  std::uint64_t calls = 0;
  heap_use use;
  std::uint64_t held = 0;  ///< bytes held by all processes at the end
};

/// A leak with the names of the run's operations.
struct named_leak : leak {
  const name_table* names = nullptr;
};

/// How a run used the heap, summed over all processes.
struct memory_stats {
  std::vector<memory_row> operations;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t held = 0;
  std::uint64_t max_held = 0;  ///< sum of process_heap::max_held over the processes
  std::vector<named_leak> leaks;
};
const description<memory_row>& description_of(const memory_row*);
const description<named_leak>& description_of(const named_leak*);
const description<memory_stats>& description_of(const memory_stats*);

/// Returns how a run used the heap; nullopt if allocations were not counted.
std::optional<memory_stats> memory_of(const run_data& run,
                                      const std::vector<operation_calls>& operations);

/// Prints a table of the heap use of operations. If allocations were not counted, prints only one
/// line.
void print_memory_table(const std::optional<memory_stats>& memory, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
