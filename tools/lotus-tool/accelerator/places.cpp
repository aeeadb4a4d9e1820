#include "accelerator/places.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

namespace lotus::tool {
namespace {

using pieces = std::vector<host_range>;

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

/// Whether a function of Python, such as "train.py(12): step", is in a file of the user's program.
bool is_own_line(std::string_view name) noexcept {
  constexpr std::array libraries{"torch/", "site-packages/", "dist-packages/", "/lib/python", "<"};
  return contains(name, ".py(") &&
         std::none_of(libraries.begin(), libraries.end(), [name](std::string_view library) {
           return library.size() < 7 ? name.substr(0, library.size()) == library
                                     : contains(name, library);
         });
}

/// Returns the parts of nested ranges of one thread that are in no range inside them.
/// @param ranges  sorted by start, outer ranges first.
pieces innermost(const pieces& ranges) {
  pieces found, open;
  std::int64_t at_ns = INT64_MIN;
  const auto until = [&](std::int64_t ns) {
    if (!open.empty() && at_ns < ns) {
      found.push_back(open.back());
      found.back().start_ns = at_ns;
      found.back().end_ns = ns;
    }
    at_ns = std::max(at_ns, ns);
  };
  for (const host_range& range : ranges) {
    while (!open.empty() && open.back().end_ns <= range.start_ns) {
      until(open.back().end_ns);
      open.pop_back();
    }
    until(range.start_ns);
    open.push_back(range);
  }
  for (; !open.empty(); open.pop_back()) until(open.back().end_ns);
  return found;
}

pieces outermost(const pieces& ranges) {
  pieces found;
  for (const host_range& range : ranges) {
    if (found.empty() || found.back().end_ns <= range.start_ns) found.push_back(range);
  }
  return found;
}

named_time covering_most(const device_trace& trace, const std::vector<cause_range>& parts,
                         range_kind kind) {
  std::vector<bool> counts(trace.threads.size(), !has_launches(trace));
  for (const runtime_call& call : trace.calls) {
    if (call.kind != call_kind::other) counts[call.thread] = true;
  }
  for (const wait_range& wait : trace.waits) counts[wait.thread] = true;
  std::map<std::uint32_t, pieces> threads;
  for (const host_range& range : trace.ranges) {
    if (range.kind != kind || !counts[range.thread]) continue;
    if (kind == range_kind::line && !is_own_line(trace.names[range.name])) continue;
    threads[range.thread].push_back(range);
  }
  std::map<std::uint32_t, std::int64_t> sums_ns;
  for (auto& [thread, ranges] : threads) {
    std::sort(ranges.begin(), ranges.end(), [](const host_range& a, const host_range& b) {
      return std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns);
    });
    const pieces shown = kind == range_kind::framework ? outermost(ranges) : innermost(ranges);
    for (const cause_range& part : parts) {
      auto at =
          std::lower_bound(shown.begin(), shown.end(), part.start_ns,
                           [](const host_range& r, std::int64_t ns) { return r.end_ns <= ns; });
      for (; at != shown.end() && at->start_ns < part.end_ns; ++at) {
        sums_ns[at->name] +=
            std::min(at->end_ns, part.end_ns) - std::max(at->start_ns, part.start_ns);
      }
    }
  }
  named_time most;
  for (const auto& [name, ns] : sums_ns) {
    if (ns > most.ns) most = {trace.names[name], ns};
  }
  return most;
}

}  // namespace

idle_places find_places(const device_trace& trace, std::vector<cause_range> parts) {
  idle_places found;
  found.gaps = parts.size();
  std::map<std::uint64_t, std::int64_t> steps_ns;
  for (const cause_range& part : parts) {
    found.all_ns += part.end_ns - part.start_ns;
    for (const profiler_step& step : trace.steps) {
      const std::int64_t ns =
          std::min(step.end_ns, part.end_ns) - std::max(step.start_ns, part.start_ns);
      if (ns > 0) steps_ns[step.number] += ns;
    }
  }
  for (const auto& [number, ns] : steps_ns) {
    if (ns <= found.step_ns) continue;
    found.step = number;
    found.step_ns = ns;
  }
  found.framework = covering_most(trace, parts, range_kind::framework);
  found.line = covering_most(trace, parts, range_kind::line);
  found.annotation = covering_most(trace, parts, range_kind::annotation);
  std::sort(parts.begin(), parts.end(), [](const cause_range& a, const cause_range& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(10, parts.size()); ++i) {
    found.ten_longest_ns += parts[i].end_ns - parts[i].start_ns;
  }
  if (!parts.empty()) found.longest_ns = parts.front().end_ns - parts.front().start_ns;
  return found;
}

}  // namespace lotus::tool
