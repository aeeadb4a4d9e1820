// The data of a run, which all commands work on.
#ifndef LOTUS_TOOL_MODEL_RUN_DATA_HPP
#define LOTUS_TOOL_MODEL_RUN_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "base/diagnostics.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/calls/nesting_order.hpp"
#include "model/packed_operations.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"
#include "model/times/kept_durations.hpp"
#include "model/times/value_blocks.hpp"

namespace lotus::tool {

/// Which data about operations to keep, in addition to their number. Batch records are always kept.
struct run_parts {
  bool totals = false;      ///< run_data::ops: self times, and the time of each worker
  bool durations = false;   ///< totals, operations, and op_samples::durations
  bool operations = false;  ///< run_data::for_each_operation()
  /// Treat calls with different arguments as different operations, "SResize([224, 224])".
  bool by_arguments = false;
  bool blocks = false;  ///< totals and op_samples::blocks
};

/// The time that one worker spent on one operation.
struct worker_share {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
};

struct op_samples {
  std::string name;                   ///< with the leading S, decoded
  kept_durations durations;           ///< in the order of the logs
  distribution time;                  ///< of the durations, if they are not all in memory
  value_blocks blocks;                ///< likewise
  std::int64_t self_ns = 0;           ///< without operations inside it
  std::optional<cpu_split> cpu;       ///< of all calls; missing if it is unknown for one thread
  std::optional<heap_use> heap;       ///< of all calls; missing if allocations were not counted
  std::vector<worker_share> by_file;  ///< by index of the log; may be shorter than the list of logs
};

struct run_data {
  run_data() = default;
  run_data(const run_data&) = delete;  // large
  run_data& operator=(const run_data&) = delete;
  run_data(run_data&&) = default;
  run_data& operator=(run_data&&) = default;
  ~run_data() = default;

  const run_files* files = nullptr;  ///< the logs that were read; must outlive this
  name_table names;                  ///< of operations, in order of first appearance
  std::vector<op_samples> ops;       ///< by number of the name; only names that occur in logs
  run_batches batches{{}};
  side_data side;                         ///< contents of the side logs
  std::vector<aggregated_op> aggregated;  ///< calls that were counted but not recorded; for the
                                          ///< whole run, even if a part of it is read
  record_counts records;                  ///< as reported by the processes
  std::uint64_t damaged_lines = 0;        ///< lines that were skipped
  std::optional<usable_cpus> cpus;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start
  std::int64_t last_ns = INT64_MIN;   ///< the latest end

  const log_file& log(file_id id) const noexcept { return files->files[id.value()]; }

  /// Whether there is nothing that has a time.
  bool empty() const noexcept {
    return operations == 0 && batches.all().empty() && side.counters.empty();
  }

  /// Calls `on_operation(const operation&)` for the operations of one log, in its order; never if
  /// they were not kept. @param file  index of the log in files->files.
  template <class OnOperation>
  void for_each_operation(std::size_t file, OnOperation&& on_operation) const {
    const log_operations& log = logs[file];
    log.packed.for_each([&](operation op) {
      op.name = log.names[op.name];
      on_operation(op);
    });
  }

  bool has_operations(std::size_t file) const noexcept { return !logs[file].packed.empty(); }

  /// Logs are read in parallel, so each has its own numbers for names.
  struct log_operations {
    packed_operations packed;
    std::vector<std::uint32_t> names;  ///< the run's number of a name, by the log's number
  };
  std::vector<log_operations> logs;  ///< by index of the log
};

/// Returns how much the processes of a run recorded; warns if records were dropped.
record_counts tell_dropped(const run_files& run, diagnostic_log& diagnostics);

/// Reads all logs of a run, each once and several at a time. Diagnostics are in the order of the
/// logs, followed by those about dropped records. Throws input_error.
run_data read_run(const run_files& run, const run_parts& asked, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_DATA_HPP
