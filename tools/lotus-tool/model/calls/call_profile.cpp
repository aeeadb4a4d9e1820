#include "model/calls/call_profile.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/calls/call_stack.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

void count(call_times& times, const call_stack::call& call, bool within) {
  ++times.calls;
  times.self_ns += call.self_ns;
  if (within) return;
  ++times.primitive;
  times.total_ns += call.what.duration_ns;
}

}  // namespace

std::vector<called_operation> profile_calls(const run_data& run) {
  std::vector<called_operation> ops(run.names.size());
  for (std::size_t file = 0; file < run.logs.size(); ++file) {
    for_each_call(run, file, [&ops](const call_stack::call& call, const call_stack& stack) {
      const std::uint32_t name = call.what.name;
      count(ops[name].all, call, stack.is_within(call, name, std::nullopt));
      count(ops[name].by_caller[call.caller], call, stack.is_within(call, name, call.caller));
    });
  }
  return ops;
}

}  // namespace lotus::tool
