// The contents of a run's side logs, which store what main logs cannot: stages, segments of
// asynchronous operations, counters, which items became part of which batch, and named ranges.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP

#include <cstdint>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "model/identifiers.hpp"
#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

/// Converts the number of a batch or item from the signed 64-bit type in which the tool stores it
/// to the unsigned 64-bit number that the program used.
constexpr std::uint64_t shown_number(std::int64_t number) noexcept {
  return static_cast<std::uint64_t>(number);
}

/// The work of one thread on one batch, item or request in a stage. The thread's log contains an
/// operation with the same name, start and duration.
struct stage_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = 0;  ///< number of the batch, item or request; see shown_number()
  std::uint32_t name = 0;   ///< index in run_data::names; that name begins with S
  optional_file file = {};
  consumer_id consumer = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// An interval in which an asynchronous operation ran on one thread. The thread's log also contains
/// the segment as an operation.
struct async_segment {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t id = 0;        ///< id of the asynchronous operation, unique in its process
  std::uint64_t process = 0;  ///< pid of the process; 0 if pids are unknown
  std::uint32_t name = 0;     ///< index of the name in run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

struct counter_value {
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
  std::uint64_t process = 0;  ///< pid of the process, or 0; each process has its own counters
  std::uint32_t name = 0;     ///< index of the name in run_data::names
  optional_file file = {};
};

/// The event that an item became part of a batch.
struct batch_inclusion {
  std::int64_t time_ns = 0;
  std::int64_t batch = 0;
  std::int64_t item = 0;
  consumer_id consumer = {};
};

/// A named interval of a thread's time that the program recorded with `lotus::range`, not as an
/// operation.
struct named_range {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = -1;  ///< number at the end of the range's name; -1: no number
  std::uint32_t name = 0;    ///< index of the name in run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// The arguments of the call of an operation that began at `start_ns` on the thread with the log
/// `file`.
struct operation_arguments {
  std::int64_t start_ns = 0;
  /// The text of the arguments, as an index in run_data::names, where an S precedes the text.
  std::uint32_t text = 0;
  optional_file file = {};
};

/// The contents of all side logs. Each list is in order of time.
struct side_data {
  std::vector<stage_span> stages;
  std::vector<async_segment> segments;
  std::vector<counter_value> counters;
  std::vector<batch_inclusion> inclusions;
  std::vector<named_range> ranges;
  std::vector<operation_arguments> arguments;
  /// When each thread was off the CPU, by index in run_files::files.
  std::vector<off_cpu_time> off_cpu;
  heap_data heap;
  /// For each thread, by index in run_files::files: the time in aggregated operations (which are
  /// counted instead of recorded), without the recorded scopes inside them.
  std::vector<off_cpu_time> aggregated;

  /// Returns when the thread with the log `file` was off the CPU; nullptr if that is unknown.
  /// @param whole_batch  whether the caller asks only about complete waits, batches and steps. Then
  ///   the result may come from a program that read CPU clocks only at the ends of waits and
  ///   batches.
  const off_cpu_time* off_cpu_of(optional_file file, bool whole_batch = false) const noexcept {
    if (!file || file->value() >= off_cpu.size()) return nullptr;
    const off_cpu_time& of = off_cpu[file->value()];
    return (whole_batch ? of.known_of_batches() : of.known()) ? &of : nullptr;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
