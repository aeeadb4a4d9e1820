#include "model/pipeline/side_figures.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "describe/description.hpp"
#include "log/shown_name.hpp"

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

std::vector<counter_figures> counters_of(const run_data& run) {
  struct sums {
    double value_ns = 0;
    double ns = 0;
    double values = 0;
  };
  std::vector<counter_figures> all;
  std::vector<sums> sum;
  std::map<std::uint32_t, std::size_t> index_of;  // index of a counter in the results, by name
  std::map<std::pair<std::uint32_t, std::uint64_t>, const counter_value*> before;
  for (const counter_value& c : run.side.counters) {
    const auto [at, is_new] = index_of.try_emplace(c.name, all.size());
    if (is_new) {
      const std::string_view name = run.names.name(c.name);
      all.push_back({shown_name(name), name == heap_counter, 0, c.value, c.value, 0, 0});
      sum.emplace_back();
    }
    counter_figures& f = all[at->second];
    ++f.count;
    f.min = std::min(f.min, c.value);
    f.max = std::max(f.max, c.value);
    f.last = c.value;
    sums& s = sum[at->second];
    s.values += static_cast<double>(c.value);
    const counter_value*& last = before[{c.name, c.process}];
    if (last != nullptr) {
      const auto ns = static_cast<double>(c.time_ns - last->time_ns);
      s.value_ns += static_cast<double>(last->value) * ns;
      s.ns += ns;
    }
    last = &c;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].mean = sum[i].ns > 0 ? sum[i].value_ns / sum[i].ns
                                : sum[i].values / static_cast<double>(all[i].count);
  }
  return all;
}

const description<counter_figures>& description_of(const counter_figures*) {
  static const description<counter_figures> all(
      "counter", "a number that the program reports over time",
      {
          {"count", &counter_figures::count, "how often the program set the counter",
           column{"updates"}},
          {"min", &counter_figures::min, "the smallest value", column{"min"}},
          {"mean", &counter_figures::mean, "mean, weighted by how long the counter had each value",
           column{"mean over time"}},
          {"max", &counter_figures::max, "the largest value", column{"max"}},
          {"last", &counter_figures::last, "value at the end of the run", column{"last"}},
      });
  return all;
}

}  // namespace lotus::tool
