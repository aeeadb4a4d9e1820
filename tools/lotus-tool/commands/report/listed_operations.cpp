#include "commands/report/listed_operations.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/terminal/table.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

std::int64_t total_ns(const op_samples& op) {
  std::int64_t sum_ns = 0;
  for (std::size_t f = 0; f < op.by_file.size(); ++f) sum_ns += op.by_file[f].total_ns;
  return sum_ns;
}

}  // namespace

listed_operations::listed_operations(const run_data& run, std::size_t most) : run_(run) {
  if (run.ops.size() <= most) return;
  std::vector<std::int64_t> totals_ns;
  totals_ns.reserve(run.ops.size());
  for (const op_samples& op : run.ops) totals_ns.push_back(total_ns(op));
  std::vector<std::uint32_t> order(run.ops.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(order.begin(), end, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return totals_ns[a] != totals_ns[b] ? totals_ns[a] > totals_ns[b] : a < b;
  });
  is_listed_.resize(run.names.size());
  std::for_each(order.begin(), end, [&](std::uint32_t name) { is_listed_[name] = true; });
  const double others_ns = std::accumulate(
      end, order.end(), 0.0,
      [&](double sum, std::uint32_t name) { return sum + static_cast<double>(totals_ns[name]); });
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
