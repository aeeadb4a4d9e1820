#include "replay/single_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "log/shown_name.hpp"

namespace lotus::tool {
namespace {

/// Calls `each(stage, work)` with the indices of each work and of its stage.
template <class Each>
void for_each_work(const recorded_pipeline& p, const Each& each) {
  for (const planned_unit& u : p.units) {
    for (std::uint32_t s = u.first_stage; s < u.end_stage; ++s) {
      each(s, u.first_work + (s - u.first_stage));
    }
  }
}

/// Returns the names of the stages and operations with at least 2 % of the work, largest share
/// first.
std::vector<std::string> larger_work(const recorded_pipeline& p, const name_table& names) {
  std::map<std::string, double> sums;
  double all_ns = 0;
  for_each_work(p, [&](std::uint32_t stage, std::uint32_t work) {
    const double ns = p.works[work].cpu_ns + p.works[work].blocked_ns;
    all_ns += ns;
    // If there is only one stage, it is all of the preprocessing, so do not list it as a part.
    if (p.stages.size() > 1) sums[p.stages[stage].name] += ns;
  });
  for (const recorded_part& part : p.parts) {
    const std::string name = shown_name(names.name(part.name));
    const bool is_stage = std::any_of(p.stages.begin(), p.stages.end(),
                                      [&](const recorded_stage& s) { return s.name == name; });
    if (!is_stage) sums[name] += part.cpu_ns + part.blocked_ns;
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, ns] : sums) {
    if (ns >= 0.02 * all_ns) sorted.emplace_back(-ns, name);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> larger;
  larger.reserve(sorted.size());
  for (auto& [ns, name] : sorted) larger.push_back(std::move(name));
  return larger;
}

void add_threads(const recorded_pipeline& p, std::vector<pipeline_change>& to) {
  const std::size_t now = p.workers();
  for (const std::size_t wanted : std::set<std::size_t>{now - 1, now + 1, 2 * now, 4 * now}) {
    if (wanted == 0) continue;
    if (p.stages.size() == 1 || p.stages.front().pool) {
      to.emplace_back().workers = wanted;
    } else if (wanted < now || may_need_threads(p, {}, 0)) {
      to.emplace_back().threads[p.stages.front().name] = wanted;
    }
  }
  for (std::size_t s = 1; s < p.stages.size(); ++s) {
    if (p.stages[s].pool || !may_need_threads(p, {}, s)) continue;
    const std::size_t threads = p.stages[s].threads;
    for (const std::size_t more : std::set<std::size_t>{threads + 1, 2 * threads}) {
      to.emplace_back();
      to.back().threads[p.stages[s].name] = more;
    }
  }
}

}  // namespace

std::vector<pipeline_change> single_changes(const recorded_pipeline& p, const name_table& names) {
  std::vector<pipeline_change> all;
  const auto add = [&all]() -> pipeline_change& { return all.emplace_back(); };
  if (p.makes_itself) {
    add().own_thread = true;
  } else {
    add_threads(p, all);
    if (p.stages.size() == 1 && p.in_flight_held) {
      for (const std::size_t prefetch : {1U, 2U, 4U, 8U}) {
        if (prefetch != p.prefetch()) add().prefetch = prefetch;
      }
    }
    if (p.budget_held) add().in_flight = 2 * p.batches_in_flight();
    if (p.ordered && p.stages.front().threads > 1) add().unordered = true;
    add().no_start_up = true;
  }
  for (const std::string& name : larger_work(p, names)) {
    for (const double faster : {1.25, 2.0, HUGE_VAL}) add().faster[name] = faster;
  }
  if (p.cpus && p.cpu_known) add().cpus = 2 * *p.cpus;
  if (p.has_consumer) add().step = 0.8;
  return all;
}

bool may_need_threads(const recorded_pipeline& p, const pipeline_change& change,
                      std::size_t stage) {
  std::vector<double> ns_per_thread(p.stages.size());
  for_each_work(p, [&](std::uint32_t s, std::uint32_t work) {
    ns_per_thread[s] += p.works[work].all_ns() / static_cast<double>(threads_with(change, p, s));
  });
  return ns_per_thread[stage] >=
         0.5 * *std::max_element(ns_per_thread.begin(), ns_per_thread.end());
}

std::vector<std::string> names_of_work(const recorded_pipeline& pipeline, const name_table& names) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& name) {
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  };
  for (const recorded_stage& s : pipeline.stages) add(s.name);
  std::vector<bool> seen(names.size());
  for (const recorded_part& part : pipeline.parts) {
    if (seen[part.name]) continue;
    seen[part.name] = true;
    add(shown_name(names.name(part.name)));
  }
  return found;
}

std::map<std::string, std::string> stages_of_operations(const recorded_pipeline& p,
                                                        const name_table& names) {
  std::vector<std::uint32_t> stage_of_work(p.works.size());
  for_each_work(p, [&](std::uint32_t stage, std::uint32_t work) { stage_of_work[work] = stage; });
  std::map<std::string, std::vector<double>> ns_in_stages;
  for (const recorded_part& part : p.parts) {
    std::vector<double>& ns = ns_in_stages[shown_name(names.name(part.name))];
    ns.resize(p.stages.size());
    ns[stage_of_work[part.work]] += part.cpu_ns + part.blocked_ns + part.queued_ns;
  }
  std::map<std::string, std::string> found;
  for (const auto& [name, ns] : ns_in_stages) {
    const auto most = std::max_element(ns.begin(), ns.end());
    if (*most >= 0.9 * std::accumulate(ns.begin(), ns.end(), 0.0)) {
      found[name] = p.stages[static_cast<std::size_t>(most - ns.begin())].name;
    }
  }
  return found;
}

}  // namespace lotus::tool
