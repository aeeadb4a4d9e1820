#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "model/path/critical_path.hpp"
#include "model/pipeline/stages.hpp"

namespace lotus::tool {

std::string missing_stage(const run_data& run, const critical_path& path) {
  constexpr double nearly_always = 0.9;
  constexpr double nearly_nothing = 0.05;
  constexpr double nearly_as_busy = 0.97;
  const auto run_ns = static_cast<double>(path.run_ns);
  // Operations in a stage have shares of their own.
  double in_operations_ns = 0;
  std::map<std::string_view, double> in_stage_ns;
  for (const path_share& share : path.shares) {
    const auto ns = static_cast<double>(share.ns);
    if (share.kind == path_kind::operation) in_operations_ns += ns;
    if (share.kind == path_kind::stage) in_stage_ns[share.name] += ns;
  }
  if (in_operations_ns >= nearly_nothing * run_ns) return {};
  std::string busiest;
  double missing_ns = 0;
  double on_path_ns = 0;
  for (const stage_figures& of : measure_stages(run)) {
    if (of.stage == preprocess_stage || of.slots == 0) continue;
    const auto in_it = in_stage_ns.find(of.name);
    const double in_path_ns = in_operations_ns + (in_it == in_stage_ns.end() ? 0 : in_it->second);
    const double busy_ns = static_cast<double>(of.self_ns) / static_cast<double>(of.slots);
    if (in_path_ns >= nearly_nothing * run_ns) {
      on_path_ns = std::max(on_path_ns, busy_ns);
    } else if (busy_ns > missing_ns) {
      missing_ns = busy_ns;
      busiest = of.name;
    }
  }
  const bool is_missing =
      missing_ns >= nearly_always * run_ns && nearly_as_busy * missing_ns > on_path_ns;
  return is_missing ? busiest : std::string();
}

}  // namespace lotus::tool
