#include "threads/analysis/seen_together.hpp"

#include <algorithm>
#include <string>

namespace lotus::tool {
namespace {

using lotus::detail::wait_reason;

bool is_terminal(const std::string& what) {
  return what.rfind("/dev/pts/", 0) == 0 || what.rfind("/dev/tty", 0) == 0;
}

/// Returns how many of the sorted times are at most `time`.
std::size_t count_until(const std::vector<std::uint64_t>& times, std::uint64_t time) {
  return static_cast<std::size_t>(std::upper_bound(times.begin(), times.end(), time) -
                                  times.begin());
}

}  // namespace

bool is_channel(wait_reason reason) {
  return reason == wait_reason::pipe || reason == wait_reason::socket ||
         reason == wait_reason::poll;
}

bool is_outside(const thread_samples& samples, const thread_sample& wait) {
  if (wait.reason == wait_reason::file) return is_terminal(wait.what);
  if (!is_channel(wait.reason)) return false;
  const bool is_known =
      std::any_of(samples.ends.begin(), samples.ends.end(),
                  [&](const open_end& end) { return end.what == wait.channel(); });
  return is_known && at_other_end(samples, wait).empty();
}

std::set<std::uint32_t> at_other_end(const thread_samples& samples, const thread_sample& wait) {
  const bool writes = wait.address % 2 != 0;
  std::set<std::uint32_t> others;
  for (const open_end& end : samples.ends) {
    if (end.what == wait.channel() && (writes ? end.reads : end.writes)) others.insert(end.pid);
  }
  if (others.size() > 1) others.erase(samples.threads[wait.thread].pid);
  return others;
}

seen_together::seen_together(const thread_samples& samples,
                             const std::vector<std::size_t>& group_of, std::size_t groups)
    : samples_(samples), group_of_(group_of), groups_(groups), starts_(groups), ends_(groups) {
  for (const thread_sample& s : samples.samples) {
    outside_.push_back(s.waits && is_outside(samples, s));
  }
  constexpr std::uint64_t ms = 1'000'000;
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    if (group_of[i] == no_group) continue;
    const sampled_thread& t = samples.threads[i];
    starts_[group_of[i]].push_back(t.started_ns / ms);
    // If the record of its start is lost, a thread begins when it is noticed, perhaps too late.
    if (t.ended_ns != 0) ends_[group_of[i]].push_back(std::max(t.started_ns, t.ended_ns) / ms);
  }
  for (auto* of : {&starts_, &ends_}) {
    for (std::vector<std::uint64_t>& times : *of) std::sort(times.begin(), times.end());
  }
}

bool seen_together::works(const sampled_round::state& state) const {
  if (state.sample < 0) return state.sample == sampled_round::runs;
  const auto index = static_cast<std::size_t>(state.sample);
  const thread_sample& s = samples_.samples[index];
  const bool for_disk = s.reason == wait_reason::file || s.reason == wait_reason::page_fault;
  const bool for_unknown_lock = s.reason == wait_reason::lock && s.holder == 0;
  return for_disk || for_unknown_lock || outside_[index];
}

std::vector<double> seen_together::working_during(
    const std::function<bool(std::size_t)>& wanted) const {
  constexpr std::size_t min_moments = 8;
  struct seen {
    double moments = 0;
    double working = 0;
    bool now = false;
    std::size_t threads_now = 0;
  };
  std::vector<seen> of(groups_);
  std::size_t moments = 0;
  for (const sampled_round& round : samples_.rounds) {
    const auto waiting = std::find_if(
        round.states.begin(), round.states.end(), [&](const sampled_round::state& one) {
          return one.sample >= 0 && wanted(static_cast<std::size_t>(one.sample));
        });
    if (waiting == round.states.end()) continue;
    ++moments;
    for (seen& group : of) group.now = false, group.threads_now = 0;
    for (const sampled_round::state& one : round.states) {
      if (group_of_[one.thread] == no_group) continue;
      seen& group = of[group_of_[one.thread]];
      ++group.threads_now;
      group.now = group.now || (one.thread != waiting->thread && works(one));
    }
    for (std::size_t i = 0; i < groups_; ++i) {
      const std::size_t alive =
          count_until(starts_[i], round.at_ms) - count_until(ends_[i], round.at_ms);
      // If only a part of a group's threads was seen, the unseen ones may have worked; so the
      // moment counts only in part.
      const double part = of[i].now || alive <= of[i].threads_now
                              ? 1
                              : static_cast<double>(of[i].threads_now) / static_cast<double>(alive);
      of[i].moments += part;
      if (of[i].now) of[i].working += 1;
    }
  }
  std::vector<double> shares;
  if (moments < min_moments) return shares;
  for (const seen& group : of) {
    shares.push_back(group.moments > 0 ? group.working / group.moments : 0);
  }
  return shares;
}

std::optional<std::size_t> only_worker_of(const std::vector<double>& working) {
  constexpr double nearly_all = 0.8;
  constexpr double many = 0.5;
  const auto most = std::max_element(working.begin(), working.end());
  if (most == working.end() || *most < nearly_all) return std::nullopt;
  if (std::count_if(working.begin(), working.end(), [](double s) { return s >= many; }) != 1) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(most - working.begin());
}

}  // namespace lotus::tool
