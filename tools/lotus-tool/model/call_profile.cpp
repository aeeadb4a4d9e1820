#include "model/call_profile.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/nesting_order.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// The operations of one thread, as they began.
class caller_stack {
 public:
  explicit caller_stack(std::vector<called_operation>& ops) : ops_(ops) {}

  void begin(const operation& op) {
    while (!open_.empty() && open_.back().what.end_ns() <= op.start_ns) open_.pop_back();
    std::optional<std::size_t> parent;
    for (std::size_t i = open_.size(); i-- > 0 && !parent;) {
      if (open_[i].what.end_ns() >= op.end_ns()) parent = i;
    }
    const std::uint32_t caller = parent ? open_[*parent].what.name : called_by_none;
    called_operation& called = ops_[op.name];
    const bool within = is_within(parent, op.name, std::nullopt);
    count(called.all, op, within);
    count(called.by_caller[caller], op, within && is_within(parent, op.name, caller));
    if (parent) {
      const frame& by = open_[*parent];
      ops_[by.what.name].all.self_ns -= op.duration_ns;
      ops_[by.what.name].by_caller[by.caller].self_ns -= op.duration_ns;
    }
    open_.push_back({op, caller, parent});
  }

 private:
  struct frame {
    operation what;
    std::uint32_t caller;
    std::optional<std::size_t> parent;  // place in open_
  };

  /// Whether there is one of that name, called by that one, among who called.
  bool is_within(std::optional<std::size_t> at, std::uint32_t name,
                 std::optional<std::uint32_t> caller) const {
    for (; at; at = open_[*at].parent) {
      const frame& f = open_[*at];
      if (f.what.name == name && (!caller || f.caller == *caller)) return true;
    }
    return false;
  }

  static void count(call_times& times, const operation& op, bool within) {
    ++times.calls;
    times.self_ns += op.duration_ns;
    if (within) return;
    ++times.primitive;
    times.total_ns += op.duration_ns;
  }

  std::vector<called_operation>& ops_;
  std::vector<frame> open_;
};

}  // namespace

std::vector<called_operation> profile_calls(const run_data& run) {
  std::vector<called_operation> ops(run.names.size());
  for (std::size_t file = 0; file < run.logs.size(); ++file) {
    caller_stack stack(ops);
    nesting_order ordered;
    const auto begin = [&stack](const operation& op) { stack.begin(op); };
    run.for_each_operation(file, [&](const operation& op) { ordered.push(op, begin); });
    ordered.finish(begin);
  }
  return ops;
}

}  // namespace lotus::tool
