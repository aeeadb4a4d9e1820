// Self times of nested operations.
#ifndef LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
#define LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP

#include <cstdint>
#include <map>
#include <vector>

namespace lotus::tool {

/// Self times of nested operations, from a log in which a parent stands behind its children. Time:
/// amortized O(log n) an operation, whatever the order of the log.
class nesting_times {
 public:
  /// Takes the next operation of the log; returns how much of it was spent in it itself: without
  /// what stands before it and lies within it.
  std::int64_t self_ns(std::int64_t start_ns, std::int64_t duration_ns) {
    return self_ns(start_ns, duration_ns, duration_ns);
  }
  /// @param worked_ns  of the duration, without what else lies within it and stands in no log.
  std::int64_t self_ns(std::int64_t start_ns, std::int64_t duration_ns, std::int64_t worked_ns);

 private:
  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
    std::int64_t worked_ns;
    std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  };
  std::int64_t self_in_tree_ns(const span& next);

  // Those that no parent was seen of yet, in order of start.
  std::vector<span> ended_;
  // Instead, once one belonged far before the end, as in no log of a program's scopes.
  std::multimap<std::int64_t, span> tree_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
