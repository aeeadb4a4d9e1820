#include "threads/analysis/headline.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/thread_activity.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

bool is_several(const thread_activity& group) {
  return group.threads > 1;
}

/// Returns a clause such as "wait 80 % of the time, in `get` (pool.h:8) for a lock".
std::string waiting_clause(const thread_activity& group) {
  const blocked_part& part = group.blocked.front();
  const bool sleeps = part.reason == wait_reason::sleep;
  std::string text = sleeps ? "sleep" : "wait";
  if (!is_several(group)) text += 's';
  text += ' ' + percent(part.share) + " of the time";
  if (!part.function.function.empty() || !part.function.module.empty()) {
    text += ", in " + shown_place(part.function);
  }
  return sleeps ? text : text + ' ' + shown_wait(part);
}

/// Returns a clause such as "spend 71 % of their CPU time in `resize` (resize.cpp:17)".
std::string working_clause(const thread_activity& group) {
  const std::string s = is_several(group) ? "" : "s";
  if (group.functions.empty()) {
    return (is_several(group) ? "run " : "runs ") + percent(group.running) + " of the time";
  }
  const function_share& top = group.functions.front();
  std::string text = "spend" + s + ' ' + percent(top.share) + " of " +
                     (is_several(group) ? "their" : "its") + " CPU time in " +
                     shown_place(top.function);
  if (group.run_queue >= 0.2) {
    text += " and wait" + s + ' ' + percent(group.run_queue) + " of the time for a CPU";
  }
  return text;
}

std::string clause(const thread_activity& group) {
  const bool waits = group.blocked_share() > 0.5 && !group.blocked.empty();
  return waits ? waiting_clause(group) : working_clause(group);
}

/// Returns the group that uses the CPU most, other than the subject of the sentence; null if no
/// other group uses the CPU for at least 5 % of its time.
const thread_activity* busiest(const std::vector<thread_activity>& groups, std::size_t subject) {
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (i == subject) continue;
    return groups[i].running + groups[i].run_queue < 0.05 ? nullptr : &groups[i];
  }
  return nullptr;
}

}  // namespace

std::string shown_wait(const blocked_part& part) {
  const std::string what = printable_line(part.what);
  switch (part.reason) {
    case wait_reason::lock:
      return "for a lock";
    case wait_reason::condition:
      return part.what == "the end of a thread" ? "for the end of a thread"
                                                : "for a condition variable or similar (futex)";
    case wait_reason::file:
      return what.empty() || what.front() != '/' ? "for files" : "for the file " + what;
    case wait_reason::pipe:
      return "for a pipe";
    case wait_reason::socket:
      return "for a socket";
    case wait_reason::poll:
      return "for descriptors to become ready";
    case wait_reason::sleep:
      return "in a sleep";
    case wait_reason::process:
      return "for a child process";
    case wait_reason::page_fault:
      return "for pages of memory that are read from the disk";
    case wait_reason::other:
      break;
  }
  return what.empty() ? "in the kernel" : "in the kernel (" + what + ')';
}

std::string headline_of(const std::vector<thread_activity>& groups) {
  constexpr std::uint64_t min_samples = 20;
  if (groups.empty() || !groups.front().is_main) return {};
  const std::size_t subject = subject_of(groups);
  const thread_activity& main = groups[subject];
  if (main.wait_samples + main.cpu_samples < min_samples) return {};
  const bool waits = main.blocked_share() > 0.5 && !main.blocked.empty();
  const bool knows_why = waits && main.blocked.front().of && *main.blocked.front().of != subject;
  std::string text = shown_group(main) + ' ';
  if (!knows_why) {
    text += waits ? waiting_clause(main) : working_clause(main);
    const thread_activity* const other = busiest(groups, subject);
    if (other != nullptr) {
      text +=
          is_several(*other) ? ". The busiest other threads are " : ". The busiest other one is ";
      text += shown_group(*other) + ", which " + clause(*other);
    }
    return text;
  }
  const blocked_part& part = main.blocked.front();
  const thread_activity& of = groups[*part.of];
  text += (is_several(main) ? "wait " : "waits ") + percent(part.share) + " of the time, in " +
          shown_place(part.function) + ',';
  text += part.sure ? " for " : " probably for ";
  return text + shown_group(of) + (is_several(of) ? ". These threads " : ". This thread ") +
         clause(of);
}

}  // namespace lotus::tool
