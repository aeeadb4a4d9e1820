// A run, read once: what every command works on.
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

/// What is kept of the operations, besides how many there are. Batch records are always kept.
struct run_parts {
  bool totals = false;      ///< run_data::ops: self times, and what each worker spent
  bool durations = false;   ///< that, the operations, and op_samples::durations
  bool operations = false;  ///< run_data::for_each_operation()
  /// Operations that were given different arguments are different ones, "SResize([224, 224])".
  bool by_arguments = false;
  bool blocks = false;  ///< totals, and op_samples::blocks
};

/// What one worker spent on one operation.
struct worker_share {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
};

struct op_samples {
  std::string name;                   ///< with its S, decoded
  kept_durations durations;           ///< in the order of the logs
  distribution time;                  ///< of the durations, where they are not all in memory
  value_blocks blocks;                ///< likewise
  std::int64_t self_ns = 0;           ///< without what ran inside it
  std::optional<cpu_split> cpu;       ///< of all; missing where one thread's is not known
  std::optional<heap_use> heap;       ///< of all; missing where it was not counted
  std::vector<worker_share> by_file;  ///< by place of the log; may be shorter than the run
};

struct run_data {
  run_data() = default;
  run_data(const run_data&) = delete;  // large
  run_data& operator=(const run_data&) = delete;
  run_data(run_data&&) = default;
  run_data& operator=(run_data&&) = default;
  ~run_data() = default;

  const run_files* files = nullptr;  ///< what was read; must outlive this
  name_table names;                  ///< of operations, in order of first appearance
  std::vector<op_samples> ops;       ///< by number of the name, as many as logs have
  run_batches batches{{}};
  side_data side;                         ///< what lay beside the logs
  std::vector<aggregated_op> aggregated;  ///< counted and not recorded: of no window
  record_counts records;                  ///< as the processes told them
  std::uint64_t damaged_lines = 0;        ///< left out
  std::optional<usable_cpus> cpus;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start
  std::int64_t last_ns = INT64_MIN;   ///< the latest end

  const log_file& log(file_id id) const noexcept { return files->files[id.value()]; }

  /// Nothing that has a time.
  bool empty() const noexcept {
    return operations == 0 && batches.all().empty() && side.counters.empty();
  }

  /// The operations of one log, in its order, to `on_operation(const operation&)`. None when they
  /// were not kept. @param file  place of the log in files->files.
  template <class OnOperation>
  void for_each_operation(std::size_t file, OnOperation&& on_operation) const {
    const log_operations& log = logs[file];
    log.packed.for_each([&](operation op) {
      op.name = log.names[op.name];
      on_operation(op);
    });
  }

  bool has_operations(std::size_t file) const noexcept { return !logs[file].packed.empty(); }

  /// Logs are read side by side, so each has numbers of its own for its names.
  struct log_operations {
    packed_operations packed;
    std::vector<std::uint32_t> names;  ///< the run's number, by the log's
  };
  std::vector<log_operations> logs;  ///< by place of the log
};

/// How much the processes of a run recorded; warns where some of it was dropped.
record_counts tell_dropped(const run_files& run, diagnostic_log& diagnostics);

/// Reads all logs of a run, each once and several at a time. What is to be said comes in the order
/// of the logs, what was dropped behind it. Throws input_error.
run_data read_run(const run_files& run, const run_parts& asked, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_DATA_HPP
