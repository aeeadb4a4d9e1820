// Classifies the operations of a run: inside batches, inside the consumer's steps, or neither.
#ifndef LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP
#define LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct work_of_op {
  std::string name;  ///< with the leading S
  double ns = 0;
};

/// Two spans of one thread that overlap without one containing the other.
struct partial_overlap {
  std::string first;  ///< name of the span that began first; "a batch" if a batch was built in it
  std::string second;
  std::int64_t at_ns = 0;  ///< when the second began
  std::size_t file = 0;    ///< index of the log
};

struct recorded_work {
  double all_ns = 0;      ///< self time of all operations outside the consumer's steps
  double outside_ns = 0;  ///< the part of `all_ns` outside batches, without copies of batches
  std::vector<work_of_op> outside;  ///< largest first
  /// The number of intervals between batches in which a thread ran the same operations as for a
  /// batch.
  std::size_t copies = 0;
  double copies_ns = 0;
  std::vector<std::string> copied;  ///< names of their operations
  std::size_t overlaps = 0;
  std::size_t overlaps_in_batches = 0;
  partial_overlap overlap;  ///< an example, inside a batch if possible
  /// By index of the log: the end of the last operation outside batches. INT64_MIN: none.
  std::vector<std::int64_t> last_outside_ns;
};

/// @param run  read with run_parts::operations.
recorded_work look_at_work(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP
