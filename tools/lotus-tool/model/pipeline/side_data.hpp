// What the hidden files beside the logs tell of a run: stages, pieces, counters, takings, ranges.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP

#include <cstdint>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "model/identifiers.hpp"
#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

/// Numbers have 64 bits without a sign; all but the largest are the same with one.
constexpr std::uint64_t shown_number(std::int64_t number) noexcept {
  return static_cast<std::uint64_t>(number);
}

/// Work of one thread for one batch, item or request in a stage. The thread's log holds an
/// operation of just this name, start and duration.
struct stage_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = 0;  ///< of the batch, item or request: see shown_number()
  std::uint32_t name = 0;   ///< of run_data::names, with its S
  optional_file file = {};
  consumer_id consumer = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// A piece of an asynchronous operation, also an operation of the thread's log.
struct async_piece {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t id = 0;        ///< of the operation, in its process
  std::uint64_t process = 0;  ///< its pid; where that is unknown the same for all
  std::uint32_t name = 0;     ///< of run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

struct counter_value {
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
  std::uint64_t process = 0;  ///< as of async_piece: each process has its own
  std::uint32_t name = 0;     ///< of run_data::names
  optional_file file = {};
};

/// An item went into a batch.
struct batch_taking {
  std::int64_t time_ns = 0;
  std::int64_t batch = 0;
  std::int64_t item = 0;
  consumer_id consumer = {};
};

/// A stretch of a thread's time that the program names, and no operation.
struct named_range {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = -1;  ///< that its name ends in; -1: in none
  std::uint32_t name = 0;    ///< of run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// What the operation of this thread that began then was given.
struct operation_arguments {
  std::int64_t start_ns = 0;
  std::uint32_t text = 0;  ///< of run_data::names, behind an S
  optional_file file = {};
};

/// All in order of time. Each of these also counts for first_ns and last_ns of a run.
struct side_data {
  std::vector<stage_span> stages;
  std::vector<async_piece> pieces;
  std::vector<counter_value> counters;
  std::vector<batch_taking> takings;
  std::vector<named_range> ranges;
  std::vector<operation_arguments> arguments;
  std::vector<off_cpu_time> off_cpu;  ///< by place in run_files::files
  heap_data heap;
  /// Likewise: when a thread was in calls that are aggregated, and in no other scope within them.
  std::vector<off_cpu_time> aggregated;

  /// When the thread was off the CPU; nullptr where that is not known.
  /// @param whole_batch  what is known where clocks are read at the ends of waits and batches only:
  ///                     these, and steps, which lie between waits.
  const off_cpu_time* off_cpu_of(optional_file file, bool whole_batch = false) const noexcept {
    if (!file || file->value() >= off_cpu.size()) return nullptr;
    const off_cpu_time& of = off_cpu[file->value()];
    return (whole_batch ? of.known_of_batches() : of.known()) ? &of : nullptr;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
