// Reads the files in which processes recorded the stacks of their waiting threads.
#ifndef LOTUS_TOOL_WAITS_DATA_STACK_FILES_HPP
#define LOTUS_TOOL_WAITS_DATA_STACK_FILES_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/unwind/stack_copy.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {

/// Sets wait_sample::stack and holder_stack of the samples. Files that cannot be read, because they
/// belong to another user, count as missing.
void find_stacks(const run_files& run, std::vector<process_waits>& processes,
                 diagnostic_log& diagnostics);

/// A stack from which all words except addresses were removed.
struct recorded_stack {
  stack_copy copy;
  std::size_t code = 0;  ///< index in process_stacks::code
};

/// What a thread did when a snapshot was taken.
struct thread_state {
  std::uint64_t tid = 0;
  std::string name;
  bool waits = false;  ///< otherwise the thread was running
  wait_sample wait;    ///< what it waited for, and the number of its stack
  /// The time since which the thread had waited for a batch, in ns since 1970; 0: it did not wait
  /// for one.
  std::int64_t batch_since_ns = 0;
};

struct process_stacks {
  std::vector<std::vector<mapped_code>> code;  ///< code mapped at different times, by address
  std::map<std::uint64_t, recorded_stack> by_number;
  /// The calls of the stacks whose names were stored when the run ended.
  std::map<std::uint64_t, std::vector<source_place>> named;
  /// States of all threads at the time `states_ns` of the last snapshot; empty if none was taken.
  std::vector<thread_state> states;
  std::int64_t states_ns = 0;
};

/// Reads the stacks of a process. Reports damaged lines. Throws input_error.
/// @param ending  identifies the process; see process_waits::ending.
process_stacks read_stacks(const run_files& run, const std::string& ending,
                           diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_DATA_STACK_FILES_HPP
