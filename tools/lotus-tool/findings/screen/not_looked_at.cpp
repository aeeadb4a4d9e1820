#include "findings/screen/not_looked_at.hpp"

#include "findings/facts/facts.hpp"
#include "findings/verdict.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {

bool mostly_blocked(const diagnosis& d) {
  return states_of(d.path).blocked > 0.5;
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
