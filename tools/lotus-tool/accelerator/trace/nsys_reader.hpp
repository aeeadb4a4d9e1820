// Reads databases that NVIDIA's `nsys export --type sqlite` writes.
#ifndef LOTUS_TOOL_ACCELERATOR_TRACE_NSYS_READER_HPP
#define LOTUS_TOOL_ACCELERATOR_TRACE_NSYS_READER_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/trace/device_trace.hpp"

namespace lotus::tool {

/// Returns whether the file begins like a SQLite database.
bool is_sqlite(const std::string& path);

/// Returns the processes that used an accelerator, by their numbers in the column globalPid.
/// Returns only nullopt, which stands for all processes, if the database lacks this column or
/// contains fewer than two processes. Throws input_error.
std::vector<std::optional<std::int64_t>> processes_of_nsys(const std::string& path);

/// Reads the tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME and NVTX_EVENTS; a
/// missing table counts as empty. Of the NVTX ranges, it uses Lotus's waits and scopes named Copy,
/// PyTorch's waits and operators, and training steps: "ProfilerStep#3", "step 3", "iteration 3",
/// "batch 3". Throws input_error.
/// @param process  an element of the result of processes_of_nsys().
device_trace read_nsys_database(const std::string& path, std::optional<std::int64_t> process);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_TRACE_NSYS_READER_HPP
