#include "model/path/path_sum.hpp"

#include <algorithm>

#include "model/pipeline/off_cpu.hpp"

namespace lotus::tool {

void path_sum::add(path_kind kind, std::optional<std::uint32_t> name, std::int64_t start_ns,
                   std::int64_t end_ns, optional_file file) {
  if (end_ns <= start_ns) return;
  if (activities_ != nullptr) activities_->push_back({start_ns, end_ns, name, kind, file});
  path_share& to = shares_[{kind, name}];
  if (to.ns == 0) {
    to.kind = kind;
    if (name) to.name = run_.names.name(*name).substr(1);
    to.cpu = cpu_split{0, 0, 0};
  }
  to.ns += end_ns - start_ns;
  if (end_ns - start_ns > to.longest_ns) {
    to.longest_ns = end_ns - start_ns;
    to.longest_at_ns = start_ns - run_.first_ns;
    to.longest_file = file;
  }
  const off_cpu_time* const off = run_.side.off_cpu_of(file, kind == path_kind::step);
  if (off == nullptr) {
    to.cpu.reset();
  } else if (to.cpu) {
    *to.cpu += off->split(start_ns, end_ns);
  }
}

void path_sum::add(const path_sum& other) {
  for (const auto& [of, share] : other.shares_) {
    const auto [at, is_new] = shares_.try_emplace(of, share);
    if (is_new) continue;
    path_share& to = at->second;
    to.ns += share.ns;
    if (share.longest_ns > to.longest_ns) {
      to.longest_ns = share.longest_ns;
      to.longest_at_ns = share.longest_at_ns;
      to.longest_file = share.longest_file;
    }
    if (!share.cpu) {
      to.cpu.reset();
    } else if (to.cpu) {
      *to.cpu += *share.cpu;
    }
  }
}

std::vector<path_share> path_sum::shares() const {
  std::vector<path_share> all;
  all.reserve(shares_.size());
  for (const auto& [of, share] : shares_) all.push_back(share);
  std::stable_sort(all.begin(), all.end(),
                   [](const path_share& a, const path_share& b) { return a.ns > b.ns; });
  return all;
}

}  // namespace lotus::tool
