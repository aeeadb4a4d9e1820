#include "threads/analysis/waited_for.hpp"

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

#include "base/text.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

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
// While threads wait for a group, that group works. So it must have had time to work during at
// least this share of their waits: not during all of them, because times are estimated from
// samples.
constexpr double min_time = 0.9;

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
                       const std::vector<group_samples>& groups)
    : samples_(samples), stacks_(stacks), groups_(groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::size_t thread : groups[i].of.members) {
      group_of_tid_[samples.threads[thread].tid] = i;
    }
    add_calls(groups[i]);
  }
}

void waited_for::add_calls(const group_samples& group) {
  group_calls calls;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::size_t, bool>, std::uint64_t> waits;
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
    const std::size_t function = function_of(s->stack);
    const bool for_condition = s->reason == wait_reason::condition;
    waits[{pid_of(*s), wait_of(*s).address, function, for_condition}] += s->count;
    calls.all_waits += s->count;
    if (for_condition) calls.condition_waits += s->count;
    // If the address of the wait is known, it shows which object the waiting call uses, so the call
    // is left out here.
    add_classes(*s, wait_of(*s).address != 0 ? waiting_call(stack) : stack.size());
  }
  for (const auto& [key, count] : waits) {
    const auto& [pid, address, function, for_condition] = key;
    calls.waits.push_back({pid, address, function, for_condition, count});
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
          s.reason == wait_reason::condition, s.count};
}

/// Returns how likely it is that two waits are at the two ends of one object, such as a queue: in
/// the same object, but of threads that use it in different ways. Threads that wait in the same
/// function do not wait for each other: they wait for the same event, or in different objects.
waited_for::evidence waited_for::at_same_object(const object_wait& own,
                                                const object_wait& other) const {
  const std::uint64_t apart = distance(own.address, other.address);
  if (own.address == 0 || other.address == 0 || own.pid != other.pid || apart > object_bytes) {
    return evidence::none;
  }
  const waiting_function& a = functions_[own.function];
  const waiting_function& b = functions_[other.function];
  if (a.name.empty() || b.name.empty()) return evidence::weak;
  if (own.function == other.function) return evidence::none;
  if (apart <= condition_bytes) return evidence::sure;
  if (a.scope.empty() || b.scope.empty()) return evidence::weak;
  if (a.scope == b.scope) return a.in_class || b.in_class ? evidence::sure : evidence::weak;
  const bool same_template = without_arguments(a.scope) == without_arguments(b.scope);
  return same_template ? evidence::none : evidence::weak;
}

double waited_for::seconds_at(const object_wait& own, std::size_t group) const {
  const group_calls& calls = calls_[group];
  std::uint64_t count = 0;
  for (const object_wait& other : calls.waits) {
    if (at_same_object(own, other) != evidence::none) count += other.count;
  }
  if (count == 0) return 0;
  const thread_activity& of = groups_[group].of;
  return of.time_s * of.blocked_share() * static_cast<double>(count) /
         static_cast<double>(calls.all_waits);
}

double waited_for::needed_seconds(const object_wait& own, std::size_t own_group) const {
  const group_calls& calls = calls_[own_group];
  std::uint64_t count = 0;
  for (const object_wait& one : calls.waits) {
    if (one.function == own.function) count += one.count;
  }
  const thread_activity& of = groups_[own_group].of;
  if (calls.all_waits == 0 || of.threads == 0) return 0;
  return of.time_s / static_cast<double>(of.threads) * of.blocked_share() *
         static_cast<double>(count) / static_cast<double>(calls.all_waits);
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
        other.function != own.function && own.address != 0 && other.address != 0 &&
        distance(own.address, other.address) <= max_object_bytes) {
      return evidence::weak;
    }
  }
  return evidence::none;
}

