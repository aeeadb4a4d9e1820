#include "model/pipeline/async_operations.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace lotus::tool {

std::vector<async_operation> async_operations_of(const side_data& side) {
  std::vector<async_operation> all;
  // For each asynchronous operation, identified by its process and its id: its index in the list
  // `all`.
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> index_of;
  for (std::uint32_t n = 0; n < side.segments.size(); ++n) {
    const async_segment& p = side.segments[n];
    const auto [at, is_new] = index_of.try_emplace({p.process, p.id}, all.size());
    if (is_new) all.push_back({p.name, p.id, p.process, {p.start_ns, p.end_ns()}, 0, {}});
    async_operation& op = all[at->second];
    op.extent.end_ns = std::max(op.extent.end_ns, p.end_ns());
    op.running_ns += p.duration_ns;
    op.segments.push_back(n);
  }
  return all;
}

}  // namespace lotus::tool
