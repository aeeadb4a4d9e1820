// Combines the logs of a run, each read by a thread, in their order.
#ifndef LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP
#define LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP

#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
#include "model/times/value_blocks.hpp"

namespace lotus::tool {

/// The data about one operation from one log.
struct log_op {
  kept_durations durations;
  value_blocks blocks;
  std::int64_t self_ns = 0;
  cpu_split cpu{0, 0, 0};
  worker_share share;
};

/// One log, read by one thread.
struct log_data {
  log_data(bool quiet, std::shared_ptr<operation_store> store)
      : packed(std::move(store)), diagnostics(text, quiet) {}

  batch_records records;
  name_table names;
  std::vector<log_op> ops;  // by number of the name
  packed_operations packed;
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  std::ostringstream text;
  diagnostic_log diagnostics;
  std::exception_ptr failure;
};

/// Receives logs as they are read, so that only a few complete ones are in memory at a time.
class gathered_logs {
 public:
  /// @param side  of the run; it and `to` must outlive this.
  gathered_logs(const side_data& side, run_data& to, diagnostic_log& diagnostics)
      : side_(side), to_(to), diagnostics_(diagnostics) {}

  /// Adds a log. Blocks while logs far before it are still being read. Thread-safe.
  /// @param place  index of the log; each is added once.
  void take(std::size_t place, std::unique_ptr<log_data> log);

  /// Call after adding all logs. Returns the batch records; rethrows the error of the first log
  /// that could not be read.
  batch_records finish();

 private:
  static constexpr std::size_t most_ahead = 64;

  void put(std::size_t place, log_data& log);
  void add_op(std::size_t place, std::uint32_t name, log_op& op);

  const side_data& side_;
  run_data& to_;
  diagnostic_log& diagnostics_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::size_t, std::unique_ptr<log_data>> waiting_;  // by index of the log
  std::size_t next_ = 0;
  batch_records records_;
  struct known_cpu {
    cpu_split sum{0, 0, 0};
    bool known = false;
    bool missing = false;
  };
  std::vector<known_cpu> cpu_;  // by number of the name
  std::exception_ptr failure_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_GATHERED_LOGS_HPP
