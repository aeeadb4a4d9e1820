#include "threads/analysis/thread_activity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/waited_for.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

/// The properties by which threads are grouped; all threads of a group have the same key.
struct group_key {
  int kind = 0;  ///< 0: the main thread, 1: main threads of other processes, 2: other threads
  std::string program;  ///< path; "" if unknown
  std::string start;    ///< thread_start::symbol, or the thread's name if that is unknown

  friend bool operator<(const group_key& a, const group_key& b) {
    return std::tie(a.kind, a.program, a.start) < std::tie(b.kind, b.program, b.start);
  }
};

class started_threads {
 public:
  started_threads(const thread_samples& samples, const named_stacks& stacks);

  /// Returns whether there are samples or times of a thread.
  bool is_seen(std::size_t thread) const { return seen_[thread]; }
  const group_key& key(std::size_t thread) const { return key_[thread]; }
  /// Returns the function with which the threads of a group began. For a lambda, the result has the
  /// line that occurs in most samples.
  thread_start start(const group_key& key) const;

 private:
  struct lines_of_start {
    thread_start start;
    std::map<std::pair<std::string, int>, std::uint64_t> lines;
  };

  group_key key_of(std::size_t thread, const std::map<std::string, std::uint64_t>& starts) const;

  const thread_samples& samples_;
  std::vector<bool> seen_;
  std::vector<group_key> key_;
  std::map<std::string, lines_of_start> starts_;  // the key is thread_start::symbol
  std::map<std::uint32_t, std::string> program_;  // path of each process's program, by pid
};

