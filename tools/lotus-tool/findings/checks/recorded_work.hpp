// Classifies the operations of a run: inside batches, inside the consumer's steps, or neither.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_RECORDED_WORK_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_RECORDED_WORK_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Two spans of one thread that overlap although neither contains the other.
struct partial_overlap {
  /// Name of the span that began first; "a batch" for the span of a batch.
  std::string first;
  std::string second;
  std::int64_t at_ns = 0;  ///< time when the second span began
  std::size_t file = 0;    ///< index of the thread's log
};

struct recorded_work {
  double all_ns = 0;  ///< self time of all operations outside the consumer's steps
  /// Self time of the operations that ran neither in a batch nor in a step of the consumer. It is a
  /// part of `all_ns`, and does not include `copies_ns`.
  double outside_ns = 0;
  double in_waits_ns = 0;  ///< the part of `outside_ns` and `copies_ns` in the consumer's waits
  /// Names of the operations with the most time outside batches, without the leading S; the one
  /// with the most time first. At most `named`, because a run may have a million names.
  std::vector<std::string> outside;
  std::size_t operations_outside = 0;
  std::size_t calls_outside = 0;  ///< how often they were called there
  static constexpr std::size_t named = 3;
  /// Number of intervals between batches in which a thread ran about the same operations as for a
  /// batch, so that it probably built a batch that was not recorded.
  std::size_t copies = 0;
  double copies_ns = 0;
  /// Names of the operations that ran in the intervals that `copies` counts.
  std::vector<std::string> copied;
  std::size_t overlaps = 0;
  std::size_t overlaps_in_batches = 0;
  partial_overlap overlap;  ///< an example of a partial overlap, inside a batch if possible
  /// For each log: end of the last operation outside batches; INT64_MIN if there is none.
  std::vector<std::int64_t> last_outside_ns;
};

/// Classifies the operations of a run, which must have been read with run_parts::operations.
recorded_work look_at_work(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_RECORDED_WORK_HPP
