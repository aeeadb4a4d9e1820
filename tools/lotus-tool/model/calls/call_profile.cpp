#include "model/calls/call_profile.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "aggregates/data/aggregated.hpp"

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

operation_totals sum_operations(const run_data& run) {
  struct sums {
    std::uint64_t calls = 0;
    std::int64_t self_ns = 0;
    std::int64_t max_ns = 0;
  };
  std::vector<sums> by_name(run.names.size());
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    if (!run.has_operations(file)) continue;
    for_each_call(run, file, [&](const call_stack::call& call, const call_stack&) {
      sums& of = by_name[call.what.name];
      ++of.calls;
      of.self_ns += call.self_ns;
      of.max_ns = std::max(of.max_ns, call.what.duration_ns);
    });
  }
  operation_totals all;
  const auto add = [&all](std::string_view name, const sums& of) {
    if (of.calls == 0) return;
    all.calls += of.calls;
    all.self_ns += static_cast<double>(of.self_ns);
    if (++all.operations == 1 || of.self_ns > all.largest.self_ns) {
      all.largest = {std::string(name), of.calls, of.self_ns, of.max_ns};
    }
  };
  for (std::uint32_t name = 0; name < by_name.size(); ++name) {
    add(run.names.name(name), by_name[name]);
  }
  for (const aggregated_op& op : run.aggregated) {
    add(op.name, {op.count, op.self_ns, describe(op).max_ns});
  }
  return all;
}

}  // namespace lotus::tool
