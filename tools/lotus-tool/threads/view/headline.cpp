#include "threads/view/headline.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

bool is_several(const thread_activity& group) {
  return group.threads > 1;
}

/// Returns a clause such as "wait 80 % of the time, in `get` (pool.h:8) for a lock", or, if `next`
/// is not empty, "wait 80 % of the time, in `get` (pool.h:8), for 2 threads in `decode`".
std::string waiting_clause(const thread_activity& group, const chain_hop& hop,
                           const std::string& next) {
  const blocked_part& part = group.blocked[*hop.wait];
  const bool sleeps = part.reason == wait_reason::sleep;
  std::string text = sleeps ? "sleep" : "wait";
  if (!is_several(group)) text += 's';
  text += ' ' + whole_percent(hop.share) + (hop.seen ? " of that time" : " of the time");
  if (!part.function.function.empty() || !part.function.module.empty()) {
    text += ", in " + shown_place(part.function);
  }
  if (!next.empty() && part.reason == wait_reason::lock && part.sure) {
    return text + ' ' + shown_wait(part) + " held by " + next;
  }
  if (!next.empty()) return text + (part.sure ? ", for " : ", probably for ") + next;
  return sleeps ? text : text + ' ' + shown_wait(part);
}

/// Returns a clause such as "spend 71 % of their CPU time in `resize` (resize.cpp:17)".
std::string working_clause(const thread_activity& group) {
  const std::string s = is_several(group) ? "" : "s";
  if (group.functions.empty()) {
    return (is_several(group) ? "run " : "runs ") + whole_percent(group.running) + " of the time";
  }
  const function_share& top = group.functions.front();
  std::string works = "spend" + s + ' ' + whole_percent(top.share) + " of " +
                      (is_several(group) ? "their" : "its") + " CPU time in " +
                      shown_work(top.function);
  if (group.run_queue < 0.2) return works;
  const std::string waits =
      "wait" + s + ' ' + whole_percent(group.run_queue) + " of the time for a CPU";
  // The larger part comes first.
  return group.run_queue > group.running ? waits + " and " + works : works + " and " + waits;
}

std::string clause(const thread_activity& group, const chain_hop& hop, const std::string& next) {
  if (!group.is_sampled()) return "ended too soon to be sampled";
  if (!hop.wait) return working_clause(group);
  const std::string text = waiting_clause(group, hop, next);
  const bool is_crowded = !hop.seen && group.run_queue >= 0.2;
  return is_crowded ? text + ", and " + whole_percent(group.run_queue) + " for a CPU" : text;
}

/// Returns the index of the hop at which a chain that ends in a cycle was before; its size if there
/// is no cycle.
std::size_t begin_of_cycle(const std::vector<chain_hop>& chain) {
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const bool is_wait = chain[i].wait.has_value();
    if (is_wait && chain[i].group == chain.back().group && chain[i].wait == chain.back().wait) {
      return i;
    }
  }
  return chain.size();
}

/// Returns a sentence such as "So main thread and 1 thread in `second` wait for each other".
std::string cycle_sentence(const std::vector<thread_activity>& groups,
                           const std::vector<chain_hop>& chain, std::size_t begin) {
  std::vector<std::size_t> members;
  bool at_once = true;  // whether each held a lock that the next one waited for
  for (std::size_t i = begin; i + 1 < chain.size(); ++i) {
    const bool is_new = std::find(members.begin(), members.end(), chain[i].group) == members.end();
    if (is_new) members.push_back(chain[i].group);
    const blocked_part& wait = groups[chain[i].group].blocked[*chain[i].wait];
    at_once = at_once && chain[i + 1].seen && wait.reason == wait_reason::lock;
  }
  const auto name = [&groups](std::size_t member) { return shown_group(groups[member]); };
  return "So " + enumerated(members, " and ", name) + " wait for each other" +
         (at_once ? "" : " in turn");
}

/// Returns the group that uses the CPU most, other than the subject of the sentence; null if it
/// does so for less than 5 % of its time.
const thread_activity* busiest(const std::vector<thread_activity>& groups, std::size_t subject) {
  const thread_activity* most = nullptr;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (i != subject && (most == nullptr || groups[i].cpu_s > most->cpu_s)) most = &groups[i];
  }
  return most == nullptr || most->running + most->run_queue < 0.05 ? nullptr : most;
}

}  // namespace

