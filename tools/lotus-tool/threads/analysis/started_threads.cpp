#include "threads/analysis/started_threads.hpp"

#include <set>

namespace lotus::tool {

started_threads::started_threads(const thread_samples& samples, const named_stacks& stacks)
    : samples_(samples) {
  for (const sampled_process& p : samples.processes) program_[p.pid] = p.program;
  std::vector<counts> starts(samples.threads.size());
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
  look_into_wrappers(stacks, starts);
  join_first_threads(stacks, starts);
  for (std::size_t i = 0; i < samples.threads.size(); ++i) {
    if (samples.threads[i].wait_samples > 0 || samples.threads[i].span_ns > 0) seen_[i] = true;
    has_start_.push_back(!starts[i].empty());
    key_.push_back(key_of(i, starts[i]));
  }
}

/// A function with which threads of several roles begin, such as a class that catches exceptions,
/// says nothing about them. It is recognized by the functions that it calls: always the same one in
/// each thread, and different ones in different threads. Then each thread is named by that one.
void started_threads::look_into_wrappers(const named_stacks& stacks, std::vector<counts>& starts) {
  constexpr std::size_t max_wrappers = 3;
  constexpr std::uint64_t enough = 5;
  struct called {
    counts functions;
    bool only_waits_there = true;  // whether the thread was seen in no function below it
  };
  for (std::size_t depth = 0; depth < max_wrappers; ++depth) {
    std::vector<called> calls(starts.size());
    for (const thread_sample& s : samples_.samples) {
      const std::vector<const source_place*> from_start = calls_from_start(stacks.of(s.stack));
      const bool has = from_start.size() > depth;
      called& of = calls[s.thread];
      of.functions[has ? from_start[depth]->function : ""] += s.count;
      if (from_start.size() > depth + 1 || (has && !s.waits)) of.only_waits_there = false;
    }
    std::map<std::string, std::vector<std::size_t>> families;  // threads by what they began with
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto most = most_frequent(starts[i]);
      if (most != starts[i].end()) families[without_arguments(most->first)].push_back(i);
    }
    bool any = false;
    for (const auto& [name, threads] : families) {
      // The first function of a library without symbols, such as OpenMP's, is always a wrapper.
      const bool is_unnamed =
          starts_[most_frequent(starts[threads.front()])->first].start.in_unnamed_library;
      std::set<std::string> roles;
      bool is_wrapper = true;
      for (const std::size_t thread : threads) {
        counts& of = calls[thread].functions;
        if (is_unnamed) of.erase("");
        std::uint64_t sum = 0;
        for (const auto& [function, count] : of) sum += count;
        if (sum < enough || calls[thread].only_waits_there) continue;
        is_wrapper = is_wrapper && of.size() == 1 && !of.begin()->first.empty();
        roles.insert(of.begin()->first);
      }
      if (!is_wrapper || roles.size() < (is_unnamed ? 1 : 2)) continue;
      any = true;
      for (const std::size_t thread : threads) {
        const auto role = most_frequent(calls[thread].functions);
        if (role == calls[thread].functions.end() || role->first.empty()) continue;
        thread_start& start = starts_[role->first].start;
        start.symbol = start.function = role->first;
        starts[thread] = {*role};
      }
    }
    if (!any) return;
  }
}

/// A thread that starts others and then does the same as they do belongs to their group: it was
/// nearly always seen in the function with which they began.
void started_threads::join_first_threads(const named_stacks& stacks, std::vector<counts>& starts) {
  constexpr std::uint64_t enough = 10;
  constexpr double nearly_all = 0.9;
  std::set<std::string> known;
  for (const counts& of : starts) {
    if (!of.empty()) known.insert(most_frequent(of)->first);
  }
  std::vector<counts> called(starts.size());  // which of these functions each thread called
  std::vector<std::uint64_t> samples(starts.size());
  for (const thread_sample& s : samples_.samples) {
    if (starts[s.thread].empty()) continue;
    samples[s.thread] += s.count;
    const std::string& own = most_frequent(starts[s.thread])->first;
    std::set<std::string> here;
    for (const source_place& call : stacks.of(s.stack)) here.insert(call.function);
    for (const std::string& function : here) {
      if (function != own && known.count(function) != 0) called[s.thread][function] += s.count;
    }
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto most = most_frequent(called[i]);
    const bool is_main = samples_.threads[i].pid == samples_.threads[i].tid;
    if (is_main || most == called[i].end() || samples[i] < enough) continue;
    if (static_cast<double>(most->second) < nearly_all * static_cast<double>(samples[i])) continue;
    starts[i] = {*most};
  }
}

group_key started_threads::key_of(std::size_t thread, const counts& starts) const {
  const sampled_thread& t = samples_.threads[thread];
  const auto known = program_.find(t.pid);
  const std::string program = known == program_.end() ? std::string() : known->second;
  if (thread == 0) return {0, program, "main"};
  if (t.pid == t.tid) return {1, program, t.name};
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
