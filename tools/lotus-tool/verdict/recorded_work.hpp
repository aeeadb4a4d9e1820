// Where the operations of a run lie: in batches, in the consumer's steps, or nowhere.
#ifndef LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP
#define LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

struct work_of_op {
  std::string name;  ///< with its S
  double ns = 0;
};

/// Two spans of one thread of which neither holds the other.
struct partial_overlap {
  std::string first;  ///< name of the one that began first; "a batch" for a batch's making
  std::string second;
  std::int64_t at_ns = 0;  ///< where the second began
  std::size_t file = 0;    ///< place of the log
};

struct recorded_work {
  double all_ns = 0;                ///< self time of all operations but the consumer's
  double outside_ns = 0;            ///< of it in no batch, copies of batches left out
  std::vector<work_of_op> outside;  ///< the most first
  /// Stretches of a thread between batches in which it did what a batch takes.
  std::size_t copies = 0;
  double copies_ns = 0;
  std::vector<std::string> copied;  ///< their operations
  std::size_t overlaps = 0;
  std::size_t overlaps_in_batches = 0;
  partial_overlap overlap;  ///< one of them, in a batch if there is such
  /// By place of the log: the end of the last operation in no batch. INT64_MIN: none.
  std::vector<std::int64_t> last_outside_ns;
};

/// @param run  read with run_parts::operations.
recorded_work look_at_work(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_RECORDED_WORK_HPP
