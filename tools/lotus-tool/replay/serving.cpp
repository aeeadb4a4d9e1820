#include "replay/serving.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/recorded/served_at_once.hpp"
#include "replay/recorded/stored_calls.hpp"

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
void add_limits(const shared_operation& op, std::vector<assumed_servers>& to) {
  const served_at_once& s = op.served;
  const bool may_wait = s.max_inside > 1 && s.plausible.front() < s.max_inside;
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
        // If this call waited for a server, its thread was woken when an earlier call freed the
        // server. If the thread then waited for a CPU, the server was already occupied, so this
        // wait is part of the time in which the call was served.
        if (!limit && has_waited) to.queued_ns += std::min(c.queued_ns, service_ns - cpu_ns);
      });
  return served;
}

/// Sets assumed_servers::served of all explanations.
std::vector<assumed_servers> with_works(std::vector<assumed_servers> all,
                                        const recorded_pipeline& pipeline) {
  for_each_in_parallel(all.size(), unlimited_threads, [&](std::size_t i) {
    if (all[i].operation == nullptr) return;
    all[i].served = {{all[i].operation->name, std::make_shared<const std::vector<served_work>>(
                                                  works_under(all[i], pipeline.works.size()))}};
  });
  return all;
}

}  // namespace

std::vector<serving_limit> shown_limits(const recorded_pipeline& pipeline) {
  std::vector<serving_limit> limits;
  for (const shared_operation& op : pipeline.shared) {
    if (op.served.max_inside < 2 || op.served.may_be_free()) continue;
    if (op.blocked_share < hardly_blocked) continue;
    limits.push_back({&op, op.served.plausible.front(), op.served.plausible.back()});
  }
  // Sort by the total time of the operation's calls, so that of two nested operations the inner one
  // comes first.
  std::stable_sort(limits.begin(), limits.end(),
                   [](const serving_limit& a, const serving_limit& b) {
                     return a.operation->calls->all_ns() < b.operation->calls->all_ns();
                   });
  // Then put the operation with the lowest capacity first, because it limits the run most.
  std::stable_sort(
      limits.begin(), limits.end(), [](const serving_limit& a, const serving_limit& b) {
        return capacity_of(*a.operation, a.fewest) < 0.9 * capacity_of(*b.operation, b.fewest);
      });
  return limits;
}

std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline) {
  std::vector<assumed_servers> all;
  const std::vector<serving_limit> limits = shown_limits(pipeline);
  if (!limits.empty()) {
    const serving_limit& limit = limits.front();
    const std::size_t likeliest = limit.operation->served.likeliest;
    for (const std::size_t servers : {likeliest, limit.fewest, limit.most}) {
      const bool is_new = std::none_of(
          all.begin(), all.end(), [&](const assumed_servers& a) { return a.servers == servers; });
      if (is_new) all.push_back({limit.operation, servers, 0, 0});
    }
    add_limits(*limit.operation, all);
    return with_works(std::move(all), pipeline);
  }
  all.emplace_back();
  for (const shared_operation& op : pipeline.shared) {
    const std::size_t fewest = op.served.plausible.front();
    const bool waited = fewest < op.served.max_inside && op.blocked_share >= hardly_blocked;
    if (waited || op.served.max_inside == 1) all.push_back({&op, fewest, 0, 0});
    // If calls are mostly blocked, a device may serve no more calls at the same time than were open
    // in the recording. Calls that run on a CPU are limited only by the number of CPUs, which is
    // known.
    if (op.blocked_share >= mostly_blocked && op.served.max_inside > 1) {
      all.push_back({&op, op.served.max_inside, 0, 0});
    }
    add_limits(op, all);
  }
  return with_works(std::move(all), pipeline);
}

std::vector<assumed_servers> explanations_of(const recorded_pipeline& pipeline,
                                             const recorded_pipeline& also) {
  std::vector<assumed_servers> all(1);
  for (const shared_operation& op : pipeline.shared) {
    const auto same = std::find_if(also.shared.begin(), also.shared.end(), [&](const auto& other) {
      return other.name == op.name && other.stage == op.stage;
    });
    if (same == also.shared.end()) continue;
    const served_at_once& here = op.served;
    const served_at_once& there = same->served;
    const std::size_t most = std::max(here.max_inside, there.max_inside);
    for (std::size_t c = 1; c < most; c += std::max<std::size_t>(1, c / 3)) {
      all.push_back({&op, c, 0, 0});
    }
    if (op.blocked_share >= mostly_blocked) all.push_back({&op, most, 0, 0});
    // A rate limit has two parameters. Take the duration of a call from the recording with fewer
    // simultaneous calls, in which calls waited least. Take the interval between calls from the
    // other recording, in which the limit had the largest effect.
    const bool fewer_here = here.max_inside < there.max_inside;
    const double each_ns = fewer_here ? here.alone_ns : there.alone_ns;
    const double gap_ns = fewer_here ? there.gap_ns : here.gap_ns;
    if (each_ns > 0 && gap_ns > 0) all.push_back({&op, unbounded, gap_ns, each_ns});
  }
  return with_works(std::move(all), pipeline);
}

}  // namespace lotus::tool
