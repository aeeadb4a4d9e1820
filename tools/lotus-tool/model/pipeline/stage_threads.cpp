#include "model/pipeline/stage_threads.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lotus::tool {
namespace {

using interval = std::pair<std::int64_t, std::int64_t>;

/// The time that one thread spent in one stage.
struct share {
  std::int64_t self_ns = 0;
  interval extent{INT64_MAX, INT64_MIN};
};

std::vector<interval> intervals_of(const std::vector<thread_span>& spans) {
  std::vector<interval> all;
  all.reserve(spans.size());
  for (const thread_span& span : spans) all.emplace_back(span.start_ns, span.end_ns);
  return all;
}

/// Returns whether threads are short-lived, so that the times from first to last span of a log
/// (`extents`) do not show how many threads existed at the same time. After 64 threads have had
/// logs of their own, a new thread continues the log of a thread that ended, so one log covers
/// several threads and the time between them.
bool share_logs(const std::vector<interval>& extents) {
  constexpr std::size_t own_logs = 64;
  return extents.size() > own_logs && 2 * max_at_once(extents) < extents.size();
}

void widen(interval& extent, const interval& by) {
  extent = {std::min(extent.first, by.first), std::max(extent.second, by.second)};
}

}  // namespace

std::size_t max_at_once(const std::vector<interval>& intervals) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const auto& [first, last] : intervals) {
    changes.emplace_back(first, 1);
    changes.emplace_back(std::max(last, first + 1), -1);
  }
  std::sort(changes.begin(), changes.end());  // sorts ends (-1) before starts (+1) at equal times
  int open = 0;
  int most = 0;
  for (const auto& [time, by] : changes) most = std::max(most, open += by);
  return static_cast<std::size_t>(most);
}

stage_pools find_pools(const std::vector<std::vector<thread_span>>& stages) {
  std::vector<std::map<optional_file, share>> by_thread(stages.size());
  std::map<optional_file, std::int64_t> of_thread;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const thread_span& span : stages[s]) {
      share& on = by_thread[s][span.file];
      on.self_ns += span.self_ns;
      widen(on.extent, {span.start_ns, span.end_ns});
      of_thread[span.file] += span.self_ns;
    }
  }
  stage_pools found;
  found.stages.resize(stages.size());
  // A union-find forest whose trees are the groups of stages that share threads.
  std::vector<std::size_t> group(stages.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<bool> shared(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<interval> own;
    std::int64_t own_ns = 0;
    std::int64_t all_ns = 0;
    for (const auto& [file, on] : by_thread[s]) {
      all_ns += on.self_ns;
      if (on.self_ns * 100 < of_thread[file] * 95) continue;
      own_ns += on.self_ns;
      own.push_back(on.extent);
    }
    shared[s] = own_ns * 10 < all_ns * 9;
    if (shared[s]) continue;
    found.stages[s].slots = max_at_once(share_logs(own) ? intervals_of(stages[s]) : own);
  }
  // For each thread that runs stages with shared threads: the first of these stages. The key is the
  // log of the thread.
  std::map<optional_file, std::size_t> first_of;
  const auto root = [&](std::size_t s) {
    while (group[s] != s) s = group[s];
    return s;
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!shared[s]) continue;
    for (const auto& [file, on] : by_thread[s]) {
      const auto [at, is_new] = first_of.try_emplace(file, s);
      if (!is_new) group[root(s)] = root(at->second);
    }
  }
  // For each stage that is the root of a tree in `group`: the number of the pool of threads that
  // the stages of this tree share.
  std::map<std::size_t, std::size_t> pool_of;
  std::vector<std::map<optional_file, interval>> extents;
  std::vector<std::vector<interval>> spans_of;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!shared[s]) continue;
    const auto [at, is_new] = pool_of.try_emplace(root(s), extents.size());
    if (is_new) extents.emplace_back();
    spans_of.resize(extents.size());
    const std::vector<interval> spans = intervals_of(stages[s]);
    spans_of[at->second].insert(spans_of[at->second].end(), spans.begin(), spans.end());
    found.stages[s].pool = at->second;
    for (const auto& [file, on] : by_thread[s]) {
      widen(extents[at->second].try_emplace(file, on.extent).first->second, on.extent);
    }
  }
  for (std::size_t p = 0; p < extents.size(); ++p) {
    std::vector<interval> all;
    all.reserve(extents[p].size());
    for (const auto& [file, extent] : extents[p]) all.push_back(extent);
    found.pools.push_back(max_at_once(share_logs(all) ? spans_of[p] : all));
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!shared[s]) continue;
    found.stages[s].slots =
        std::min(max_at_once(intervals_of(stages[s])), found.pools[*found.stages[s].pool]);
  }
  return found;
}

}  // namespace lotus::tool
