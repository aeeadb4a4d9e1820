// What used the CPUs outside of all markers: threads without markers, and the time before the run.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_UNMARKED_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_UNMARKED_HPP

#include <string>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Returns the group of threads without records that used most CPU time, and the function in which
/// it did, such as "8 threads in `resize` (mostly `gomp_barrier`)"; "" if `lotus-tool run` did not
/// sample the program's threads. Throws input_error.
std::string busiest_unmarked(const run_data& run);

/// Returns the CPU time that the program had used before the first work of the run, in ns; 0 if it
/// is unknown, or if the beginning of the run is missing.
double cpu_before_ns(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_UNMARKED_HPP
