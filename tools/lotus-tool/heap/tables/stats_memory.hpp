// Prints how operations used the heap, and which memory leaks with every batch.
#ifndef LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
#define LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

struct operation_calls {
  std::string name;
  std::uint64_t calls = 0;
};

/// Prints a table of the heap use of `operations`. If allocations were not counted, prints only one
/// line.
void print_memory_table(const run_data& run, const std::vector<operation_calls>& operations,
                        std::ostream& out);
/// Writes the members about memory of a run's JSON object; leaves out members without data.
void write_memory_json(json_writer& json, const run_data& run,
                       const std::vector<operation_calls>& operations);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_TABLES_STATS_MEMORY_HPP
