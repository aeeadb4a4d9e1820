#include "waits/stacks/name_stacks.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/printable.hpp"
#include "log/folder/log_files.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

template <class Each>
void for_each_entry(run_blocked_on& joined, const Each& each) {
  for (auto& [name, list] : joined.ops) {
    for (blocked_on& one : list.by) each(one);
  }
  for (blocked_on& one : joined.waits.by) each(one);
  for (blocked_on& one : joined.preprocessing.by) each(one);
}

/// Returns the function in which the lock's holder waited in at least 5 samples, and in at least
/// half of the samples of the holder; "" if there is none.
std::string held_in(const run_blocked_on& joined, const blocked_on& lock,
                    const unwound_stacks& stacks) {
  constexpr std::uint64_t min_samples = 5;
  std::map<std::string, std::uint64_t> samples;
  std::uint64_t all = 0;
  for (const seen_stack& seen : lock.holder_stacks) {
    all += seen.samples;
    if (seen.number == 0) continue;
    samples[stacks.function_of(joined.processes[seen.process], seen.number)] += seen.samples;
  }
  for (const auto& [function, count] : samples) {
    if (!function.empty() && count >= min_samples && 2 * count >= all) return function;
  }
  return {};
}

}  // namespace

void name_stacks(const run_files& run, run_blocked_on& joined, diagnostic_log& diagnostics) {
  unwound_stacks stacks(run, diagnostics);
  for_each_entry(joined, [&](const blocked_on& one) {
    for (const auto* const seen : {&one.stacks, &one.holder_stacks}) {
      for (const seen_stack& of : *seen) stacks.add(joined.processes[of.process], of.number);
    }
  });
  stacks.name_all();
  for_each_entry(joined, [&](blocked_on& one) {
    // Add up the samples of stacks that contain the same calls.
    std::map<std::vector<std::string>, std::uint64_t> samples;
    for (const seen_stack& seen : one.stacks) {
      samples[stacks.of(joined.processes[seen.process], seen.number)] += seen.samples;
    }
    std::uint64_t most = 0;
    for (const auto& [calls, count] : samples) {
      if (calls.empty() || count <= most) continue;
      most = count;
      one.calls = calls;
    }
    one.held_in = held_in(joined, one, stacks);
  });
}

std::string calls_text(const std::vector<std::string>& calls) {
  std::string text;
  for (const std::string& call : calls) {
    text.append(text.empty() ? "" : ", called by ").append(printable_line(call));
  }
  return text;
}

std::string calls_of_wait(const run_blocked_on& joined, const std::string& name,
                          const blocked_on* of) {
  const blocked_list* const list = joined.of('S' + name);
  if (list == nullptr) return {};
  for (const blocked_on& one : list->by) {
    if (of != nullptr && (one.reason != of->reason || one.what != of->what)) continue;
    if (one.calls.empty()) return {};
    return printable_line(name) + ' ' + wait_phrase(one, name) + " in " + calls_text(one.calls);
  }
  return {};
}

}  // namespace lotus::tool