/// Returns the element with the largest count.
template <class Counts>
typename Counts::const_iterator most_frequent(const Counts& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

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

using lotus::detail::wait_reason;

bool by_share(const blocked_part& a, const blocked_part& b) {
  return a.share > b.share;
}

class analysis {
 public:
  analysis(const thread_samples& samples, const named_stacks& stacks)
      : samples_(samples), stacks_(stacks) {
    collect();
    for (group_samples& group : groups_) {
      add_states(group);
      add_functions(group);
    }
    name_programs();
    // Add the waits last, because waited_for needs the states of all groups.
    const waited_for others(samples, stacks, groups_);
    for (std::size_t i = 0; i < groups_.size(); ++i) add_blocked(i, others);
  }

  std::vector<thread_activity> take() {
    std::vector<std::size_t> order(groups_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto busy = [this](std::size_t i) {
      return groups_[i].of.time_s * (groups_[i].of.running + groups_[i].of.run_queue);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (groups_[a].of.is_main != groups_[b].of.is_main) return groups_[a].of.is_main;
      return busy(a) > busy(b);
    });
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<thread_activity> all;
    for (const std::size_t i : order) {
      for (blocked_part& part : groups_[i].of.blocked) {
        if (part.of) part.of = place[*part.of];
      }
      all.push_back(std::move(groups_[i].of));
    }
    return all;
  }

 private:
  void collect() {
    const started_threads found(samples_, stacks_);
    std::map<group_key, std::size_t> known;
    // Index of the group of each thread.
    std::vector<std::size_t> group_of(samples_.threads.size());
    std::vector<thread_start> starts;
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (!found.is_seen(i)) continue;
      const sampled_thread& t = samples_.threads[i];
      const auto [at, is_new] = known.try_emplace(found.key(i), groups_.size());
      if (is_new) {
        groups_.emplace_back();
        starts.push_back(found.start(found.key(i)));
      }
      group_samples& group = groups_[at->second];
      group_of[i] = at->second;
      group.of.program = found.key(i).program;
      group.of.is_main = i == 0;
      group.of.is_process = i != 0 && t.pid == t.tid;
      ++group.of.threads;
      group.of.members.insert(i);
      group.processes.insert(t.pid);
      group.of.processes = group.processes.size();
      group.of.wait_samples += t.wait_samples;
      group.span_ns += t.span_ns;
      group.waits += t.waits;
      group.cpu_ns += t.cpu_ns;
      group.queue_ns += t.queue_ns;
    }
    for (const thread_sample& s : samples_.samples) {
      group_samples& group = groups_[group_of[s.thread]];
      (s.waits ? group.waiting : group.running).push_back(&s);
      if (!s.waits) group.of.cpu_samples += s.count;
    }
    name_starts(starts);
  }

  /// Sets the names of the functions with which the groups' threads began. The name of a lambda
  /// contains its line, if known. If several groups would have the same name, it also contains the
  /// name that the compiler gave the lambda.
  void name_starts(const std::vector<thread_start>& starts) {
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> same;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      thread_activity& of = groups_[i].of;
      of.function = starts[i].function;
      if (!starts[i].lambda.empty()) of.lambda = "a lambda" + shown_line(starts[i]);
      ++same[{of.program, of.function, of.lambda}];
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      thread_activity& of = groups_[i].of;
      if (!of.lambda.empty() && same[{of.program, of.function, of.lambda}] > 1) {
        of.lambda = "the lambda " + starts[i].lambda + shown_line(starts[i]);
      }
      of.start = of.lambda.empty() ? of.function : of.lambda + " in " + of.function;
    }
  }

  static std::string shown_line(const thread_start& start) {
    if (start.line <= 0) return {};
    return " at " + std::string(file_name(start.file)) + ':' + std::to_string(start.line);
  }

  /// Sets `of_program` of the groups that need the name of their program, because another group has
  /// the same name, or because they belong to another program than the main thread.
  void name_programs() {
    for (group_samples& group : groups_) {
      thread_activity& of = group.of;
      if (of.is_main) continue;
      bool is_needed = !of.is_process && of.program != groups_.front().of.program;
      bool same_file = false;  // whether another program's file has the same name
      for (const group_samples& other : groups_) {
        if (other.of.program == of.program) continue;
        is_needed = is_needed || (other.of.start == of.start && !other.of.is_main &&
                                  other.of.is_process == of.is_process);
        same_file = same_file || file_name(other.of.program) == file_name(of.program);
      }
      if (is_needed) of.of_program = same_file ? of.program : file_name(of.program);
    }
  }

  void add_states(group_samples& group) const {
    thread_activity& of = group.of;
    constexpr double min_span_s = 0.1;
    if (of.wait_samples == 0 && static_cast<double>(group.span_ns) * 1e-9 < min_span_s) {
      // These threads were so short-lived that they are only in CPU samples. Assume that they
      // always ran.
      of.running = 1;
      of.time_s = static_cast<double>(of.cpu_samples * samples_.interval_ns) * 1e-9;
      return;
    }
    // Calculate the shares from the threads' CPU times, which are exact, and not from the numbers
    // of wait samples, of which there may be too few.
    const auto ran = static_cast<double>(group.cpu_ns);
    const auto queued = static_cast<double>(group.queue_ns);
    of.time_s = static_cast<double>(group.span_ns) * 1e-9;
    double awake = std::min(1.0, (ran + queued) * 1e-9 / of.time_s);
    if (of.time_s < min_span_s) {
      awake = 1 - static_cast<double>(group.waits) / static_cast<double>(of.wait_samples);
    } else if (group.waits == 0 && of.wait_samples > 0) {
      awake = 1;
    }
    of.run_queue = ran + queued > 0 ? awake * queued / (ran + queued) : 0;
    of.running = awake - of.run_queue;
  }

  void add_functions(group_samples& group) const {
    struct found {
      std::uint64_t count = 0;
      bool has_name = true;
      std::map<std::pair<std::string, int>, std::uint64_t> lines;
    };
    std::map<std::pair<std::string, std::string>, found> functions;
    for (const thread_sample* s : group.running) {
      const named_stack& stack = stacks_.of(s->stack);
      if (stack.empty()) continue;
      const source_place& place = stack[working_call(stack)];
      found& f = functions[{place.function, place.module}];
      f.count += s->count;
      f.has_name = place.has_name;
      f.lines[{place.file, place.line}] += s->count;
    }
    for (const auto& [name, f] : functions) {
      const auto line =
          std::max_element(f.lines.begin(), f.lines.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      group.of.functions.push_back(
          {{name.first, name.second, line->first.first, line->first.second, f.has_name},
           static_cast<double>(f.count) / static_cast<double>(group.of.cpu_samples)});
    }
    std::stable_sort(
        group.of.functions.begin(), group.of.functions.end(),
        [](const function_share& a, const function_share& b) { return a.share > b.share; });
  }

  void add_blocked(std::size_t index, const waited_for& others) {
    group_samples& group = groups_[index];
    struct found {
      std::uint64_t count = 0;
      std::map<std::pair<std::size_t, bool>, std::uint64_t> of;
    };
    std::map<std::tuple<wait_reason, std::string, source_place>, found> parts;
    std::uint64_t sum = 0;
    for (const thread_sample* s : group.waiting) {
      const named_stack& stack = stacks_.of(s->stack);
      const source_place place = stack.empty() ? source_place{} : stack[waiting_call(stack)];
      found& part = parts[{s->reason, s->what, place}];
      part.count += s->count;
      sum += s->count;
      if (const auto of = others.of(*s, index)) part.of[*of] += s->count;
    }
    for (const auto& [key, part] : parts) {
      blocked_part one;
      std::tie(one.reason, one.what, one.function) = key;
      one.share = (1 - group.of.running - group.of.run_queue) * static_cast<double>(part.count) /
                  static_cast<double>(sum);
      const auto most =
          std::max_element(part.of.begin(), part.of.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most != part.of.end() && 2 * most->second >= part.count) {
        std::tie(one.of, one.sure) = most->first;
      }
      group.of.blocked.push_back(std::move(one));
    }
    std::stable_sort(group.of.blocked.begin(), group.of.blocked.end(), by_share);
  }

  const thread_samples& samples_;
  const named_stacks& stacks_;
  std::vector<group_samples> groups_;
};

}  // namespace