std::string shown_target(const blocked_part& part, const std::vector<thread_activity>& groups,
                         const thread_activity& group) {
  if (!part.of) return {};
  const thread_activity& of = groups[*part.of];
  const std::string name =
      &of != &group ? shown_group(of)
                    : std::string("others of these ") + (of.is_process ? "processes" : "threads");
  return part.sure || *part.why == '\0' ? name : name + " (" + part.why + ')';
}

std::string shown_wait(const blocked_part& part) {
  const std::string what = printable_line(part.what);
  if (part.outside) {
    constexpr std::array<const char*, 3> names{"standard input", "standard output",
                                               "standard error"};
    const std::uint64_t descriptor = part.descriptor / 2;
    const bool is_named = part.reason != wait_reason::poll && descriptor < names.size();
    const std::string name = is_named ? names[descriptor] : what;
    const std::string whom =
        part.descriptor % 2 != 0 ? "for a reader outside (" : "for input from outside (";
    return whom + name + ')';
  }
  switch (part.reason) {
    case wait_reason::lock:
      if (what.rfind('/', 0) == 0) return "for the file lock " + what;
      return what.empty() ? "for a lock" : "for the lock `" + what + '`';
    case wait_reason::condition:
      return part.for_thread_end ? "for the end of a thread"
                                 : "for a condition variable or similar (futex)";
    case wait_reason::file:
      return what.empty() || what.front() != '/' ? "for files" : "for the file " + what;
    case wait_reason::pipe:
      return "for a pipe";
    case wait_reason::socket:
      return "for a socket";
    case wait_reason::poll:
      return part.for_several ? "for one of " + what : "for descriptors to become ready";
    case wait_reason::sleep:
      return "in a sleep";
    case wait_reason::process:
      return "for a child process";
    case wait_reason::page_fault:
      return "for pages of memory that are read from the disk";
    case wait_reason::other:
      break;
  }
  const bool for_signal = what == "pause" || what == "rt_sigsuspend" || what == "rt_sigtimedwait";
  if (for_signal) return "for a signal";
  return what.empty() ? "in the kernel" : "in the kernel (" + what + ')';
}

std::vector<std::string> chain_sentences(const std::vector<thread_activity>& groups,
                                         const std::vector<chain_hop>& chain) {
  std::vector<std::string> sentences;
  const std::size_t cycle = begin_of_cycle(chain);
  const std::size_t end = cycle == chain.size() ? cycle : chain.size() - 1;
  for (std::size_t i = 0; i < end; ++i) {
    const thread_activity& group = groups[chain[i].group];
    const std::string one = group.is_process ? "This process" : "This thread";
    const std::string several = group.is_process ? "These processes" : "These threads";
    const std::string who = i == 0 ? shown_group(group) : is_several(group) ? several : one;
    const std::string next =
        i + 1 == chain.size() ? "" : shown_target(group.blocked[*chain[i].wait], groups, group);
    sentences.push_back(who + ' ' + clause(group, chain[i], next));
  }
  if (end < chain.size()) sentences.push_back(cycle_sentence(groups, chain, cycle));
  return sentences;
}

std::string headline_of(const std::vector<thread_activity>& groups,
                        const std::vector<chain_hop>& chain) {
  constexpr std::uint64_t min_samples = 20;
  if (chain.empty() || !groups.front().is_main) return {};
  const std::size_t subject = chain.front().group;
  const thread_activity& main = groups[subject];
  if (main.wait_samples + main.cpu_samples < min_samples) return {};
  std::string text = joined(chain_sentences(groups, chain), ". ");
  const bool ends_outside = chain.front().wait && main.blocked[*chain.front().wait].outside;
  const bool is_explained = chain.size() > 1 || ends_outside;
  const thread_activity* const other = is_explained ? nullptr : busiest(groups, subject);
  if (other == nullptr) return text;
  text += is_several(*other) ? ". The busiest other threads are " : ". The busiest other one is ";
  return text + shown_group(*other) + ", which " + working_clause(*other);
}

}  // namespace lotus::tool
