#include "threads/analysis/run_phases.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "threads/analysis/seen_together.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t slices = 36;
constexpr std::size_t min_slices = slices / 12;

/// CPU samples of a group at one time.
struct timed_use {
  std::size_t slice = 0;
  std::size_t group = 0;
  double cpu_s = 0;
  const thread_sample* of = nullptr;
};

std::vector<timed_use> uses_of(const thread_samples& samples,
                               const std::vector<std::size_t>& group_of) {
  std::vector<timed_use> all;
  const double slice_ms = 1e-6 * static_cast<double>(samples.duration_ns) / slices;
  for (const thread_sample& s : samples.samples) {
    if (s.at_ms.empty() || group_of[s.thread] == seen_together::no_group) continue;
    const double each_s = 1e-9 * static_cast<double>(samples.interval_ns * s.count) /
                          static_cast<double>(s.at_ms.size());
    for (const std::uint32_t at_ms : s.at_ms) {
      const auto slice = static_cast<std::size_t>(static_cast<double>(at_ms) / slice_ms);
      all.push_back({std::min(slice, slices - 1), group_of[s.thread], each_s, &s});
    }
  }
  return all;
}

/// Slices from `begin` to before `end` in which the same group used the CPUs most.
struct stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t group = seen_together::no_group;

  std::size_t size() const { return end - begin; }
};

/// Joins neighbors with the same group.
void join_equal(std::vector<stretch>& all) {
  std::vector<stretch> joined;
  for (const stretch& one : all) {
    if (!joined.empty() && joined.back().group == one.group) {
      joined.back().end = one.end;
    } else {
      joined.push_back(one);
    }
  }
  all = std::move(joined);
}

/// Adds the shortest stretch to its longer neighbor, until all are long enough.
void remove_short(std::vector<stretch>& all) {
  const auto shorter = [](const stretch& a, const stretch& b) { return a.size() < b.size(); };
  for (join_equal(all); all.size() > 1; join_equal(all)) {
    const auto shortest = std::min_element(all.begin(), all.end(), shorter);
    if (shortest->size() >= min_slices) return;
    const bool has_before = shortest != all.begin();
    const bool has_after = shortest + 1 != all.end();
    const bool to_before = has_before && (!has_after || !shorter(*(shortest - 1), *(shortest + 1)));
    shortest->group = (to_before ? shortest - 1 : shortest + 1)->group;
  }
}

}  // namespace

std::vector<run_phase> phases_of(const thread_samples& samples, const named_stacks& stacks,
                                 const std::vector<thread_activity>& groups) {
  if (samples.interval_ns == 0 || samples.duration_ns == 0) return {};
  const std::vector<timed_use> uses = uses_of(samples, groups_of_threads(samples, groups));
  const double slice_s = 1e-9 * static_cast<double>(samples.duration_ns) / slices;
  std::vector<std::map<std::size_t, double>> by_slice(slices);
  for (const timed_use& use : uses) by_slice[use.slice][use.group] += use.cpu_s;
  const auto by_value = [](const auto& a, const auto& b) { return a.second < b.second; };
  std::vector<stretch> parts;
  for (std::size_t i = 0; i < slices; ++i) {
    constexpr double nearly_idle = 0.1;
    const auto most = std::max_element(by_slice[i].begin(), by_slice[i].end(), by_value);
    const bool is_idle = most == by_slice[i].end() || most->second < nearly_idle * slice_s;
    parts.push_back({i, i + 1, is_idle ? +seen_together::no_group : most->first});
  }
  remove_short(parts);
  std::vector<run_phase> phases;
  for (const stretch& part : parts) {
    run_phase& phase = phases.emplace_back();
    phase.begin_s = slice_s * static_cast<double>(part.begin);
    phase.end_s = slice_s * static_cast<double>(part.end);
    double sum_s = 0;
    double group_s = 0;
    std::map<std::pair<std::string, std::string>, std::pair<double, source_place>> functions;
    for (const timed_use& use : uses) {
      if (use.slice < part.begin || use.slice >= part.end) continue;
      sum_s += use.cpu_s;
      if (use.group != part.group) continue;
      group_s += use.cpu_s;
      source_place place = working_place(stacks.of(use.of->stack), groups[use.group].program);
      auto& function = functions[{place.function, place.callee}];
      function.first += use.cpu_s;
      function.second = std::move(place);
    }
    phase.cpus = sum_s / phase.time_s();
    if (functions.empty()) continue;
    phase.group = part.group;
    phase.share = group_s / sum_s;
    phase.function =
        std::max_element(functions.begin(), functions.end(), [](const auto& a, const auto& b) {
          return a.second.first < b.second.first;
        })->second.second;
  }
  return phases;
}

}  // namespace lotus::tool
