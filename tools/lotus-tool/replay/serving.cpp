#include "replay/serving.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/parallel.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {
namespace {

constexpr double mostly_blocked = 0.2;
/// Calls that wait for a lock, a device or a rate limit are blocked. If calls are blocked for a
/// smaller share of their time than this, assume that none of these limits them.
constexpr double hardly_blocked = 0.05;

/// Returns the number of calls per ns that `servers` locks or device channels can serve.
double capacity_of(const shared_operation& op, std::size_t servers) {
  double sum_ns = 0;
  op.calls->for_each_served(
      servers, [&sum_ns](const operation_call&, double service_ns, bool) { sum_ns += service_ns; });
  return sum_ns > 0 ? static_cast<double>(op.calls->size()) * static_cast<double>(servers) / sum_ns
                    : 0;
}

/// Adds explanations that assume a rate limit: a minimum interval between the starts of calls. (A
/// device with several channels behaves similarly.) Adds them only if calls may take longer while
/// other calls are open. Each call is assumed to take, after its start, as long as a call that
/// began while no other call was open. Adds three explanations: one with the mean of this duration,
/// and one with each end of its confidence interval.
void add_limits(const shared_operation& op, const served_at_once& served,
                std::vector<assumed_servers>& to) {
  const call_overlap& s = op.calls->overlap();
  const bool may_wait = s.max_inside > 1 && served.plausible.front() < s.max_inside;
  if (s.alone_ns <= 0 || s.gap_ns <= 0 || !(may_wait || s.is_slower_when_shared())) return;
  for (const double each_ns : {s.alone_ns, s.alone_low_ns, s.alone_high_ns}) {
    to.push_back({&op, unbounded, s.gap_ns, each_ns});
  }
}

/// Computes served_operation::works.
std::vector<served_work> works_under(const assumed_servers& assumed, std::size_t works) {
  const bool limit = assumed.apart_ns > 0;
  std::vector<served_work> served(works);
  assumed.operation->calls->for_each_served(
      assumed.servers, [&](const operation_call& c, double served_ns, bool has_waited) {
        const auto all_ns = static_cast<double>(c.end_ns - c.start_ns);
        const double service_ns = limit ? assumed.each_ns : served_ns;
        const double cpu_ns = std::min(c.cpu_ns, service_ns);
        served_work& to = served[c.work];
        to.blocked_ns += service_ns - cpu_ns;
        if (limit) {
          ++to.let_through;
        } else {
          to.cpu_ns += cpu_ns;
        }
        to.waited_ns += all_ns - service_ns;
        // If this call waited for a server, its thread was woken when an earlier call
        // freed the server. If the thread then waited for a CPU, the server was already
        // occupied, so this wait is part of the time in which the call was served.
        if (!limit && has_waited) to.queued_ns += std::min(c.queued_ns, service_ns - cpu_ns);
      });
  return served;
}

/// Sets assumed_servers::served of all explanations.
std::vector<assumed_servers> with_works(std::vector<assumed_servers> all, std::size_t works) {
  for_each_in_parallel(all.size(), unlimited_threads, [&](std::size_t i) {
    if (all[i].operation == nullptr) return;
    all[i].served = {{all[i].operation->name, std::make_shared<const std::vector<served_work>>(
                                                  works_under(all[i], works))}};
  });
  return all;
}

struct judged_operation {
  const shared_operation* op = nullptr;
  served_at_once served;
};

/// Returns the operation whose calls wait for a lock, a device or a rate limit according to the
/// recording. Of several, returns the one with the lowest capacity, because it limits the run most;
/// of nested operations with similar capacity, the inner one. nullptr if there is none.
const judged_operation* shown_limit(const std::vector<judged_operation>& all) {
  std::vector<const judged_operation*> limits;
  for (const judged_operation& one : all) {
    const std::size_t most = one.op->calls->overlap().max_inside;
    if (most < 2 || one.served.plausible.back() >= most) continue;
    if (one.op->blocked_share >= hardly_blocked) limits.push_back(&one);
  }
  // An inner operation takes less time than those around it.
  std::stable_sort(limits.begin(), limits.end(), [](const auto* a, const auto* b) {
    return a->op->calls->all_ns() < b->op->calls->all_ns();
  });
  const judged_operation* found = nullptr;
  double least = 0;
  for (const judged_operation* const one : limits) {
    const double capacity = capacity_of(*one->op, one->served.plausible.front());
    if (found != nullptr && capacity >= 0.9 * least) continue;
    found = one;
    least = capacity;
  }
  return found;
}

/// Estimates how many calls are served at the same time. The calls of a stage that is held up begin
/// one after the other because later stages, or the consumer, take its units one after the other.
/// This looks as if they waited for each other.
served_at_once judge(const shared_operation& op, const recorded_pipeline& pipeline) {
  const bool is_held_up =
      std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                  [&op](const recorded_stage& s) { return s.name == op.stage && s.is_held_up; });
  const std::size_t most = op.calls->overlap().max_inside;
  return is_held_up ? served_at_once{{most}, most} : find_served_at_once(*op.calls);
}

}  // namespace

