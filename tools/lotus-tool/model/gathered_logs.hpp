// Combines the data of a run's logs in a fixed order, so that results do not depend on timing,
// while several threads each read another log.
#ifndef LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP
#define LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/operation_names.hpp"
#include "model/packed_operations.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// The data about one operation from one log.
struct log_op {
  kept_durations durations;
  std::int64_t self_ns = 0;
  worker_share share;
};

/// The contents of one log, read by one thread.
struct log_data {
  explicit log_data(bool quiet) : diagnostics(text, quiet) {}

  batch_records records;
  name_table names;
  // Statistics of operations, indexed by the id of the name in `names`. A deque, because a vector
  // that grows has up to twice the memory that it uses.
  std::deque<log_op> ops;
  // The durations of each operation in blocks, indexed like `ops`; empty if run_parts::blocks is
  // false.
  std::vector<value_blocks> blocks;
  std::vector<cpu_split> cpu;  // like `ops`: how the operations' time was spent; empty if unknown
  packed_operations packed;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  std::ostringstream text;
  diagnostic_log diagnostics;
  std::exception_ptr failure;
};

/// Combines the logs of a run into one run_data. The threads that read logs pass each log to take()
/// as soon as they have read it, so that the data of only a few logs is in memory at a time.
class gathered_logs {
 public:
  /// @param side  the side data of the run.
  /// @param to  receives the combined data. Both must outlive this object.
  gathered_logs(const side_data& side, run_data& to, diagnostic_log& diagnostics)
      : side_(side), to_(to), diagnostics_(diagnostics) {}

  /// Adds one log. Logs are combined in the order of their indices. Waits while a log is missing
  /// whose index is lower by `max_ahead` or more, so that few logs are in memory at a time.
  /// Thread-safe.
  /// @param index  the index of the log; each index is added once.
  void take(std::size_t index, std::unique_ptr<log_data> log);

  /// Returns the batch records of all logs. Call this after all logs were added. If a log could not
  /// be read, rethrows the error of the first such log.
  batch_records finish();

 private:
  static constexpr std::size_t max_ahead = 64;

  void put(std::size_t index, log_data& log);
  void add_op(std::size_t index, std::uint32_t name, std::uint32_t name_in_log, log_data& log);

  const side_data& side_;
  run_data& to_;
  diagnostic_log& diagnostics_;
  std::mutex mutex_;
  std::condition_variable moved_;
  // Logs that were read but cannot be added yet, because a log with a lower index is still being
  // read. The key is the index of the log.
  std::map<std::size_t, std::unique_ptr<log_data>> waiting_;
  std::size_t next_ = 0;
  batch_records records_;
  // Indexed by the id of an operation's name: whether CPU times are unknown for at least one thread
  // that ran the operation.
  std::vector<bool> cpu_missing_;
  std::exception_ptr failure_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP
