#include "model/calls/operation_totals.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregates/data/aggregated.hpp"
#include "model/calls/call_stack.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

std::vector<operation_total> operation_totals(const run_data& run) {
  std::vector<operation_total> all(run.names.size());
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    if (!run.has_operations(file)) continue;
    for_each_call(run, file, [&](const call_stack::call& call, const call_stack&) {
      operation_total& of = all[call.what.name];
      ++of.calls;
      of.self_ns += call.self_ns;
      of.max_ns = std::max(of.max_ns, call.what.duration_ns);
    });
  }
  for (std::uint32_t name = 0; name < all.size(); ++name) all[name].name = run.names.name(name);
  for (const aggregated_op& op : run.aggregated) {
    const std::int64_t max_ns = describe(op).max_ns;
    all.push_back({op.name, op.count, op.self_ns, max_ns});
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const operation_total& of) { return of.calls == 0; }),
            all.end());
  std::stable_sort(all.begin(), all.end(), [](const operation_total& a, const operation_total& b) {
    return a.self_ns > b.self_ns;
  });
  return all;
}

}  // namespace lotus::tool
