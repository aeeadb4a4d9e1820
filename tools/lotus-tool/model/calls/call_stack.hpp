// The operations of a thread that are open, and who called whom.
#ifndef LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP
#define LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "model/calls/nesting_order.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// An operation was called by the innermost one of its thread that contains it; one that reaches
/// out of another was not called by it.
class call_stack {
 public:
  struct call {
    operation what;
    optional_index<std::uint32_t> caller;  ///< number of its name
    std::size_t depth = 0;                 ///< 0: nobody called it
    std::int64_t self_ns = 0;              ///< without what it called, also what was only counted;
                                           ///< complete when it ends
    std::optional<std::size_t> parent;     ///< place in the stack
  };

  /// Takes the next operation in the order of nesting_order. `on_end(const call&)` gets each call
  /// when it has ended; who called it is in the stack then.
  /// @param worked_ns  of the duration, without what else lies within it and stands in no log.
  template <class OnEnd>
  void begin(const operation& op, std::int64_t worked_ns, OnEnd&& on_end) {
    while (!open_.empty() && open_.back().what.end_ns() <= op.start_ns) end_last(on_end);
    call next{op, std::nullopt, 0, worked_ns, std::nullopt};
    for (std::size_t i = open_.size(); i-- > 0 && !next.parent;) {
      if (open_[i].what.end_ns() >= op.end_ns()) next.parent = i;
    }
    if (next.parent) {
      call& parent = open_[*next.parent];
      parent.self_ns -= worked_ns;
      next.caller = parent.what.name;
      next.depth = parent.depth + 1;
    }
    open_.push_back(next);
  }

  template <class OnEnd>
  void finish(OnEnd&& on_end) {
    while (!open_.empty()) end_last(on_end);
  }

  /// Whether one of that name, and with `caller` called by that one, called `of`.
  bool is_within(const call& of, std::uint32_t name, optional_index<std::uint32_t> caller) const {
    for (auto at = of.parent; at; at = open_[*at].parent) {
      const call& c = open_[*at];
      if (c.what.name == name && (!caller || c.caller == caller)) return true;
    }
    return false;
  }

 private:
  template <class OnEnd>
  void end_last(OnEnd& on_end) {
    const call last = open_.back();
    open_.pop_back();
    on_end(last);
  }

  std::vector<call> open_;
};

/// All calls of one log, each when it ends, to `on_end(const call_stack::call&, const
/// call_stack&)`. @param run  read with run_parts::operations.
template <class OnEnd>
void for_each_call(const run_data& run, std::size_t file, OnEnd&& on_end) {
  call_stack stack;
  nesting_order ordered;
  const auto ended = [&](const call_stack::call& call) { on_end(call, stack); };
  const off_cpu_time* const aggregated =
      file < run.side.aggregated.size() ? &run.side.aggregated[file] : nullptr;
  const auto begin = [&](const operation& op) {
    const bool whole = aggregated == nullptr || aggregated->stretches().empty();
    stack.begin(op, whole ? op.duration_ns : aggregated->split(op.start_ns, op.end_ns()).cpu_ns,
                ended);
  };
  run.for_each_operation(file, [&](const operation& op) { ordered.push(op, begin); });
  ordered.finish(begin);
  stack.finish(ended);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_CALLS_CALL_STACK_HPP
