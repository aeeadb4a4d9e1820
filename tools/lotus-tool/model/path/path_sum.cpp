#include "model/path/path_sum.hpp"

#include <algorithm>
#include <cmath>

namespace lotus::tool {

void path_sum::add(path_kind kind, std::optional<std::uint32_t> name, std::int64_t start_ns,
                   std::int64_t end_ns, optional_file file) {
  if (end_ns <= start_ns) return;
  if (activities_ != nullptr) activities_->push_back({start_ns, end_ns, name, kind, file});
  summed& sum = sums_[{kind, name}];
  path_share& to = sum.share;
  if (to.ns == 0) {
    to.kind = kind;
    if (name) to.name = run_.names.name(*name).substr(1);
  }
  to.ns += end_ns - start_ns;
  if (end_ns - start_ns > to.longest_ns) {
    to.longest_ns = end_ns - start_ns;
    to.longest_at_ns = start_ns - run_.first_ns;
    to.longest_file = file;
  }
  const off_cpu_time* const off = run_.side.off_cpu_of(file, kind == path_kind::step);
  if (off == nullptr) {
    sum.without_cpu_ns += end_ns - start_ns;
  } else {
    sum.cpu += off->split(start_ns, end_ns);
  }
}

void path_sum::add(const path_sum& other) {
  for (const auto& [of, added] : other.sums_) {
    const auto [at, is_new] = sums_.try_emplace(of, added);
    if (is_new) continue;
    path_share& to = at->second.share;
    to.ns += added.share.ns;
    if (added.share.longest_ns > to.longest_ns) {
      to.longest_ns = added.share.longest_ns;
      to.longest_at_ns = added.share.longest_at_ns;
      to.longest_file = added.share.longest_file;
    }
    at->second.cpu += added.cpu;
    at->second.without_cpu_ns += added.without_cpu_ns;
  }
}

std::vector<path_share> path_sum::shares() const {
  std::vector<path_share> all;
  all.reserve(sums_.size());
  for (const auto& [of, sum] : sums_) {
    all.push_back(sum.share);
    if (20 * sum.without_cpu_ns > sum.share.ns) continue;
    const double scale =
        static_cast<double>(sum.share.ns) / static_cast<double>(sum.share.ns - sum.without_cpu_ns);
    const auto scaled = [scale](std::int64_t ns) {
      return std::llround(scale * static_cast<double>(ns));
    };
    cpu_split& cpu = all.back().cpu.emplace(sum.cpu);
    cpu.cpu_ns = scaled(cpu.cpu_ns);
    for (auto* const part : {&cpu.run_queue_ns, &cpu.blocked_ns}) {
      if (*part) *part = scaled(**part);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const path_share& a, const path_share& b) { return a.ns > b.ns; });
  return all;
}

}  // namespace lotus::tool
