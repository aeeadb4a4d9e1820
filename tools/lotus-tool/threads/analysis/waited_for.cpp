#include "threads/analysis/waited_for.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

// Threads wait at one of two neighboring words of a condition variable of glibc. Waits at addresses
// that are at most this far apart can be at the same condition variable.
constexpr std::uint64_t condition_bytes = 8;
// Waits at addresses that are at most this far apart can be in the same object, such as a queue.
constexpr std::uint64_t object_bytes = 256;
// Waits at addresses that are farther apart than this are in different objects.
constexpr std::uint64_t max_object_bytes = 4096;
std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
  return std::max(a, b) - std::min(a, b);
}

/// Returns the name of the function of a call. A lambda has the name of the function that contains
/// it if that function is among its callers. Otherwise it is a task, such as one for a pool of
/// threads, and has its own name.
std::string name_of_call(const named_stack& stack, std::size_t call) {
  std::string containing = containing_function(stack[call].function);
  for (std::size_t i = call + 1; i < stack.size(); ++i) {
    if (stack[i].function == containing) return containing;
  }
  return stack[call].function;
}

}  // namespace

waited_for::waited_for(const thread_samples& samples, const named_stacks& stacks,
                       const std::vector<group_samples>& groups, const seen_together& together)
    : samples_(samples), stacks_(stacks), groups_(groups), together_(together) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::size_t thread : groups[i].of.members) {
      group_of_tid_[samples.threads[thread].tid] = i;
    }
    add_calls(groups[i]);
  }
}

void waited_for::add_calls(const group_samples& group) {
  group_calls calls;
  const auto add_classes = [&](const thread_sample& s, std::size_t without) {
    const named_stack& stack = stacks_.of(s.stack);
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (i == without || is_of_runtime(stack[i])) continue;
      calls.classes[{class_of(stack[i].function), stack[i].module}].insert(name_of_call(stack, i));
    }
  };
  for (const thread_sample* s : group.running) {
    add_classes(*s, stacks_.of(s->stack).size());
  }
  for (const thread_sample* s : group.waiting) {
    const named_stack& stack = stacks_.of(s->stack);
    function_of(s->stack);  // wait_of() needs the function to be known
    const object_wait wait = wait_of(*s);
    calls.waits.insert(wait);
    // If the address of the wait is known, it shows which object the waiting call uses, so the call
    // is left out here.
    add_classes(*s, wait.address != 0 ? waiting_call(stack) : stack.size());
  }
  calls_.push_back(std::move(calls));
}

/// Returns the index of the function in which a thread with this stack waits.
std::size_t waited_for::function_of(std::uint32_t stack) {
  const auto [at, is_new] = function_of_stack_.try_emplace(stack, 0);
  if (!is_new) return at->second;
  const named_stack& calls = stacks_.of(stack);
  waiting_function function;
  if (!calls.empty()) {
    const source_place& place = calls[waiting_call(calls)];
    function = {containing_function(place.function), place.module, class_of(place.function),
                place.has_object && !is_lambda(place)};
    // An anonymous namespace does not show that functions belong together.
    if (ends_with(function.scope, "(anonymous namespace)")) function.scope.clear();
  }
  const auto [known, is_unknown] =
      known_functions_.try_emplace({function.name, function.module}, functions_.size());
  if (is_unknown) functions_.push_back(function);
  if (function.in_class) functions_[known->second].in_class = true;
  return at->second = known->second;
}

/// Describes a wait. The address is 0 if the object belongs to the C++ library, such as the state
/// of a std::future, because its address does not identify an object of the program.
waited_for::object_wait waited_for::wait_of(const thread_sample& s) const {
  const bool is_of_library = waits_for_future(stacks_.of(s.stack));
  return {pid_of(s), is_of_library ? 0 : s.address, function_of_stack_.at(s.stack),
          s.reason == wait_reason::condition};
}

