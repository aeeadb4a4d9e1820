#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/shown_name.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/fitted_model.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/serving.hpp"

namespace lotus::tool {
namespace {

/// Calls `each(part)` for each recorded_part that belongs to an operation.
/// @param operation  the operation's name, without the S that logs put before it.
template <class Each>
void for_each_part(const recorded_pipeline& pipeline, const name_table& names,
                   const std::string& operation, const Each& each) {
  enum : std::uint8_t { unknown, yes, no };
  std::vector<std::uint8_t> matches;  // indexed by name_table's number of a name
  for (const recorded_part& part : pipeline.parts) {
    if (part.name >= matches.size()) matches.resize(part.name + 1, unknown);
    std::uint8_t& is = matches[part.name];
    if (is == unknown) is = shown_name(names.name(part.name)) == operation ? yes : no;
    if (is == yes) each(part);
  }
}

/// Returns the time of all calls of an operation, without the operations inside it.
measured_work operation_time(const recorded_pipeline& pipeline, const name_table& names,
                             const std::string& operation) {
  measured_work sum;
  for_each_part(pipeline, names, operation, [&](const recorded_part& part) {
    sum.cpu_ns += part.cpu_ns;
    sum.blocked_ns += part.blocked_ns;
    sum.queued_ns += part.queued_ns;
  });
  return sum;
}

/// Returns for how long each work must hold the lock, in ns, so that works wait for it `wait_ns` on
/// average. Assumes that all times are exponentially distributed. Solves a closed queueing network
/// with one server by mean value analysis (Lazowska et al., Quantitative System Performance, ch.
/// 6).
/// @param cycle_ns  mean time of a thread from the beginning of one work to that of its next one.
double exponential_hold_ns(std::size_t threads, double cycle_ns, double wait_ns) {
  double shorter = 0;
  double longer = std::max(0.0, cycle_ns - wait_ns);
  for (int tries = 0; tries < 30; ++tries) {
    const double hold_ns = 0.5 * (shorter + longer);
    const double outside_ns = cycle_ns - wait_ns - hold_ns;
    double in_queue = 0;
    double residence_ns = hold_ns;
    for (std::size_t n = 1; n <= threads; ++n) {
      residence_ns = hold_ns * (1 + in_queue);
      in_queue = static_cast<double>(n) * residence_ns / (outside_ns + residence_ns);
    }
    (residence_ns - hold_ns > wait_ns ? longer : shorter) = hold_ns;
  }
  return 0.5 * (shorter + longer);
}

/// The operations that wait for recorded_pipeline::lock or hold it, and for how long they may do
/// so.
class lock_use {
 public:
  /// @param users  see sampled_lock::users; names that are no operations are left out.
  lock_use(const recorded_pipeline& p, const name_table& names, const std::vector<lock_user>& users)
      : p_(p), names_(names) {
    for (const lock_user& user : users) {
      const measured_work time = operation_time(p, names, user.operation);
      if (time.cpu_ns + time.blocked_ns > 0) users_.push_back({user, time});
    }
  }

  /// Whether the operation that holds the lock longest is known.
  bool is_known() const { return !users_.empty() && users_.front().is.holds > 0; }

  /// Returns the longest possible waits for the lock, in ns.
  double max_waits_ns() const {
    double sum_ns = 0;
    for (const timed_user& user : users_) {
      if (user.is.waits > 0) sum_ns += user.time.blocked_ns;
    }
    return sum_ns;
  }

  /// Returns the time during which the operations may hold the lock, in ns: `held` is the share
  /// (0..1) of the time without waits during which the first one holds it.
  double held_ns(double waits_ns, double held) const {
    double sum_ns = 0;
    for (const timed_user& user : users_)
      sum_ns += share_of(user, waits_ns, held) * user.left_ns(waits_ns);
    return sum_ns;
  }

  /// Returns the assumption that operations wait for the lock for `waits_ns` and hold it as
  /// described at held_ns().
  assumed_servers assume(double waits_ns, double held) const {
    assumed_servers lock;
    lock.servers = 1;
    for (const timed_user& user : users_) {
      const double waited =
          user.time.blocked_ns > 0 ? user.waited_ns(waits_ns) / user.time.blocked_ns : 0;
      const double share = share_of(user, waits_ns, held);
      std::vector<served_work> works(p_.works.size());
      for_each_part(p_, names_, user.is.operation, [&](const recorded_part& part) {
        const double part_waits_ns = waited * part.blocked_ns;
        works[part.work].waited_ns += part_waits_ns;
        works[part.work].blocked_ns += share * (part.blocked_ns - part_waits_ns);
        works[part.work].cpu_ns += share * part.cpu_ns;
      });
      lock.served.push_back(
          {user.is.operation, std::make_shared<const std::vector<served_work>>(std::move(works))});
    }
    return lock;
  }

