#include "threads/analysis/started_threads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

/// Returns the element with the largest count.
template <class Counts>
typename Counts::const_iterator most_frequent(const Counts& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

}  // namespace

started_threads::started_threads(const thread_samples& samples, const named_stacks& stacks)
    : samples_(samples) {
  for (const sampled_process& p : samples.processes) program_[p.pid] = p.program;
  std::vector<std::map<std::string, std::uint64_t>> starts(samples.threads.size());
  seen_.resize(samples.threads.size());
  for (const thread_sample& s : samples.samples) {
    seen_[s.thread] = true;
    thread_start start = start_of_thread(stacks.of(s.stack));
    if (start.symbol.empty()) continue;
    starts[s.thread][start.symbol] += s.count;
    lines_of_start& known = starts_[start.symbol];
    if (start.line > 0) known.lines[{start.file, start.line}] += s.count;
    known.start = std::move(start);
  }
  for (std::size_t i = 0; i < samples.threads.size(); ++i) {
    if (samples.threads[i].wait_samples > 0 || samples.threads[i].span_ns > 0) seen_[i] = true;
    key_.push_back(key_of(i, starts[i]));
  }
}

group_key started_threads::key_of(std::size_t thread,
                                  const std::map<std::string, std::uint64_t>& starts) const {
  const sampled_thread& t = samples_.threads[thread];
  const auto known = program_.find(t.pid);
  const std::string program = known == program_.end() ? std::string() : known->second;
  if (thread == 0) return {0, program, "main"};
  if (t.pid == t.tid) return {1, program, "main of " + t.name};
  const auto most = most_frequent(starts);
  return {2, program, most != starts.end() ? most->first : t.name};
}

thread_start started_threads::start(const group_key& key) const {
  thread_start start;
  start.symbol = start.function = key.start;
  const auto known = starts_.find(key.start);
  if (key.kind != 2 || known == starts_.end()) return start;
  start = known->second.start;
  const auto most = most_frequent(known->second.lines);
  if (most != known->second.lines.end()) std::tie(start.file, start.line) = most->first;
  return start;
}

}  // namespace lotus::tool