assumed_servers served_by(const shared_operation& op, std::size_t servers, std::size_t works) {
  return with_works({{&op, servers, 0, 0}}, works).front();
}

std::vector<assumed_servers> explanations_of(const std::vector<const shared_operation*>& operations,
                                             const recorded_pipeline& pipeline) {
  std::vector<judged_operation> judged(operations.size());
  for_each_in_parallel(judged.size(), unlimited_threads, [&](std::size_t i) {
    judged[i] = {operations[i], judge(*operations[i], pipeline)};
  });
  std::vector<assumed_servers> all;
  if (const judged_operation* const limit = shown_limit(judged)) {
    const served_at_once& s = limit->served;
    for (const std::size_t servers : {s.likeliest, s.plausible.front(), s.plausible.back()}) {
      const bool is_new = std::none_of(
          all.begin(), all.end(), [&](const assumed_servers& a) { return a.servers == servers; });
      if (is_new) all.push_back({limit->op, servers, 0, 0});
    }
    add_limits(*limit->op, s, all);
    return with_works(std::move(all), pipeline.works.size());
  }
  all.emplace_back();
  for (const auto& [op, served] : judged) {
    const std::size_t most = op->calls->overlap().max_inside;
    const std::size_t fewest = served.plausible.front();
    const bool waited = fewest < most && op->blocked_share >= hardly_blocked;
    if (waited || most == 1) all.push_back({op, fewest, 0, 0});
    // If calls are mostly blocked, a device may serve no more calls at the same time than were open
    // in the recording. Calls that run on a CPU are limited only by the number of CPUs, which is
    // known.
    if (op->blocked_share >= mostly_blocked && most > 1) all.push_back({op, most, 0, 0});
    add_limits(*op, served, all);
  }
  return with_works(std::move(all), pipeline.works.size());
}

std::vector<assumed_servers> explanations_of(const std::vector<const shared_operation*>& operations,
                                             const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also) {
  std::vector<assumed_servers> all(1);
  for (const shared_operation* const op : operations) {
    const auto same = std::find_if(also.shared.begin(), also.shared.end(), [&](const auto& other) {
      return other.name == op->name && other.stage == op->stage;
    });
    if (same == also.shared.end()) continue;
    const call_overlap& here = op->calls->overlap();
    const call_overlap& there = same->calls->overlap();
    const std::size_t most = std::max(here.max_inside, there.max_inside);
    for (std::size_t c = 1; c < most; c += std::max<std::size_t>(1, c / 3)) {
      all.push_back({op, c, 0, 0});
    }
    if (op->blocked_share >= mostly_blocked) all.push_back({op, most, 0, 0});
    // A rate limit has two parameters. Take the duration of a call from the recording with fewer
    // simultaneous calls, in which calls waited least. Take the interval between calls from the
    // other recording, in which the limit had the largest effect.
    const bool fewer_here = here.max_inside < there.max_inside;
    const double each_ns = fewer_here ? here.alone_ns : there.alone_ns;
    const double gap_ns = fewer_here ? there.gap_ns : here.gap_ns;
    if (each_ns > 0 && gap_ns > 0) all.push_back({op, unbounded, gap_ns, each_ns});
  }
  return with_works(std::move(all), pipeline.works.size());
}

}  // namespace lotus::tool
