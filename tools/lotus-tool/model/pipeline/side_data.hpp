// The contents of a run's side logs: stages, segments, counters, takings, ranges.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP

#include <cstdint>
#include <vector>

#include "heap/data/heap_data.hpp"
#include "model/identifiers.hpp"
#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

/// Numbers are unsigned with 64 bits but stored as signed; only the largest ones differ.
constexpr std::uint64_t shown_number(std::int64_t number) noexcept {
  return static_cast<std::uint64_t>(number);
}

/// Work of one thread on one batch, item or request in a stage. The thread's log contains an
/// operation with the same name, start and duration.
struct stage_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = 0;  ///< number of the batch, item or request: see shown_number()
  std::uint32_t name = 0;   ///< index in run_data::names; the name has its leading S
  optional_file file = {};
  consumer_id consumer = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// A segment of an asynchronous operation, which is also an operation in the thread's log.
struct async_piece {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t id = 0;        ///< id of the operation, unique in its process
  std::uint64_t process = 0;  ///< its pid; if unknown, the same value for all
  std::uint32_t name = 0;     ///< index in run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

struct counter_value {
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
  std::uint64_t process = 0;  ///< as in async_piece: each process has its own counters
  std::uint32_t name = 0;     ///< index in run_data::names
  optional_file file = {};
};

/// An item became part of a batch.
struct batch_taking {
  std::int64_t time_ns = 0;
  std::int64_t batch = 0;
  std::int64_t item = 0;
  consumer_id consumer = {};
};

/// A named range of a thread's time that is not an operation.
struct named_range {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = -1;  ///< number at the end of its name; -1: none
  std::uint32_t name = 0;    ///< index in run_data::names
  optional_file file = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// The arguments of the operation of this thread that began at `start_ns`.
struct operation_arguments {
  std::int64_t start_ns = 0;
  std::uint32_t text = 0;  ///< index in run_data::names; the text follows an S
  optional_file file = {};
};

/// All lists are in order of time. All entries count for first_ns and last_ns of a run.
struct side_data {
  std::vector<stage_span> stages;
  std::vector<async_piece> pieces;
  std::vector<counter_value> counters;
  std::vector<batch_taking> takings;
  std::vector<named_range> ranges;
  std::vector<operation_arguments> arguments;
  std::vector<off_cpu_time> off_cpu;  ///< by index in run_files::files
  heap_data heap;
  /// Likewise: when a thread was in calls that are only aggregated, and in no other scope inside
  /// them.
  std::vector<off_cpu_time> aggregated;

  /// Returns when the thread was off the CPU; nullptr if unknown.
  /// @param whole_batch  accept data that is valid only for whole waits, batches and steps, from
  ///                     programs that read CPU clocks only at the ends of waits and batches.
  const off_cpu_time* off_cpu_of(optional_file file, bool whole_batch = false) const noexcept {
    if (!file || file->value() >= off_cpu.size()) return nullptr;
    const off_cpu_time& of = off_cpu[file->value()];
    return (whole_batch ? of.known_of_batches() : of.known()) ? &of : nullptr;
  }
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SIDE_DATA_HPP
