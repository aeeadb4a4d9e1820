// Tracks which operations of a thread have begun but not ended, and which operation called which.
#ifndef LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP
#define LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// The open operations of one thread, which have begun but not ended. The caller of an operation is
/// the innermost operation of its thread that contains it completely; an operation that contains
/// only a part of it is not its caller.
class call_stack {
 public:
  struct call {
    operation what;
    optional_index<std::uint32_t> caller;  ///< id of the caller's name; nullopt: no caller
    std::size_t depth = 0;  ///< number of direct and indirect callers; 0 if there are none
    /// Self time: the duration without the calls inside it, whether these are recorded or
    /// aggregated (only counted). It is final when the call ends.
    std::int64_t self_ns = 0;
    std::optional<std::size_t> parent;  ///< index of the caller in the stack
    /// Index in the stack of a caller several levels up, which lets searches skip levels; see
    /// jump_behind(). For a call without a caller, this is its own index.
    std::size_t jump = 0;
  };

  /// Adds the next operation; operations must be added in the order that the class nesting_order
  /// produces. Calls `on_end(const call&)` for each call that has ended; the callers of that call
  /// are still in the stack then. Time: amortized O(1) per operation, even if operations overlap
  /// arbitrarily.
  /// @param worked_ns  the operation's duration minus the time of aggregated operations inside it,
  ///   which are counted instead of recorded.
  template <class OnEnd>
  void begin(const operation& op, std::int64_t worked_ns, OnEnd&& on_end) {
    while (!open_.empty() && open_.back().what.end_ns() <= op.start_ns) end_last(on_end);
    call next{op, std::nullopt, 0, worked_ns, std::nullopt, open_.size()};
    // An operation that ends before the new operation `op` cannot be the caller of `op`, nor of any
    // operation that begins later.
    while (!longest_.empty() && open_[longest_.back()].what.end_ns() < op.end_ns()) {
      longest_.pop_back();
    }
    if (!longest_.empty()) {
      next.parent = longest_.back();
      call& parent = open_[*next.parent];
      parent.self_ns -= worked_ns;
      next.caller = parent.what.name;
      next.depth = parent.depth + 1;
      next.jump = jump_behind(*next.parent);
      if (parent.what.end_ns() == op.end_ns()) longest_.pop_back();
    }
    longest_.push_back(open_.size());
    if (op.name >= open_of_name_.size()) open_of_name_.resize(op.name + std::size_t{1});
    open_of_name_[op.name].push_back(open_.size());
    open_.push_back(next);
  }

  template <class OnEnd>
  void finish(OnEnd&& on_end) {
    while (!open_.empty()) end_last(on_end);
  }

  /// Returns whether an operation with the given name called `of` directly or indirectly. If
  /// `caller` is given, only operations that `caller` called directly count.
  /// @param name  the id of a name; at least one operation with this name must have begun.
  bool is_within(const call& of, std::uint32_t name, optional_index<std::uint32_t> caller) const {
    const std::vector<std::size_t>& named = open_of_name_[name];
    auto end = named.end();
    // Find an operation that is in both of two lists: the direct and indirect callers of `of`, and
    // the open operations with this name (`named`). Both lists are in the order of the stack.
    for (auto at = of.parent; at;) {
      end = std::upper_bound(named.begin(), end, *at);
      if (end == named.begin()) return false;
      const std::size_t next = *(end - 1);
      at = caller_from(*at, next);
      if (at != next) continue;
      if (!caller || open_[next].caller == caller) return true;
      at = open_[next].parent;
    }
    return false;
  }

 private:
  static constexpr std::size_t many_names = 10'000;

  template <class OnEnd>
  void end_last(OnEnd& on_end) {
    const call last = open_.back();
    open_.pop_back();
    if (!longest_.empty() && longest_.back() == open_.size()) longest_.pop_back();
    std::vector<std::size_t>& named = open_of_name_[last.what.name];
    named.pop_back();
    // With few names, the memory is kept for the next call, which is faster.
    if (named.empty() && open_of_name_.size() > many_names) named = std::vector<std::size_t>();
    on_end(last);
  }

  /// Returns the value of call::jump for a call whose direct caller is at index `parent`. With
  /// these jumps, any caller is reached in O(log depth) steps (Myers, An applicative random-access
  /// stack, 1983).
  std::size_t jump_behind(std::size_t parent) const {
    const std::size_t first = open_[parent].jump;
    const std::size_t second = open_[first].jump;
    const bool alike =
        open_[parent].depth - open_[first].depth == open_[first].depth - open_[second].depth;
    return alike ? second : parent;
  }

  /// Returns the index of the innermost call among `from` and its callers that is at or before
  /// index `place` in the stack.
  std::optional<std::size_t> caller_from(std::size_t from, std::size_t place) const {
    while (from > place) {
      const call& c = open_[from];
      if (!c.parent) return std::nullopt;
      from = c.jump >= place && c.jump < from ? c.jump : *c.parent;
    }
    return from;
  }

  std::vector<call> open_;
  // Indices in `open_` of those calls that end later than all calls in `open_` that began after
  // them. Only such a call can be the caller of the next call.
  std::vector<std::size_t> longest_;
  // By the id of a name: indices in `open_`. A deque, because there may be a million names, and a
  // vector that grows has up to twice the memory that it uses.
  std::deque<std::vector<std::size_t>> open_of_name_;
};

/// Calls `on_end(const call_stack::call&, const call_stack&)` for each call of one log in the order
/// in which calls end. `run` must be read with run_parts::operations.
template <class OnEnd>
void for_each_call(const run_data& run, std::size_t file, OnEnd&& on_end) {
  call_stack stack;
  nesting_order ordered;
  const auto ended = [&](const call_stack::call& call) { on_end(call, stack); };
  const off_cpu_time* const aggregated =
      file < run.side.aggregated.size() ? &run.side.aggregated[file] : nullptr;
  const auto begin = [&](const operation& op) {
    const bool whole = aggregated == nullptr || aggregated->intervals().empty();
    stack.begin(op, whole ? op.duration_ns : aggregated->split(op.start_ns, op.end_ns()).cpu_ns,
                ended);
  };
  run.for_each_operation(file, [&](const operation& op) { ordered.push(op, begin); });
  ordered.finish(begin);
  stack.finish(ended);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP
