#include "threads/analysis/thread_activity.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/printable.hpp"
#include "threads/analysis/seen_together.hpp"
#include "threads/analysis/started_threads.hpp"
#include "threads/analysis/waited_for.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

bool by_share(const blocked_part& a, const blocked_part& b) {
  return a.share > b.share;
}

/// Returns whether a call says nothing about what a thread does: one of the runtime, or of a
/// function without a name that an exported function of the same library called.
bool is_passed_over(const named_stack& stack, std::size_t call) {
  if (is_of_runtime(stack[call])) return true;
  std::size_t i = call;
  while (i < stack.size() && !stack[i].has_name && stack[i].module == stack[call].module) ++i;
  return i > call && i < stack.size() && stack[i].module == stack[call].module;
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
    find_wrappers();
    const seen_together together(samples, group_of_, groups_.size());
    const waited_for others(samples, stacks, groups_, together);
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
    group_of_.assign(samples_.threads.size(), seen_together::no_group);
    std::vector<thread_start> starts;
    const auto add_to_group = [&](std::size_t i) {
      const auto [at, is_new] = known.try_emplace(found.key(i), groups_.size());
      if (is_new) {
        groups_.emplace_back();
        starts.push_back(found.start(found.key(i)));
        thread_activity& of = groups_.back().of;
        of.program = found.key(i).program;
        of.is_main = i == 0;
        of.is_process = i != 0 && samples_.threads[i].pid == samples_.threads[i].tid;
      }
      add_member(at->second, i);
    };
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (found.is_seen(i) && found.is_named(i)) add_to_group(i);
    }
    add_unnamed();
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (found.is_seen(i) && group_of_[i] == seen_together::no_group) add_to_group(i);
    }
    add_unnamed();  // perhaps now to threads that are only known by their given name
    std::vector<std::uint64_t> cpu_samples(samples_.threads.size());
    for (const thread_sample& s : samples_.samples) {
      group_samples& group = groups_[group_of_[s.thread]];
      (s.waits ? group.waiting : group.running).push_back(&s);
      if (s.waits) continue;
      group.of.cpu_samples += s.count;
      cpu_samples[s.thread] += s.count;
    }
    name_starts(starts);
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      if (group_of_[i] == seen_together::no_group) continue;
      const sampled_thread& t = samples_.threads[i];
      // A thread may have run after its times were read for the last time. Otherwise these times
      // are exact, and samples are not: on a virtual machine, they count time that others had.
      constexpr double nearly_all = 0.9;
      const bool is_read =
          t.span_ns > 0 && static_cast<double>(t.span_ns) >= nearly_all * lifetime_ns(t);
      const std::uint64_t sampled_ns = cpu_samples[i] * samples_.interval_ns;
      groups_[group_of_[i]].of.cpu_s +=
          1e-9 * static_cast<double>(is_read ? t.cpu_ns : std::max(t.cpu_ns, sampled_ns));
    }
    for (group_samples& group : groups_) add_lifetimes(group);
    add_unread_times();
  }

  /// Adds the CPU time that nobody else used to the threads that were too short-lived to read
  /// theirs, if these are in one group.
  void add_unread_times() {
    double left_s = 1e-9 * static_cast<double>(samples_.all_cpu_ns);
    thread_activity* only = nullptr;
    std::size_t several = 0;
    for (group_samples& group : groups_) {
      left_s -= group.of.cpu_s;
      if (group.of.unsampled == 0) continue;
      only = &group.of;
      ++several;
    }
    if (several == 1 && left_s > 0) only->cpu_s = std::min(only->cpu_s + left_s, only->time_s);
  }

  void add_member(std::size_t index, std::size_t thread) {
    const sampled_thread& t = samples_.threads[thread];
    group_samples& group = groups_[index];
    group_of_[thread] = index;
    ++group.of.threads;
    group.of.members.insert(thread);
    group.processes.insert(t.pid);
    group.of.processes = group.processes.size();
    group.of.wait_samples += t.wait_samples;
    group.span_ns += t.span_ns;
    group.waits += t.waits;
    group.cpu_ns += t.cpu_ns;
    group.queue_ns += t.queue_ns;
  }

  /// Adds threads that were too short-lived to see how they began to the group of those that the
  /// same group of threads started, if nearly all of these are in one group.
  void add_unnamed() {
    constexpr double nearly_all = 0.8;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> thread_of;
    for (std::size_t i = 0; i < samples_.threads.size(); ++i) {
      thread_of[{samples_.threads[i].pid, samples_.threads[i].tid}] = i;
    }
    const auto starter = [&](std::size_t thread) {
      const sampled_thread& t = samples_.threads[thread];
      const auto at = thread_of.find({t.pid, t.parent});
      return t.parent == 0 || at == thread_of.end() ? +seen_together::no_group
                                                    : group_of_[at->second];
    };
    std::map<std::size_t, std::map<std::size_t, double>> started;  // groups by starter's group
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      if (group_of_[i] != seen_together::no_group) started[starter(i)][group_of_[i]] += 1;
    }
    started.erase(+seen_together::no_group);
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      if (group_of_[i] != seen_together::no_group || samples_.threads[i].started_ns == 0) continue;
      const auto found = started.find(starter(i));
      if (found == started.end()) continue;
      const auto most = most_frequent(found->second);
      double sum = 0;
      for (const auto& [group, count] : found->second) sum += count;
      if (most->second < nearly_all * sum) continue;
      add_member(most->first, i);
      if (samples_.threads[i].wait_samples == 0) ++groups_[most->first].of.unsampled;
    }
  }

  double lifetime_ns(const sampled_thread& t) const {
    const std::uint64_t end = t.ended_ns != 0 ? t.ended_ns : samples_.duration_ns;
    return end < t.started_ns ? 0 : static_cast<double>(end - t.started_ns);
  }

  /// Sets the times for which the threads of a group existed, and how many existed at once.
  void add_lifetimes(group_samples& group) const {
    std::vector<std::pair<std::uint64_t, int>> changes;
    for (const std::size_t thread : group.of.members) {
      const sampled_thread& t = samples_.threads[thread];
      const std::uint64_t end = t.ended_ns != 0 ? t.ended_ns : samples_.duration_ns;
      if (end < t.started_ns) continue;
      group.of.time_s += static_cast<double>(end - t.started_ns) * 1e-9;
      changes.emplace_back(t.started_ns, 1);
      changes.emplace_back(end, -1);
    }
    std::sort(changes.begin(), changes.end());
    int now = 0;
    int most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, now += change);
    group.of.at_once = static_cast<std::size_t>(most);
    // Files of earlier versions contain only the time between two readings.
    if (samples_.duration_ns == 0) group.of.time_s = static_cast<double>(group.span_ns) * 1e-9;
    group.of.cpu_s = std::min(group.of.cpu_s, group.of.time_s);
  }

  /// Finds functions of no class, such as a wrapper of pthread_cond_wait, in which threads wait for
  /// several callers. Then the callers say more.
  void find_wrappers() {
    std::map<std::string, std::set<std::string>> callers;
    for (const group_samples& group : groups_) {
      for (const thread_sample* s : group.waiting) {
        const named_stack& stack = stacks_.of(s->stack);
        std::size_t at = stack.empty() ? 0 : waiting_call(stack);
        for (std::size_t i = at + 1; i < stack.size(); ++i) {
          if (is_passed_over(stack, i)) continue;
          if (class_of(stack[at].function).empty()) {
            callers[stack[at].function].insert(stack[i].function);
          }
          at = i;
        }
      }
    }
    for (const auto& [function, by] : callers) {
      if (by.size() > 1) wrappers_.insert(function);
    }
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
      of.start = of.is_process       ? "main of " + of.function
                 : of.lambda.empty() ? of.function
                                     : of.lambda + " in " + of.function;
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
    const double span_s = static_cast<double>(group.span_ns) * 1e-9;
    if (of.wait_samples == 0 && span_s < min_span_s) {
      // These threads were so short-lived that they are only in CPU samples. Assume that they
      // always ran.
      of.running = 1;
      if (samples_.duration_ns > 0) return;
      of.time_s = static_cast<double>(of.cpu_samples * samples_.interval_ns) * 1e-9;
      return;
    }
    // Calculate the shares from the threads' CPU times, which are exact, and not from the numbers
    // of wait samples, of which there may be too few.
    const auto ran = static_cast<double>(group.cpu_ns);
    const auto queued = static_cast<double>(group.queue_ns);
    double awake = span_s > 0 ? std::min(1.0, (ran + queued) * 1e-9 / span_s) : 0;
    if (span_s < min_span_s) {
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
    std::map<std::tuple<std::string, std::string, std::string>, found> functions;
    for (const thread_sample* s : group.running) {
      const named_stack& stack = stacks_.of(s->stack);
      if (stack.empty()) continue;
      const source_place place = working_place(stack, group.of.program);
      found& f = functions[{place.function, place.module, place.callee}];
      f.count += s->count;
      f.has_name = place.has_name;
      f.lines[{place.file, place.line}] += s->count;
    }
    for (const auto& [name, f] : functions) {
      function_share one;
      std::tie(one.function.function, one.function.module, one.function.callee) = name;
      std::tie(one.function.file, one.function.line) = most_frequent(f.lines)->first;
      one.function.has_name = f.has_name;
      one.share = static_cast<double>(f.count) / static_cast<double>(group.of.cpu_samples);
      group.of.functions.push_back(std::move(one));
    }
    std::stable_sort(
        group.of.functions.begin(), group.of.functions.end(),
        [](const function_share& a, const function_share& b) { return a.share > b.share; });
  }

  /// Returns the call in which a thread waits: the innermost one of a function of the program that
  /// is no wrapper.
  source_place waiting_place(const named_stack& stack) const {
    if (stack.empty()) return {};
    std::size_t at = waiting_call(stack);
    std::string callee;
    for (std::size_t i = at + 1; i < stack.size() && wrappers_.count(stack[at].function) != 0;
         ++i) {
      if (is_passed_over(stack, i)) continue;
      callee = stack[at].function;
      at = i;
    }
    source_place place = stack[at];
    place.callee = std::move(callee);
    return place;
  }

  void add_blocked(std::size_t index, const waited_for& others) {
    group_samples& group = groups_[index];
    struct found {
      std::map<std::optional<waited_for::target>, std::uint64_t> of;
      std::map<std::optional<waited_for::target>, std::set<std::size_t>> samples;
      std::uint64_t count = 0;
      bool outside = false;
      std::uint64_t descriptor = 0;
      bool for_several = false;
      bool for_thread_end = false;
    };
    std::map<std::tuple<wait_reason, std::string, source_place>, found> parts;
    std::uint64_t sum = 0;
    for (const thread_sample* s : group.waiting) {
      found& part = parts[{s->reason, s->what, waiting_place(stacks_.of(s->stack))}];
      const auto of = others.of(*s, index);
      part.of[of] += s->count;
      part.samples[of].insert(static_cast<std::size_t>(s - samples_.samples.data()));
      part.count += s->count;
      part.outside = is_outside(samples_, *s);
      part.descriptor = s->address;
      part.for_several = !s->polled.empty();
      part.for_thread_end = s->reason == wait_reason::condition && s->holder != 0;
      sum += s->count;
    }
    for (auto& [key, part] : parts) {
      // If the holder of a lock is mostly known, the other waits for it are distributed among the
      // known holders.
      const auto unknown = part.of.find(std::nullopt);
      const std::uint64_t without = unknown == part.of.end() ? 0 : unknown->second;
      const bool mostly_known = 2 * without <= part.count;
      for (const auto& [of, count] : part.of) {
        if (!of && mostly_known) continue;
        const std::uint64_t all = mostly_known ? part.count - without : part.count;
        blocked_part one;
        std::tie(one.reason, one.what, one.function) = key;
        one.outside = part.outside;
        one.descriptor = part.descriptor;
        one.for_several = part.for_several;
        one.for_thread_end = part.for_thread_end;
        one.share = group.of.blocked_share() * static_cast<double>(part.count) /
                    static_cast<double>(sum) * static_cast<double>(count) /
                    static_cast<double>(all);
        one.samples = std::move(part.samples[of]);
        if (of) {
          one.of = of->group;
          one.sure = of->sure;
          one.why = of->why;
        }
        group.of.blocked.push_back(std::move(one));
      }
    }
    std::stable_sort(group.of.blocked.begin(), group.of.blocked.end(), by_share);
  }

  const thread_samples& samples_;
  const named_stacks& stacks_;
  std::vector<group_samples> groups_;
  std::vector<std::size_t> group_of_;  // index of the group of each thread
  std::set<std::string> wrappers_;     // functions in which threads wait for several callers
};

}  // namespace

double thread_activity::blocked_share() const {
  return std::max(0.0, 1 - running - run_queue);
}

bool thread_activity::is_sampled() const {
  constexpr std::uint64_t enough = 20;
  // Of many short threads, those that live longest have most of the wait samples.
  return 2 * unsampled <= threads || cpu_samples >= enough;
}

std::vector<thread_activity> activity_of(const thread_samples& samples,
                                         const named_stacks& stacks) {
  return analysis(samples, stacks).take();
}

std::vector<std::size_t> groups_of_threads(const thread_samples& samples,
                                           const std::vector<thread_activity>& groups) {
  std::vector<std::size_t> of(samples.threads.size(), seen_together::no_group);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::size_t thread : groups[i].members) of[thread] = i;
  }
  return of;
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
    const std::string name = printable_line(group.function);
    const std::string path = program.empty() || program == name ? "" : " (" + program + ')';
    return (group.threads == 1 ? "the process `" : std::to_string(group.threads) + " processes `") +
           name + '`' + path;
  }
  // The start of threads that end soon is often unknown.
  if (group.function.empty()) {
    return std::to_string(group.threads) + " short thread" + (group.threads == 1 ? "" : "s");
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