/// Returns how likely it is that two waits are at the two ends of one object, such as a queue: in
/// the same object, but of threads that use it in different ways. Threads that wait in the same
/// function do not wait for each other: they wait for the same event, or in different objects.
waited_for::evidence waited_for::at_same_object(const object_wait& own,
                                                const object_wait& other) const {
  const std::uint64_t apart = distance(own.address, other.address);
  if (own.address == 0 || own.pid != other.pid || apart > object_bytes) return evidence::none;
  const waiting_function& a = functions_[own.function];
  const waiting_function& b = functions_[other.function];
  if (a.name.empty() || b.name.empty()) return evidence::weak;
  if (own.function == other.function) return evidence::none;
  if (apart <= condition_bytes) return evidence::sure;
  if (a.scope.empty()) return evidence::weak;
  if (a.scope == b.scope) return a.in_class || b.in_class ? evidence::sure : evidence::weak;
  const bool same_template = without_arguments(a.scope) == without_arguments(b.scope);
  return same_template ? evidence::none : evidence::weak;
}

/// `own` is a wait in a function of a class. Returns whether threads also wait in another object of
/// this class.
bool waited_for::several_objects(const object_wait& own) const {
  const waiting_function& function = functions_[own.function];
  for (const group_calls& calls : calls_) {
    for (const object_wait& other : calls.waits) {
      const waiting_function& one = functions_[other.function];
      if (own.address == 0 || other.address == 0 || other.pid != own.pid ||
          one.scope != function.scope || one.module != function.module) {
        continue;
      }
      const std::uint64_t apart = distance(own.address, other.address);
      if (apart > max_object_bytes) return true;
      const bool is_same_wait = other.function == own.function && other.for_condition;
      if (is_same_wait && apart > condition_bytes) return true;
    }
  }
  return false;
}

/// `own` is a wait in a function of a class. Returns how likely it is that a group uses the object
/// in which `own` waits, judged by the other functions of this class that the group calls.
waited_for::evidence waited_for::in_same_class(const object_wait& own, std::size_t group,
                                               bool several) const {
  const waiting_function& function = functions_[own.function];
  if (function.scope.empty()) return evidence::none;
  const auto called = calls_[group].classes.find({function.scope, function.module});
  if (called != calls_[group].classes.end()) {
    const std::set<std::string>& names = called->second;
    if (names.size() > names.count(function.name)) {
      return function.in_class && !several ? evidence::sure : evidence::weak;
    }
  }
  for (const object_wait& other : calls_[group].waits) {
    const waiting_function& one = functions_[other.function];
    if (other.pid == own.pid && one.scope == function.scope && one.module == function.module &&
        other.function != own.function && own.address != 0 &&
        distance(own.address, other.address) <= max_object_bytes) {
      return evidence::weak;
    }
  }
  return evidence::none;
}

/// Returns for each group during which share of the waits that equal `own` it worked; empty if that
/// is unknown.
std::vector<double> waited_for::working_during(const object_wait& own,
                                               std::size_t own_group) const {
  const auto [at, is_new] = working_.try_emplace({own_group, own.pid, own.address, own.function});
  if (!is_new) return at->second;
  return at->second = together_.working_during([&](std::size_t index) {
    const thread_sample& s = samples_.samples[index];
    if (groups_[own_group].of.members.count(s.thread) == 0) return false;
    const object_wait other = wait_of(s);
    return other.function == own.function && other.address == own.address && other.pid == own.pid;
  });
}

