// Describes the lock for which the operations of a run waited most, as samples of waiting threads
// show it.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP

#include <string>

namespace lotus::tool {

/// A lock and the operation that waited for it: the pair that occurs in the most samples.
struct sampled_lock {
  std::string name;       ///< name of the lock's variable; "" if unknown
  std::string operation;  ///< the innermost operation that waits for it, without S
  /// Share (0..1) of the blocked time of preprocessing during which this operation waited for the
  /// lock; or of the operation's own blocked time if nothing was recorded as preprocessing.
  double share = 0;
  bool of_preprocessing = false;  ///< whether `share` refers to preprocessing
  /// Standard deviation of `share`, divided by it. It follows from the number of samples.
  double relative_sd = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP
