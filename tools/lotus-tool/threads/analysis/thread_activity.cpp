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
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

/// What the threads of a group have in common: whether they are the main thread, main threads of
/// other processes (1) or started threads (2); their program; their function or name.
struct group_key {
  int kind = 0;
  std::string program;
  std::string start;

  friend bool operator<(const group_key& a, const group_key& b) {
    return std::tie(a.kind, a.program, a.start) < std::tie(b.kind, b.program, b.start);
  }
};

/// Assigns threads to groups by their program and the function with which they began.
class grouping {
 public:
  grouping(const thread_samples& samples, const named_stacks& stacks) : samples_(samples) {
    for (const sampled_process& p : samples.processes) program_[p.pid] = p.program;
    std::vector<std::map<std::string, std::uint64_t>> starts(samples.threads.size());
    seen_.resize(samples.threads.size());
    for (const thread_sample& s : samples.samples) {
      seen_[s.thread] = true;
      const std::string start = start_of_thread(stacks.of(s.stack));
      if (!start.empty()) starts[s.thread][start] += s.count;
    }
    for (std::size_t i = 0; i < samples.threads.size(); ++i) {
      if (samples.threads[i].wait_samples > 0 || samples.threads[i].span_ns > 0) seen_[i] = true;
      key_.push_back(key_of(i, starts[i]));
    }
  }

  bool is_seen(std::size_t thread) const { return seen_[thread]; }
  const group_key& key(std::size_t thread) const { return key_[thread]; }

 private:
  group_key key_of(std::size_t thread, const std::map<std::string, std::uint64_t>& starts) const {
    const sampled_thread& t = samples_.threads[thread];
    const auto known = program_.find(t.pid);
    const std::string program = known == program_.end() ? std::string() : known->second;
    if (thread == 0) return {0, program, "main"};
    if (t.pid == t.tid) return {1, program, "main of " + t.name};
    const auto most =
        std::max_element(starts.begin(), starts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return {2, program, most != starts.end() ? most->first : t.name};
  }

  const thread_samples& samples_;
  std::vector<bool> seen_;
  std::vector<group_key> key_;
  std::map<std::uint32_t, std::string> program_;  // of each process
};

/// The samples of a group.
struct collected {
  thread_activity of;
  std::uint64_t waits = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t queue_ns = 0;
  std::set<std::uint32_t> processes;
  std::vector<const thread_sample*> running;
  std::vector<const thread_sample*> waiting;
  // Classes of the called functions, with their modules.
  std::set<std::pair<std::string, std::string>> classes;
};

bool by_share(const blocked_part& a, const blocked_part& b) {
  return a.share > b.share;
}

class analysis {
 public:
  analysis(const thread_samples& samples, const named_stacks& stacks)
      : samples_(samples), stacks_(stacks), grouping_(samples, stacks) {
    collect();
    for (collected& group : groups_) {
      add_states(group);
      add_functions(group);
    }
    name_programs();
    // What a group waits for depends on what the others do.
    for (std::size_t i = 0; i < groups_.size(); ++i) add_blocked(i);
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
    std::map<group_key, std::size_t> known;
    group_of_.resize(samples_.threads.size());
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (!grouping_.is_seen(i)) continue;
      const sampled_thread& t = samples_.threads[i];
      const auto [at, is_new] = known.try_emplace(grouping_.key(i), groups_.size());
      if (is_new) groups_.emplace_back();
      collected& group = groups_[at->second];
      group_of_[i] = at->second;
      group_of_tid_[t.tid] = at->second;
      group.of.start = grouping_.key(i).start;
      group.of.program = grouping_.key(i).program;
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
      collected& group = groups_[group_of_[s.thread]];
      (s.waits ? group.waiting : group.running).push_back(&s);
      if (!s.waits) group.of.cpu_samples += s.count;
      for (const source_place& call : stacks_.of(s.stack)) {
        if (!is_of_runtime(call)) group.classes.emplace(class_of(call.function), call.module);
      }
    }
  }

  /// Sets `of_program` of groups that have the name of another one, or belong to another program
  /// than the main thread.
  void name_programs() {
    for (collected& group : groups_) {
      thread_activity& of = group.of;
      if (of.is_main) continue;
      bool is_needed = !of.is_process && of.program != groups_.front().of.program;
      bool same_file = false;  // whether the programs' files have the same name
      for (const collected& other : groups_) {
        if (other.of.program == of.program) continue;
        is_needed = is_needed || (other.of.start == of.start && !other.of.is_main &&
                                  other.of.is_process == of.is_process);
        same_file = same_file || file_name(other.of.program) == file_name(of.program);
      }
      if (is_needed) of.of_program = same_file ? of.program : file_name(of.program);
    }
  }

  void add_states(collected& group) const {
    thread_activity& of = group.of;
    constexpr double min_span_s = 0.1;
    if (of.wait_samples == 0 && static_cast<double>(group.span_ns) * 1e-9 < min_span_s) {
      // Only CPU samples have seen these threads, which were short-lived.
      of.running = 1;
      of.time_s = static_cast<double>(of.cpu_samples * samples_.interval_ns) * 1e-9;
      return;
    }
    // The threads' clocks are exact, whereas there may be too few wait samples.
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

  void add_functions(collected& group) const {
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

  void add_blocked(std::size_t index) {
    collected& group = groups_[index];
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
      if (const auto of = waited_for(*s, index)) part.of[*of] += s->count;
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

  /// Returns the group that a waiting thread waits for, and whether this is sure.
  std::optional<std::pair<std::size_t, bool>> waited_for(const thread_sample& s,
                                                         std::size_t own_group) const {
    const auto holder = group_of_tid_.find(s.holder);
    if (s.holder != 0 && holder != group_of_tid_.end()) return std::pair(holder->second, true);
    if (s.reason == wait_reason::condition && s.address != 0) {
      if (const auto near = group_at_same_object(s, own_group)) return std::pair(*near, true);
      if (const auto user = group_with_same_class(s, own_group)) return std::pair(*user, true);
      if (const auto only = only_other_worker(s, own_group)) return std::pair(*only, false);
    }
    if (s.reason == wait_reason::process) {
      if (const auto only = only_process(own_group)) return std::pair(*only, false);
    }
    if (s.reason == wait_reason::pipe) {
      if (const auto only = only_worker_of_others(s)) return std::pair(*only, false);
      if (const auto only = only_other_worker(s, own_group)) return std::pair(*only, false);
    }
    return std::nullopt;
  }

  std::uint32_t pid_of(const thread_sample& s) const { return samples_.threads[s.thread].pid; }

  /// Returns the group, other than `own_group`, whose threads wait at another word of the object
  /// that contains the condition; nullopt unless there is exactly one.
  std::optional<std::size_t> group_at_same_object(const thread_sample& s,
                                                  std::size_t own_group) const {
    constexpr std::uint64_t object_bytes = 256;
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i == own_group) continue;
      for (const thread_sample* other : groups_[i].waiting) {
        const std::uint64_t distance =
            std::max(other->address, s.address) - std::min(other->address, s.address);
        if (other->address != 0 && distance <= object_bytes && pid_of(*other) == pid_of(s)) {
          found.insert(i);
          break;
        }
      }
    }
    if (found.size() != 1) return std::nullopt;
    return *found.begin();
  }

  /// Returns the group, other than `own_group`, that calls functions of the class in whose function
  /// the thread waits, such as Loader::put if it waits in Loader::next; nullopt unless there is
  /// exactly one.
  std::optional<std::size_t> group_with_same_class(const thread_sample& s,
                                                   std::size_t own_group) const {
    const named_stack& stack = stacks_.of(s.stack);
    if (stack.empty()) return std::nullopt;
    const source_place& place = stack[waiting_call(stack)];
    const std::string scope = class_of(place.function);
    if (scope.empty()) return std::nullopt;
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i != own_group && groups_[i].classes.count({scope, place.module}) != 0) found.insert(i);
    }
    return only_group(found);
  }

  bool works(std::size_t group) const {
    const thread_activity& of = groups_[group].of;
    return of.cpu_samples >= 10 ||
           (of.running + of.run_queue) * static_cast<double>(of.wait_samples) > 10;
  }

  static std::optional<std::size_t> only_group(const std::set<std::size_t>& found) {
    if (found.size() != 1) return std::nullopt;
    return *found.begin();
  }

  /// Returns the only group of threads of the same process that does work.
  std::optional<std::size_t> only_other_worker(const thread_sample& s,
                                               std::size_t own_group) const {
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (!grouping_.is_seen(i) || samples_.threads[i].pid != pid_of(s)) continue;
      const std::size_t group = group_of_[i];
      if (group != own_group && !groups_[group].of.is_main && works(group)) found.insert(group);
    }
    return only_group(found);
  }

  /// Returns the only group of main threads of other processes.
  std::optional<std::size_t> only_process(std::size_t own_group) const {
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i != own_group && groups_[i].of.is_process) found.insert(i);
    }
    return only_group(found);
  }

  /// Returns the only group of threads of other processes that does work.
  std::optional<std::size_t> only_worker_of_others(const thread_sample& s) const {
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (!grouping_.is_seen(i) || samples_.threads[i].pid == pid_of(s)) continue;
      if (works(group_of_[i])) found.insert(group_of_[i]);
    }
    return only_group(found);
  }

  const thread_samples& samples_;
  const named_stacks& stacks_;
  grouping grouping_;
  std::vector<collected> groups_;
  std::vector<std::size_t> group_of_;  // group of each thread, by the thread's index
  std::map<std::uint32_t, std::size_t> group_of_tid_;
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
  if (group.is_main) return "main";
  const std::string program = printable_line(group.of_program);
  if (group.is_process) {
    const std::string name = printable_line(group.start.substr(8));
    const std::string path = program.empty() || program == name ? "" : " (" + program + ')';
    return (group.threads == 1 ? "the process `" : std::to_string(group.threads) + " processes `") +
           name + '`' + path;
  }
  const bool is_lambda = group.start.rfind("a lambda in ", 0) == 0;
  const std::string start =
      printable_line(short_function(is_lambda ? group.start.substr(12) : group.start));
  std::string text =
      (group.threads == 1 ? "1 thread" : std::to_string(group.threads) + " threads") +
      (is_lambda ? " in a lambda in `" : " in `") + start + '`';
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
