// Describes the lock for which the operations of a run waited most, as samples of waiting threads
// show it.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP

#include <string>
#include <vector>

namespace lotus::tool {

/// An operation that waited for a lock, or held it.
struct lock_user {
  std::string operation;  ///< without S
  double waits = 0;       ///< share (0..1) of the waits for the lock that were in this operation
  double holds = 0;       ///< share (0..1) of these waits during which this operation held the lock
};

/// A lock and the operation that waited for it: the pair that occurs in the most samples.
struct sampled_lock {
  std::string name;       ///< a text such as "the lock codec_mutex", or "a lock"
  std::string operation;  ///< the operation that waits for it, without S
  /// Share (0..1) of the blocked time of preprocessing during which this operation waited for the
  /// lock; or of the operation's own blocked time if nothing was recorded as preprocessing.
  double share = 0;
  bool of_preprocessing = false;  ///< whether `share` refers to preprocessing
  /// Standard deviation of `share`, divided by it. It follows from the number of samples.
  double relative_sd = 0;
  /// The innermost operations that waited for the lock or held it, the one that held it most often
  /// first. Empty if no sample shows an operation that held it.
  std::vector<lock_user> users;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_SAMPLED_LOCK_HPP
