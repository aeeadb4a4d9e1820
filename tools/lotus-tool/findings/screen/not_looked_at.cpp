#include "findings/screen/not_looked_at.hpp"

#include "findings/verdict.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {

double blocked_share(const diagnosis& d) {
  double blocked_ns = 0;
  for (const path_share& share : d.path.shares) {
    if (share.cpu) blocked_ns += static_cast<double>(share.cpu->blocked_ns.value_or(0));
  }
  return d.path.run_ns > 0 ? blocked_ns / static_cast<double>(d.path.run_ns) : 0;
}

bool mostly_blocked(const diagnosis& d) {
  return blocked_share(d) > 0.5;
}

std::vector<std::string> not_looked_at(const diagnosis& d) {
  std::vector<std::string> all;
  if (!d.is) return all;
  const bool fed = d.is == verdict::consumer_bound || d.is == verdict::balanced;
  if (fed && d.accelerators.empty()) all.emplace_back("the accelerator (no trace)");
  if (!fed && mostly_blocked(d) && d.blocked_on.processes.empty()) {
    all.emplace_back("locks, disks and networks (no wait samples)");
  }
  return all;
}

}  // namespace lotus::tool
