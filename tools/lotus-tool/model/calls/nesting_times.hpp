// Computes self times of nested operations.
#ifndef LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
#define LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP

#include <algorithm>
#include <cstddef>
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

/// An operation of one thread. Its `name` is an id of a name_table.
struct operation {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// Sorts operations so that parents come before their children, which trace viewers require. A log
/// has the opposite order, because a record is written when its operation ends. This class keeps
/// the latest `window` operations in memory and inserts each new one at its position. An operation
/// that contains more than `window` operations may be emitted too late. Time: O(log window) per
/// operation, for any order of the log.
class nesting_order {
 public:
  static constexpr std::size_t window = 32768;

  nesting_order() { held_.reserve(window); }

  /// Adds the next operation of the log. Calls `emit(const operation&)`, in the final order, for
  /// operations before which no other operation is expected any more.
  template <class Emit>
  void push(const operation& next, Emit&& emit) {
    if (held_.size() + far_.size() == window) settle(window / 2, emit);
    ++lines_;
    if (held_.empty() || !comes_before(entry(next, lines_), held_.back())) {
      held_.emplace_back(next, lines_);
      return;
    }
    const entry one(next, lines_);
    // Nearly all operations belong near the end of held_ and are inserted there. Any other
    // operation is first appended to far_; settle() later sorts all operations in far_ into held_
    // together.
    constexpr std::size_t near = 64;
    std::size_t at = held_.size();
    const std::size_t least = at > near ? at - near : 0;
    while (at > least && comes_before(one, held_[at - 1])) --at;
    if (at == least && at > 0 && comes_before(one, held_[at - 1])) {
      far_.push_back(one);
    } else {
      held_.insert(held_.begin() + static_cast<std::ptrdiff_t>(at), one);
    }
  }

  /// Call this after the last operation of the log was added. Calls `emit` for all operations that
  /// were not emitted yet, in the final order.
  template <class Emit>
  void finish(Emit&& emit) {
    settle(held_.size() + far_.size(), emit);
  }

 private:
  /// An operation and the number of its line in the log. The number may overflow, because only
  /// lines that are near each other are compared. Has a constructor, so that emplace_back() creates
  /// the object in its final place. Copying a temporary object would be slower, because the copy
  /// would wait until its numbers are in memory.
  struct entry {
    entry(const operation& op, std::uint32_t of_line)
        : start_ns(op.start_ns), duration_ns(op.duration_ns), name(op.name), line(of_line) {}
    operation op() const noexcept { return {start_ns, duration_ns, name}; }

    std::int64_t start_ns;
    std::int64_t duration_ns;
    std::uint32_t name;
    std::uint32_t line;
  };

  /// Orders operations by start. If two start together, the longer one is the parent and comes
  /// first. If both are equally long, the operation in the later line of the log is the parent.
  static bool comes_before(const entry& a, const entry& b) noexcept {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
    return static_cast<std::int32_t>(a.line - b.line) > 0;
  }

  template <class Emit>
  void settle(std::size_t n, Emit&& emit) {
    if (!far_.empty()) {
      std::sort(far_.begin(), far_.end(), comes_before);
      const auto middle = static_cast<std::ptrdiff_t>(held_.size());
      held_.insert(held_.end(), far_.begin(), far_.end());
      far_.clear();
      std::inplace_merge(held_.begin(), held_.begin() + middle, held_.end(), comes_before);
    }
    for (std::size_t i = 0; i < n; ++i) emit(held_[i].op());
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  std::vector<entry> held_;  // operations not emitted yet, sorted by comes_before()
  std::vector<entry> far_;
  std::uint32_t lines_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_NESTING_TIMES_HPP
