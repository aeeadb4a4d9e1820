// Puts a log's operations into the order in which they began.
#ifndef LOTUS_TOOL_MODEL_CALLS_NESTING_ORDER_HPP
#define LOTUS_TOOL_MODEL_CALLS_NESTING_ORDER_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// An operation, its name as a number of a name_table.
struct operation {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// A log's lines are written at ends, so a parent follows its children; viewers want it before
/// them. This holds the last some ten thousand operations and inserts each where it belongs,
/// so a parent of more than that many children may come late, but memory stays constant.
class nesting_order {
 public:
  static constexpr std::size_t window = 32768;

  nesting_order() { held_.reserve(window); }

  /// Takes the next operation of the log; hands the settled ones to `emit(const operation&)`.
  template <class Emit>
  void push(const operation& next, Emit&& emit) {
    if (held_.size() == window) settle(window / 2, emit);
    std::size_t at = held_.size();
    // Of two that begin together the longer is the parent; of two equal ones the later line.
    while (at > 0 && (held_[at - 1].start_ns > next.start_ns ||
                      (held_[at - 1].start_ns == next.start_ns &&
                       held_[at - 1].duration_ns <= next.duration_ns))) {
      --at;
    }
    held_.insert(held_.begin() + static_cast<std::ptrdiff_t>(at), next);
  }

  /// Hands out everything that is still held.
  template <class Emit>
  void finish(Emit&& emit) {
    settle(held_.size(), emit);
  }

 private:
  template <class Emit>
  void settle(std::size_t n, Emit&& emit) {
    for (std::size_t i = 0; i < n; ++i) emit(held_[i]);
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  std::vector<operation> held_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_NESTING_ORDER_HPP
