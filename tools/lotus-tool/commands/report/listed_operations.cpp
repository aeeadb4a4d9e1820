#include "commands/report/listed_operations.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/largest.hpp"
#include "base/terminal/table.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

listed_operations::listed_operations(const run_data& run, std::size_t most) : run_(run) {
  if (run.ops.size() <= most) return;
  std::vector<std::int64_t> totals_ns;
  totals_ns.reserve(run.ops.size());
  for (const op_samples& op : run.ops) totals_ns.push_back(op.by_file.total_ns());
  is_listed_.resize(run.names.size());
  for (const std::uint32_t name : indices_of_largest(totals_ns, most)) is_listed_[name] = true;
  double others_ns = 0;
  for (std::uint32_t name = 0; name < totals_ns.size(); ++name) {
    if (!is_listed_[name]) others_ns += static_cast<double>(totals_ns[name]);
  }
  note_ = "Of " + std::to_string(run.ops.size()) + " operations, the " + std::to_string(most) +
          " with the most time are listed; the others took " + human_time(others_ns) +
          " together. lotus-tool stats lists all.";
}

std::vector<std::uint32_t> listed_operations::numbers_in(name_table& names) const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(run_.ops.size());
  for (std::uint32_t n = 0; n < run_.ops.size(); ++n) {
    numbers.push_back(names.id_of_decoded(has(n) ? run_.names.name(n) : "S(other operations)"));
  }
  return numbers;
}

}  // namespace lotus::tool
