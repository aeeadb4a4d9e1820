// Defines the data of a run, which all commands of lotus-tool use, and reads it from the logs.
#ifndef LOTUS_TOOL_MODEL_RUN_DATA_HPP
#define LOTUS_TOOL_MODEL_RUN_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/diagnostics.hpp"
#include "base/statistics/distribution.hpp"
#include "log/cpu_usage.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/packed_operations.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Which data read_run() keeps in memory. Batch records and the number of operations are always
/// kept.
struct run_parts {
  bool totals = false;  ///< keep run_data::ops with self times and the time of each worker
  /// Keep everything that the options `totals` and `operations` keep, and also
  /// op_samples::durations.
  bool durations = false;
  bool operations = false;  ///< make run_data::for_each_operation() available
  /// Treat calls with different arguments as different operations, such as "SResize([224, 224])".
  bool by_arguments = false;
  bool blocks = false;  ///< keep the data of `totals`, and op_details::blocks
  /// If set, run_data::ops contains only operations with these names. Self times and the number of
  /// operations take all others into account.
  const name_table* only = nullptr;
  /// Waits of the consumer in the order of time that another recording shows. They are used if the
  /// logs contain no waits, but receptions of batches.
  const std::vector<time_span>* waits = nullptr;
  /// If only a part of the run is wanted: also read records that lie outside of it, in whole or in
  /// part. Logs of over 16 MiB are still read only around the part.
  bool beyond_part = false;
};

/// The time that one worker spent on one operation.
struct worker_share {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
};

/// How much time each worker spent on one operation, indexed by log. After the last log with this
/// operation, the list ends. Most operations occur in only one log. Therefore the share of the last
/// log is stored in this object itself, and only the shares of other logs need allocated memory.
class worker_shares {
 public:
  std::size_t size() const noexcept { return size_; }
  const worker_share& operator[](std::size_t file) const noexcept {
    if (file + 1 == size_) return last_;
    return before_ != nullptr && file < before_->size() ? (*before_)[file] : no_share;
  }
  /// Returns the time of all workers together.
  std::int64_t total_ns() const noexcept {
    std::int64_t sum_ns = 0;
    for (std::size_t file = 0; file < size_; ++file) sum_ns += (*this)[file].total_ns;
    return sum_ns;
  }
  /// Sets the share of the worker with the log `file`.
  /// @param file  the index of the log, which must be higher than in all earlier calls.
  void set(std::size_t file, const worker_share& share);

 private:
  static constexpr worker_share no_share{};

  worker_share last_;
  std::size_t size_ = 0;
  std::unique_ptr<std::vector<worker_share>> before_;
};

/// Data about an operation that most operations of a run with many names do not have. It is stored
/// separately, so that op_samples stays small.
struct op_details {
  distribution time;    ///< distribution of the durations, if they are not all in memory
  value_blocks blocks;  ///< the durations in blocks, if run_parts::blocks is set
  /// How much of the time of all calls the threads ran, waited for a CPU or were blocked; missing
  /// if this is unknown for one of the threads.
  std::optional<cpu_split> cpu;
  std::optional<heap_use> heap;  ///< heap use of all calls; missing if allocations were not counted
};

/// The calls of one operation. A run may have a million operations, so this struct is small.
struct op_samples {
  /// Decoded name with the S that begins it in logs, stored in run_data::names.
  std::string_view name;
  kept_durations durations;  ///< durations of the calls, in the order of the logs
  std::int64_t self_ns = 0;  ///< total time without the operations inside the calls
  worker_shares by_file;

  const op_details& details() const noexcept;
  op_details& change_details();

 private:
  std::unique_ptr<op_details> details_;  // nullptr means that all details have their initial values
};

struct run_data {
  run_data() = default;
  run_data(const run_data&) = delete;  // deleted because copies would be large
  run_data& operator=(const run_data&) = delete;
  run_data(run_data&&) noexcept = default;
  run_data& operator=(run_data&&) noexcept = default;
  ~run_data() = default;

  const run_files* files = nullptr;  ///< the logs that were read; they must outlive this object
  name_table names;  ///< names of operations, in the order in which they first occur
  /// Data about operations, indexed by the id of the name in `names`. A deque, because there may be
  /// a million, and a vector that grows has up to twice the memory that it uses.
  std::deque<op_samples> ops;
  run_batches batches{{}};
  side_data side;  ///< contents of the side logs
  /// Statistics of aggregated operations, whose calls are counted instead of recorded. They always
  /// cover the whole run, even if only a part of the run is read.
  std::vector<aggregated_op> aggregated;
  record_counts records;  ///< numbers of stored and dropped records, as reported by the processes
  std::uint64_t damaged_lines = 0;  ///< number of damaged log lines, which were skipped
  std::optional<usable_cpus> cpus;
  cpu_usage cpu_time;  ///< of all threads of the run's processes
  system_counts counts;
  /// For each log: on which CPUs its thread may run, if these are not all of its process.
  std::vector<std::optional<thread_cpus>> thread_cpus_of;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start of a record
  std::int64_t last_ns = INT64_MIN;   ///< the latest end of a record

  const log_file& log(file_id id) const noexcept { return files->files[id.value()]; }

  /// Returns whether the run contains no operations, no batches and no counters.
  bool empty() const noexcept {
    return operations == 0 && batches.all().empty() && side.counters.empty();
  }

  /// Calls `on_operation(const operation&)` for the operations of one log, in the order of the log.
  /// Never calls it if the run was read without run_parts::operations. `file` is the index of the
  /// log in the list files->files.
  template <class OnOperation>
  void for_each_operation(std::size_t file, OnOperation&& on_operation) const {
    const log_operations& log = logs[file];
    log.packed.for_each([&](operation op) {
      op.name = log.names[op.name];
      on_operation(op);
    });
  }

  bool has_operations(std::size_t file) const noexcept { return !logs[file].packed.empty(); }

  /// The operations of one log. Each log has its own ids of names, because logs are read in
  /// parallel.
  struct log_operations {
    packed_operations packed;
    /// The id in run_data::names of each name in this log, indexed by the name's id in this log.
    std::vector<std::uint32_t> names;
  };
  std::vector<log_operations> logs;  ///< operations of each log, in the order of `files`
};

/// Reads all logs of a run, several at a time. The diagnostics are in the order of the logs;
/// find_runs() has reported dropped records. Throws input_error if a log cannot be read.
run_data read_run(const run_files& run, const run_parts& asked, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_DATA_HPP
