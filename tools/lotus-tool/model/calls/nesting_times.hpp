// Computes self times of nested operations.
#ifndef LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
#define LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP

#include <cstdint>
#include <map>
#include <vector>

namespace lotus::tool {

/// Computes the self times of nested operations from a log, in which parents come after their
/// children. Time: amortized O(log n) per operation, for any order of the log.
class nesting_times {
 public:
  /// Adds the next operation of the log and returns its self time: its duration without the
  /// operations inside it. The log has these before it, so they have already been added.
  std::int64_t self_ns(std::int64_t start_ns, std::int64_t duration_ns) {
    return self_ns(start_ns, duration_ns, duration_ns);
  }
  /// Like the function above, for a log in which some operations are aggregated: counted instead of
  /// recorded.
  /// @param worked_ns  the operation's duration minus the time of aggregated operations inside it,
  ///   which are counted instead of recorded.
  std::int64_t self_ns(std::int64_t start_ns, std::int64_t duration_ns, std::int64_t worked_ns);

 private:
  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
    std::int64_t worked_ns;
    std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  };
  std::int64_t self_in_tree_ns(const span& next);

  // Operations whose parent has not been added yet, sorted by start.
  std::vector<span> ended_;
  // This tree replaces `ended_` as soon as an operation must be inserted far before the end of
  // `ended_`, which would be slow. Logs whose operations are all recorded by scopes never need it.
  std::multimap<std::int64_t, span> tree_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