/// Returns the group that uses the object in which `own` waits, or that calls functions of the
/// object's class; nullopt if several groups do so.
std::optional<waited_for::target> waited_for::user_of_object(const object_wait& own,
                                                             std::size_t own_group) const {
  const bool several = several_objects(own);
  const double needed_s = needed_seconds(own, own_group);
  std::vector<evidence> by_object(groups_.size(), evidence::none);
  std::vector<evidence> by_class(groups_.size(), evidence::none);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i == own_group) continue;
    // Only a group that works while `own_group` waits can end these waits. Its threads have time to
    // work only while they do not wait near the address of `own` themselves. If this time is
    // shorter than the waits of `own_group`, skip the group: its threads use another object near
    // that address, such as the next queue in an array.
    if (groups_[i].of.time_s - seconds_at(own, i) < min_time * needed_s) continue;
    for (const object_wait& other : calls_[i].waits) {
      const bool same = distance(own.address, other.address) <= condition_bytes;
      evidence found = at_same_object(own, other);
      if (several && !same) found = std::min(found, evidence::weak);
      by_object[i] = std::max(by_object[i], found);
    }
    by_class[i] = in_same_class(own, i, several);
  }
  const auto only = [](const std::vector<evidence>& found, evidence wanted, bool& several_found) {
    const auto count = std::count(found.begin(), found.end(), wanted);
    several_found = several_found || count > 1;
    const auto at = std::find(found.begin(), found.end(), wanted) - found.begin();
    return count == 1
               ? std::optional(target(static_cast<std::size_t>(at), wanted == evidence::sure))
               : std::nullopt;
  };
  bool unclear = false;
  if (const auto group = only(by_object, evidence::sure, unclear)) return group;
  if (const auto group = only(by_class, evidence::sure, unclear)) return group;
  if (unclear) return std::nullopt;
  if (const auto group = only(by_object, evidence::weak, unclear)) return group;
  return unclear ? std::nullopt : only(by_class, evidence::weak, unclear);
}

std::optional<waited_for::target> waited_for::of(const thread_sample& s,
                                                 std::size_t own_group) const {
  const auto holder = group_of_tid_.find(s.holder);
  if (s.holder != 0 && holder != group_of_tid_.end()) return target(holder->second, true);
  if (s.reason == wait_reason::condition && s.address != 0) {
    const object_wait own = wait_of(s);
    if (const auto user = user_of_object(own, own_group)) return user;
    return only_other_worker(s, own_group, needed_seconds(own, own_group));
  }
  if (s.reason == wait_reason::process) return only_process(own_group);
  if (s.reason == wait_reason::pipe) {
    if (const auto only = only_worker_of_others(s)) return only;
    return only_other_worker(s, own_group, 0);
  }
  return std::nullopt;
}

bool waited_for::works(std::size_t group) const {
  const thread_activity& of = groups_[group].of;
  return of.cpu_samples >= 10 ||
         (of.running + of.run_queue) * static_cast<double>(of.wait_samples) > 10;
}

namespace {

/// If `found` contains exactly one group, returns this group, marked as not certain.
std::optional<waited_for::target> only_group(const std::set<std::size_t>& found) {
  if (found.size() != 1) return std::nullopt;
  return waited_for::target(*found.begin(), false);
}

}  // namespace

/// Returns the group of threads that does work in the process of the waiting thread, if there is
/// only one. Groups that wait for conditions nearly all the time do not count, because they have no
/// time for the work.
std::optional<waited_for::target> waited_for::only_other_worker(const thread_sample& s,
                                                                std::size_t own_group,
                                                                double needed_s) const {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const thread_activity& of = groups_[i].of;
    if (i == own_group || of.is_main || !works(i)) continue;
    const bool is_here = std::any_of(of.members.begin(), of.members.end(), [&](std::size_t thread) {
      return samples_.threads[thread].pid == pid_of(s);
    });
    const group_calls& calls = calls_[i];
    const double idle = calls.all_waits == 0
                            ? 0
                            : of.blocked_share() * static_cast<double>(calls.condition_waits) /
                                  static_cast<double>(calls.all_waits);
    if (is_here && of.time_s * (1 - idle) >= min_time * needed_s) found.insert(i);
  }
  return only_group(found);
}

/// Returns the group of main threads of other processes, if there is only one besides `own_group`.
std::optional<waited_for::target> waited_for::only_process(std::size_t own_group) const {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (i != own_group && groups_[i].of.is_process) found.insert(i);
  }
  return only_group(found);
}

/// Returns the group of threads that does work in other processes than the waiting thread's, if
/// there is only one.
std::optional<waited_for::target> waited_for::only_worker_of_others(const thread_sample& s) const {
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const thread_activity& of = groups_[i].of;
    const bool is_elsewhere =
        std::any_of(of.members.begin(), of.members.end(),
                    [&](std::size_t thread) { return samples_.threads[thread].pid != pid_of(s); });
    if (is_elsewhere && works(i)) found.insert(i);
  }
  return only_group(found);
}

}  // namespace lotus::tool