double thread_activity::blocked_share() const {
  return std::max(0.0, 1 - running - run_queue);
}

std::vector<thread_activity> activity_of(const thread_samples& samples,
                                         const named_stacks& stacks) {
  return analysis(samples, stacks).take();
}

std::size_t subject_of(const std::vector<thread_activity>& groups) {
  constexpr double most = 0.8;
  std::size_t subject = 0;
  if (groups.empty() || groups[0].blocked.empty() ||
      groups[0].blocked.front().reason != wait_reason::process ||
      groups[0].blocked.front().share < most) {
    return subject;
  }
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (!groups[i].is_process) continue;
    if (subject == 0 || groups[i].time_s > groups[subject].time_s) subject = i;
  }
  return subject;
}

std::string shown_group(const thread_activity& group) {
  if (group.is_main) return "main thread";
  const std::string program = printable_line(group.of_program);
  if (group.is_process) {
    const std::string name = printable_line(group.start.substr(8));
    const std::string path = program.empty() || program == name ? "" : " (" + program + ')';
    return (group.threads == 1 ? "the process `" : std::to_string(group.threads) + " processes `") +
           name + '`' + path;
  }
  std::string text =
      (group.threads == 1 ? "1 thread in " : std::to_string(group.threads) + " threads in ") +
      (group.lambda.empty() ? "`" : printable_line(group.lambda) + " of `") +
      printable_line(short_function(group.function)) + '`';
  if (group.processes > 1) {
    text += " of " + std::to_string(group.processes) + " processes";
    if (!program.empty()) text += " `" + program + '`';
  } else if (!program.empty()) {
    text += " of `" + program + '`';
  }
  return text;
}

std::string unique_name(const thread_activity& group) {
  return group.of_program.empty() ? group.start : group.start + " of " + group.of_program;
}

}  // namespace lotus::tool
