#include "heap/data/heap_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/statistics/distribution.hpp"
#include "base/terminal/table.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {

void process_heap::take_heap(std::uint32_t unit, std::uint64_t bytes,
                             std::uint64_t begun) noexcept {
  max_held = std::max(max_held, bytes);
  if (begun < units) return;
  units = begun;
  unit_name = unit;
  held = bytes;
}

bool process_heap::continues(std::int64_t at_ns) noexcept {
  if (at_ns < time_ns) return false;
  if (at_ns > time_ns) by_operation.clear();
  time_ns = at_ns;
  return true;
}

void process_heap::add_held(std::int64_t at_ns, std::uint32_t name, std::uint64_t bytes,
                            std::uint64_t first_unit) {
  if (continues(at_ns)) by_operation.push_back({name, first_unit, bytes});
}

void process_heap::take_total(std::int64_t at_ns, std::uint64_t total,
                              std::uint64_t which) noexcept {
  if (continues(at_ns)) (which == 0 ? allocated_bytes : allocations) = total;
}

void heap_use::add(const side_line& line) {
  const std::uint64_t bytes = line.bytes();
  if (line.kind == event_kind::allocated) {
    allocated_bytes += bytes;
    allocations += line.count();
    max_allocated_bytes = std::max(max_allocated_bytes, bytes);
  } else if (line.kind == event_kind::freed) {
    freed_bytes += bytes;
    frees += line.count();
  } else if (line.kind == event_kind::retained) {
    retained_bytes += bytes;
    retained_blocks += line.count();
  } else if (line.kind == event_kind::heap_peak) {
    peak_bytes = std::max(peak_bytes, bytes);
  }
}

namespace {

/// A range of units (batches) whose allocations liblotus_memory.so counts together. The first 64
/// ranges have one unit each. Their length doubles whenever the number of begun units has doubled.
struct generation {
  std::uint64_t first = 0;
  std::uint64_t length = 1;
};

std::vector<generation> generations_of(std::uint64_t units) {
  constexpr std::uint64_t of_a_length = 64;
  std::vector<generation> all;
  generation next;
  while (next.first < units) {
    all.push_back(next);
    next.first += next.length;
    if (next.first >= next.length * of_a_length) next.length *= 2;
  }
  return all;
}

struct observation {
  double rate = 0;    // bytes per unit
  double weight = 0;  // number of units
};

/// The generations of a process in which find_leaks() looks for leaks. They contain the units
/// between 10 % and 50 % of all units of the process.
struct tested_generations {
  std::vector<generation> generations;
  std::size_t middle = 0;
};

tested_generations generations_to_test(const process_heap& process) {
  tested_generations of;
  for (const generation& g : generations_of(process.units / 2)) {
    if (g.first >= process.units / 10 && g.first + g.length <= process.units / 2) {
      of.generations.push_back(g);
    }
  }
  of.middle = of.generations.size() / 2;
  return of;
}

constexpr std::size_t min_generations = 10;

/// Returns the unfreed bytes per unit that one operation allocated in each tested generation.
/// Returns nothing if, in the first or the second half of the tested generations, fewer than three
/// have unfreed bytes; see find_leaks().
std::vector<observation> observe(const tested_generations& at,
                                 const std::map<std::uint64_t, std::uint64_t>& bytes_by_unit) {
  constexpr std::size_t min_times = 3;
  std::vector<observation> of;
  std::size_t times[2] = {};
  for (std::size_t i = 0; i < at.generations.size(); ++i) {
    const generation& g = at.generations[i];
    std::uint64_t bytes = 0;
    for (auto u = bytes_by_unit.lower_bound(g.first);
         u != bytes_by_unit.end() && u->first < g.first + g.length; ++u) {
      bytes += u->second;
    }
    if (bytes > 0) ++times[i < at.middle ? 0 : 1];
    const auto length = static_cast<double>(g.length);
    of.push_back({static_cast<double>(bytes) / length, length});
  }
  if (std::min(times[0], times[1]) < min_times) of.clear();
  return of;
}

leak leak_of(const std::vector<observation>& of) {
  leak found;
  double weight = 0;
  for (const observation& o : of) {
    weight += o.weight;
    found.bytes_per_unit += o.weight * o.rate;
  }
  found.bytes_per_unit /= weight;
  double squares = 0;
  for (const observation& o : of) {
    const double off = o.weight * (o.rate - found.bytes_per_unit);
    squares += off * off;
  }
  const auto n = static_cast<double>(of.size());
  const double error = std::sqrt(squares * n / (n - 1)) / weight;
  const double reach = student_reach(n - 1, 0.01) * error;
  found.low = found.bytes_per_unit - reach;
  found.high = found.bytes_per_unit + reach;
  found.units = static_cast<std::uint64_t>(weight);
  return found;
}

}  // namespace

std::vector<leak> find_leaks(const heap_data& heap) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<observation>> observed;
  for (const auto& [pid, process] : heap.processes) {
    const tested_generations at = generations_to_test(process);
    if (at.generations.size() < min_generations) continue;
    std::map<std::uint32_t, std::map<std::uint64_t, std::uint64_t>> held;
    for (const held_bytes& h : process.by_operation) held[h.name][h.first_unit] += h.bytes;
    for (const auto& [name, bytes_by_unit] : held) {
      const std::vector<observation> of = observe(at, bytes_by_unit);
      auto& all = observed[{name, process.unit_name}];
      all.insert(all.end(), of.begin(), of.end());
    }
  }
  std::vector<leak> leaks;
  for (const auto& [names, of] : observed) {
    if (of.empty()) continue;
    leak found = leak_of(of);
    if (found.low <= 0) continue;
    found.name = names.first;
    found.unit_name = names.second;
    leaks.push_back(found);
  }
  std::stable_sort(leaks.begin(), leaks.end(), [](const leak& a, const leak& b) {
    return a.bytes_per_unit > b.bytes_per_unit;
  });
  return leaks;
}

std::string leak_text(const leak& found, const name_table& names) {
  const std::string_view of = names.name(found.unit_name);
  const bool batch = of == "SBatchPreprocessed";
  return shown_name(names.name(found.name)) + " leaves " + human_bytes(found.bytes_per_unit) +
         " behind with every " + (batch ? "batch" : "call of " + shown_name(of)) +
         " (99 %: " + human_bytes(found.low) + " to " + human_bytes(found.high) + ", from " +
         std::to_string(found.units) + (batch ? " batches)" : " calls)");
}

}  // namespace lotus::tool