/// Returns the group that uses the object in which `own` waits, or that calls functions of the
/// object's class; nullopt if this is unclear. If any group works while `own` waits, only such
/// groups count, because only they can end the wait.
std::optional<waited_for::target> waited_for::user_of_object(
    const object_wait& own, std::size_t own_group, const std::vector<double>& working) const {
  constexpr double mostly = 0.6;
  const bool several = several_objects(own);
  std::vector<evidence> found(groups_.size(), evidence::none);
  std::vector<const char*> why(groups_.size(), "");
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i == own_group) continue;
    for (const object_wait& other : calls_[i].waits) {
      const bool same = distance(own.address, other.address) <= condition_bytes;
      evidence one = at_same_object(own, other);
      if (several && !same) one = std::min(one, evidence::weak);
      if (one > found[i]) why[i] = "it waits at a neighboring address";
      found[i] = std::max(found[i], one);
    }
    const evidence by_class = in_same_class(own, i, several);
    if (by_class > found[i]) why[i] = "it uses the same class";
    found[i] = std::max(found[i], by_class);
  }
  const bool any_works =
      std::any_of(working.begin(), working.end(), [](double share) { return share >= mostly; });
  const auto only = [&](evidence wanted) -> std::optional<target> {
    std::optional<target> one;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (found[i] != wanted || (any_works && working[i] < mostly)) continue;
      if (one) return std::nullopt;
      one = target{i, wanted == evidence::sure, wanted == evidence::sure ? "" : why[i]};
    }
    return one;
  };
  const auto sure = only(evidence::sure);
  if (sure || (!working.empty() && !any_works)) return sure;
  return only(evidence::weak);
}

std::optional<waited_for::target> waited_for::of(const thread_sample& s,
                                                 std::size_t own_group) const {
  const auto holder = group_of_tid_.find(s.holder);
  if (s.holder != 0 && holder != group_of_tid_.end()) return target{holder->second, true};
  if (is_outside(samples_, s)) return std::nullopt;
  if (s.reason == wait_reason::process) return only_process(own_group);
  if (is_channel(s.reason)) return user_of_channel(s, own_group);
  // A thread that never woke up waits for an event that did not happen, such as a request to end.
  const bool woke = samples_.threads[s.thread].woke;
  if (s.reason != wait_reason::condition || s.address == 0 || !woke) return std::nullopt;
  const object_wait own = wait_of(s);
  const std::vector<double> working = working_during(own, own_group);
  const auto only = only_worker_of(working);
  const auto user = user_of_object(own, own_group, working);
  if (user && (user->sure || !only || *only != user->group)) return user;
  // That others of its own group work meanwhile does not show that they end the wait: an idle
  // thread of a pool waits for whoever gives it work.
  if (!only || *only == own_group) return std::nullopt;
  return target{*only, false, "nobody else works meanwhile"};
}

/// Returns the group of main threads of other processes, if there is only one besides `own_group`.
std::optional<waited_for::target> waited_for::only_process(std::size_t own_group) const {
  std::optional<target> only;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i == own_group || !groups_[i].of.is_process) continue;
    if (only) return std::nullopt;
    only = target{i, false, "there is no other process"};
  }
  return only;
}

/// Returns the group that writes to the pipe or socket from which a thread reads, or the other way
/// round:
/// among the threads of the processes that have opened its other end, the only group, or the only
/// one that works during these waits.
std::optional<waited_for::target> waited_for::user_of_channel(const thread_sample& s,
                                                              std::size_t own_group) const {
  constexpr double often = 0.5;
  const std::set<std::uint32_t> others = at_other_end(samples_, s);
  const bool is_own = others.count(pid_of(s)) != 0;
  const std::vector<double> working = working_during(wait_of(s), own_group);
  std::vector<target> all;
  std::vector<target> workers;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::set<std::uint32_t>& processes = groups_[i].processes;
    const bool is_there = std::any_of(processes.begin(), processes.end(),
                                      [&](std::uint32_t pid) { return others.count(pid) != 0; });
    if (!is_there || (is_own && i == own_group)) continue;
    all.push_back({i, true});
    if (working.empty() || working[i] < often) continue;
    const bool is_one = !is_own && s.reason != wait_reason::poll;  // one channel, not several
    workers.push_back({i, is_one, is_one ? "" : "nobody else works meanwhile"});
  }
  if (all.size() == 1) return all.front();
  return workers.size() == 1 ? std::optional(workers.front()) : std::nullopt;
}

}  // namespace lotus::tool
