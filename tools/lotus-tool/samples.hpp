// All durations of a run, by operation and by worker.
#ifndef LOTUS_TOOL_SAMPLES_HPP
#define LOTUS_TOOL_SAMPLES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "run_model.hpp"

namespace lotus::tool {

/// What one worker spent on one operation.
struct worker_share {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;
};

struct op_samples {
  std::string name;                        ///< with its S, decoded
  std::vector<std::int64_t> durations_ns;  ///< in the order of the logs
  std::int64_t self_ns = 0;                ///< without what ran inside it
  std::vector<worker_share> by_file;       ///< by place of the log; may be shorter than the run
};

struct run_samples {
  std::string dir;
  std::vector<op_samples> ops;              ///< in order of first appearance
  std::vector<std::uint64_t> file_numbers;  ///< by place of the log
  run_batches batches{{}};
  std::int64_t first_ns = 0;  ///< the earliest start
  std::int64_t last_ns = 0;   ///< the latest end

  bool empty() const noexcept { return ops.empty() && batches.all().empty(); }
};

/// Reads a run. Takes 8 bytes for every operation's line. Throws input_error.
run_samples collect_samples(const run_files& run, diagnostics& said);

/// Self times of nested operations, from a log in which a parent stands behind its children.
class nesting_times {
 public:
  /// Takes the next operation of the log; returns how much of it was spent in it itself: without
  /// what stands before it and lies within it.
  std::int64_t self_ns(std::int64_t start_ns, std::int64_t duration_ns);

 private:
  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
    std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  };
  std::vector<span> ended_;  // those that no parent was seen of yet, in order of start
};

/// The four quantities of a batch.
enum class quantity : std::uint8_t { preprocess, wait, delay, step };

/// The values of one quantity, without batches that lack it.
/// @param skip  this many batches at the beginning of every epoch are left out.
std::vector<std::int64_t> values_of(const run_batches& batches, quantity wanted, std::size_t skip);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLES_HPP
