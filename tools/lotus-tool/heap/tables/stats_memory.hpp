// Prints what operations did to the heap, and what leaks with every batch.
#ifndef LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
#define LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// How often an operation was called.
struct operation_calls {
  std::string name;
  std::uint64_t calls = 0;
};

/// Prints the memory section of the table for these operations; one line if nothing was counted.
void print_memory_table(const run_data& run, const std::vector<operation_calls>& operations,
                        std::ostream& out);
/// Writes members of a run's JSON object, each only if there is data for it.
void write_memory_json(json_writer& json, const run_data& run,
                       const std::vector<operation_calls>& operations);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