 private:
  struct timed_user {
    lock_user is;
    measured_work time;  // of all calls, without the operations inside them

    double waited_ns(double waits_ns) const {
      return std::min(time.blocked_ns, is.waits * waits_ns);
    }
    double left_ns(double waits_ns) const {
      return std::max(1.0, time.blocked_ns + time.cpu_ns - waited_ns(waits_ns));
    }
  };

  /// Returns the share of a user's time without waits during which it holds the lock. The samples
  /// show only how the users' shares relate to each other.
  double share_of(const timed_user& user, double waits_ns, double held) const {
    const timed_user& first = users_.front();
    return std::min(1.0, held * (user.is.holds / user.left_ns(waits_ns)) /
                             (first.is.holds / first.left_ns(waits_ns)));
  }

  const recorded_pipeline& p_;
  const name_table& names_;
  std::vector<timed_user> users_;
};

/// Returns the share (0..1) with which `time_of(share)` returns `wanted_ns`. A larger share must
/// give a longer time.
template <class TimeOf>
double share_with(double wanted_ns, const TimeOf& time_of) {
  double shorter = 0;
  double longer = 1;
  for (int tries = 0; tries < 9; ++tries) {
    const double share = 0.5 * (shorter + longer);
    (time_of(share) > wanted_ns ? longer : shorter) = share;
  }
  return 0.5 * (shorter + longer);
}

/// Returns the number of threads that work in the stage of an operation.
std::size_t threads_at(const recorded_pipeline& p, const std::string& operation) {
  for (const shared_operation& op : p.shared) {
    if (op.name != operation) continue;
    for (const recorded_stage& stage : p.stages) {
      if (stage.name == op.stage) return stage.threads;
    }
  }
  return p.workers();
}

/// Returns for how long operations waited for the lock, in ns.
double lock_wait_ns(const fitted_model& m) {
  const sampled_lock& lock = *m.pipeline.lock;
  if (!lock.of_preprocessing) {
    return lock.share * operation_time(m.pipeline, *m.names, lock.operation).blocked_ns;
  }
  double blocked_ns = 0;
  for (const measured_work& w : m.pipeline.works) blocked_ns += w.blocked_ns;
  return lock.share * blocked_ns;
}

/// Returns whether operations inside recorded_pipeline::lock's operation wait for the lock too.
bool several_wait_for_lock(const fitted_model& m) {
  const std::optional<sampled_lock>& lock = m.pipeline.lock;
  if (!lock || !m.pipeline.cpu_known) return false;
  // The samples count waits also in operations inside the lock's operation; its own blocked time
  // does not contain them. A part of the excess is chance, because there are few samples.
  const double most = 1.25 + 2 * lock->relative_sd;
  const measured_work own = operation_time(m.pipeline, *m.names, lock->operation);
  return lock_wait_ns(m) > most * own.blocked_ns;
}

/// Returns the operations that wait for the lock or hold it: only the lock's operation, or, if
/// several wait, sampled_lock::users.
std::vector<lock_user> lock_users(const fitted_model& m) {
  if (several_wait_for_lock(m)) return m.pipeline.lock->users;
  return {{m.pipeline.lock->operation, 1, 1}};
}

/// Returns the explanation of the run by the lock; nullptr if there is none.
const assumed_servers* simulated_lock(const fitted_model& m) {
  const auto found =
      std::find_if(m.explanations.begin(), m.explanations.end(), [](const explanation& why) {
        return !why.assumed.is_free() && why.assumed.operation == nullptr;
      });
  return found == m.explanations.end() ? nullptr : &found->assumed;
}

/// Returns the assumption that calls hold the lock from start to end, unless their waits would then
/// be much longer or shorter than the samples show.
std::optional<assumed_servers> always_held_lock(const fitted_model& m) {
  // If operations inside the lock's operation wait too, no call of these operations holds the lock
  // from start to end.
  if (several_wait_for_lock(m)) return std::nullopt;
  for (const shared_operation& op : m.pipeline.shared) {
    if (op.name != m.pipeline.lock->operation) continue;
    assumed_servers lock = served_by(op, 1, m.pipeline.works.size());
    double waits_ns = 0;
    for (const served_work& w : *lock.served.front().works) waits_ns += w.waited_ns;
    const double noise = std::max(0.1, 2.33 * m.pipeline.lock->relative_sd);
    if (std::abs(waits_ns - lock_wait_ns(m)) <= noise * lock_wait_ns(m)) return lock;
  }
  return std::nullopt;
}

}  // namespace

std::vector<assumed_servers> fitted_model::sampled_explanations() const {
  if (!pipeline.lock || !pipeline.cpu_known || achieved() <= 0) return {};
  const lock_use lock(pipeline, *names, lock_users(*this));
  if (!lock.is_known() || lock.max_waits_ns() <= 0) return {};
  const auto works = static_cast<double>(pipeline.works.size());
  const std::size_t threads = threads_at(pipeline, pipeline.lock->operation);
  const double cycle_ns = static_cast<double>(threads) * length_ns() / works;
  constexpr double quantile = 1.645;  // the 95 % quantile of the standard normal distribution
  const double error = quantile * pipeline.lock->relative_sd;
  // How long threads wait for a lock depends on how regularly they lock it, and on how often a work
  // does. Estimate the held share under two extreme assumptions. `regular` comes from the
  // simulation, in which each work locks it once; `random` assumes random times. The two agree if
  // the lock is held nearly all the time.
  struct estimate {
    double waits_ns = 0;
    double regular = 0;
    double random = 0;
  };
  std::vector<estimate> by_wait;
  for (const double factor : {1 - error, 1.0, 1 + error}) {
    const double waits_ns =
        std::min(lock.max_waits_ns(), std::max(0.0, factor) * lock_wait_ns(*this));
    const double hold_ns = exponential_hold_ns(threads, cycle_ns, waits_ns / works);
    const auto simulated_waits_ns = [&](double held) {
      const replay_result simulated = replayed_with({}, speed.law, lock.assume(waits_ns, held));
      const double batches = length_ns() * achieved() / 1e9;
      return simulated.batches > 0 ? simulated.server_wait_ns * batches / simulated.batches : 0;
    };
    by_wait.push_back(
        {waits_ns, share_with(waits_ns, simulated_waits_ns),
         share_with(works * hold_ns, [&](double held) { return lock.held_ns(waits_ns, held); })});
  }
  const auto with = [&](const estimate& of, double held) { return lock.assume(of.waits_ns, held); };
  const estimate& fewest = by_wait[0];
  const estimate& mean = by_wait[1];
  const estimate& most = by_wait[2];
  std::vector<assumed_servers> all{with(mean, 0.5 * (mean.regular + mean.random)),
                                   with(fewest, std::min(fewest.regular, fewest.random)),
                                   with(most, std::max(most.regular, most.random))};
  // This assumption is more precise, because the times of calls show how long each call waited.
  if (const std::optional<assumed_servers> always = always_held_lock(*this)) {
    all.insert(all.begin(), *always);
  }
  return all;
}

double fitted_model::gain_without_lock_waits() const {
  if (!has_unknown_lock()) return 1;
  double all_ns = 0;
  for (const measured_work& w : pipeline.works) all_ns += w.all_ns();
  return all_ns / std::max(0.1 * all_ns, all_ns - lock_wait_ns(*this));
}

bool fitted_model::has_unknown_lock() const {
  return several_wait_for_lock(*this) && simulated_lock(*this) == nullptr;
}

std::optional<fitted_model::lock_holder> fitted_model::lock_held() const {
  const assumed_servers* const lock = simulated_lock(*this);
  if (lock == nullptr) return std::nullopt;
  const served_operation& holder = lock->served.front();
  const measured_work time = operation_time(pipeline, *names, holder.name);
  double held_ns = 0;
  double left_ns = time.blocked_ns + time.cpu_ns;
  for (const served_work& w : *holder.works) {
    held_ns += w.blocked_ns + w.cpu_ns;
    left_ns -= w.waited_ns;
  }
  if (held_ns <= 0 || left_ns <= 0) return std::nullopt;
  return lock_holder{holder.name, held_ns / left_ns};
}

bool fitted_model::samples_explain(const shared_operation& op) const {
  const sampled_lock& lock = *pipeline.lock;
  const auto uses_lock = [&op](const lock_user& user) { return user.operation == op.name; };
  if (several_wait_for_lock(*this) &&
      (op.name == lock.operation || std::any_of(lock.users.begin(), lock.users.end(), uses_lock))) {
    return true;
  }
  constexpr double most = 0.8;
  return lock_wait_ns(*this) >= most * op.blocked_share * op.calls->all_ns();
}

fitted_model::limited_operation fitted_model::limited() const {
  const assumed_servers& likeliest = explanations.front().assumed;
  if (likeliest.operation == nullptr) return {};  // no limit, or a lock that wait samples show
  const auto is_open = [&](const explanation& why) {
    return why.assumed.operation == nullptr ||
           (why.assumed.apart_ns <= 0 &&
            why.assumed.servers >= likeliest.operation->calls->overlap().max_inside);
  };
  if (std::any_of(explanations.begin(), explanations.end(), is_open)) return {};
  std::size_t most = 1;
  for (const explanation& why : explanations) {
    if (why.assumed.apart_ns <= 0) most = std::max(most, why.assumed.servers);
  }
  return {likeliest.operation->name, most};
}

}  // namespace lotus::tool
