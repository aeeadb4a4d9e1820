#include "waits/join/limiting_lock.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "log/shown_name.hpp"
#include "model/identifiers.hpp"
#include "model/path/critical_path.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/stages.hpp"
#include "model/quantities.hpp"

namespace lotus::tool {
namespace {

struct preprocessing_time {
  double wall_ns = 0;
  std::optional<double> blocked_ns;  ///< measured blocked time; nullopt if not measured
  std::size_t threads = 0;           ///< number of threads that work at the same time; 0: unknown
};

preprocessing_time time_of_workers(const run_data& run, std::size_t workers, std::size_t skip) {
  preprocessing_time time{0, std::nullopt, workers};
  for (const std::int64_t ns : values_of(run.batches, quantity::preprocess, skip)) {
    time.wall_ns += static_cast<double>(ns);
  }
  const std::optional<cpu_split> cpu = cpu_of(run, quantity::preprocess, skip);
  if (cpu && cpu->blocked_ns) time.blocked_ns = static_cast<double>(*cpu->blocked_ns);
  return time;
}

preprocessing_time time_of_stage(const run_data& run, const std::string& stage) {
  preprocessing_time time{};
  for (const stage_figures& one : measure_stages(run)) {
    if (one.name != stage) continue;
    time.threads = one.slots;
    for (const std::int64_t ns : one.durations_ns) time.wall_ns += static_cast<double>(ns);
    if (one.cpu && one.cpu->blocked_ns) {
      time.blocked_ns = static_cast<double>(*one.cpu->blocked_ns);
    }
  }
  return time;
}

/// Returns the operation that waits for the lock in most samples. If this is true of several, such
/// as nested operations, returns the one that has the fewest samples of other waits.
std::string operation_that_waits(const run_blocked_on& joined, const blocked_on& lock) {
  std::string found;
  std::uint64_t most = 0;
  std::uint64_t all = 0;
  for (const auto& [name, list] : joined.ops) {
    for (const blocked_on& one : list.by) {
      if (one.reason != lock.reason || !(one.what == lock.what)) continue;
      if (one.samples < most || (one.samples == most && list.samples >= all)) continue;
      most = one.samples;
      all = list.samples;
      found = shown_name(name);
    }
  }
  return found;
}

/// Returns the operations that waited for a lock or held it; see sampled_lock::users.
std::vector<lock_user> users_of(const lock_samples& samples) {
  std::map<std::string, lock_user> by_name;
  const auto count = [&](const std::map<std::string, std::uint64_t>& names,
                         double lock_user::*share) {
    double all = 0;
    for (const auto& [name, number] : names) all += static_cast<double>(number);
    for (const auto& [name, number] : names) {
      by_name[name].*share = static_cast<double>(number) / all;
    }
  };
  count(samples.waits, &lock_user::waits);
  count(samples.holds, &lock_user::holds);
  std::vector<lock_user> users;
  for (auto& [name, user] : by_name) {
    user.operation = name;
    users.push_back(user);
  }
  std::stable_sort(users.begin(), users.end(),
                   [](const lock_user& a, const lock_user& b) { return a.holds > b.holds; });
  if (samples.holds.empty()) users.clear();
  return users;
}

/// Returns during which share (0..1) of the run at least the lock was held, if several stages share
/// it: while one of their threads holds it, all others can wait. 0 if only one stage uses it.
double held_by_stages(const run_data& run, const lock_samples& samples, double ns_per_sample) {
  const std::vector<lock_user> users = users_of(samples);
  std::size_t stages = 0;
  std::size_t threads = 0;
  for (const stage_figures& stage : measure_stages(run)) {
    const bool uses = std::any_of(users.begin(), users.end(), [&](const lock_user& user) {
      return user.operation == stage.name;
    });
    if (!uses) continue;
    ++stages;
    threads += stage.slots;
  }
  if (stages < 2) return 0;
  double waits = 0;
  for (const auto& [name, number] : samples.waits) waits += static_cast<double>(number);
  return waits * ns_per_sample /
         (static_cast<double>(threads - 1) * static_cast<double>(run.batches.length_ns()));
}

/// Returns the share (0..1) of the run for which the calls of the lock's holder were on a CPU, or
/// blocked on something else than the lock, all together; 0 if that is unknown. If they do nearly
/// all of their work under the lock, this is how long it was held.
double work_of_holder(const run_data& run, const run_blocked_on& joined, const blocked_on& lock) {
  const std::uint32_t holder = run.names.find('S' + lock.held_by);
  const blocked_list* const waits = joined.of('S' + lock.held_by);
  if (holder == raw_name_table::none || waits == nullptr) return 0;
  double of_lock = 0;
  for (const blocked_on& one : waits->by) {
    if (one.reason == lock.reason && one.what == lock.what) of_lock += one.share;
  }
  double ns = 0;
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    const off_cpu_time* const off = run.side.off_cpu_of(file_id(file));
    if (off == nullptr || !run.has_operations(file)) continue;
    run.for_each_operation(file, [&](const operation& op) {
      if (op.name != holder) return;
      const cpu_split of = off->split(op.start_ns, op.end_ns());
      ns += static_cast<double>(of.cpu_ns) +
            (1 - of_lock) * static_cast<double>(of.blocked_ns.value_or(0));
    });
  }
  return ns / static_cast<double>(run.batches.length_ns());
}

/// Returns the share (0..1) of the preprocessing of batches, with its waits for a CPU, in which it
/// is blocked or asleep.
double blocked_in_batches(const run_data& run) {
  const std::optional<cpu_split> of = cpu_of(run, quantity::preprocess, 0);
  if (!of || !of->blocked_ns) return 0;
  const auto blocked_ns = static_cast<double>(*of->blocked_ns);
  const double all_ns = blocked_ns + static_cast<double>(of->cpu_ns + of->run_queue_ns.value_or(0));
  return all_ns > 0 ? blocked_ns / all_ns : 0;
}

}  // namespace

double blocked_on_path(const run_data& run, const critical_path& path, const std::string& stage) {
  if (path.run_ns <= 0) return 0;
  double ns = 0;
  for (const path_share& one : path.shares) {
    const bool counts = stage.empty() ? one.kind == path_kind::operation : one.name == stage;
    if (counts && one.cpu) ns += static_cast<double>(one.cpu->blocked_ns.value_or(0));
    if (stage.empty() && one.kind == path_kind::unrecorded) {
      ns += static_cast<double>(one.ns) * blocked_in_batches(run);
    }
  }
  return ns / static_cast<double>(path.run_ns);
}

std::optional<limiting_lock> find_limiting_lock(const run_data& run, const run_blocked_on& joined,
                                                const critical_path& path, const std::string& stage,
                                                std::size_t workers, std::size_t skip) {
  constexpr std::uint64_t min_samples = 10;
  constexpr double most_of_the_time = 0.5;
  constexpr double much_of_the_run = 0.25;
  const blocked_list* const seen = stage.empty() ? &joined.preprocessing : joined.of('S' + stage);
  if (seen == nullptr || seen->empty()) return std::nullopt;
  const auto& all = seen->by;
  const auto found = std::find_if(all.begin(), all.end(), [](const blocked_on& one) {
    return one.reason == wait_reason::lock && !is_of_lotus(one);
  });
  if (found == all.end() || found->samples < min_samples) return std::nullopt;
  const preprocessing_time time =
      stage.empty() ? time_of_workers(run, workers, skip) : time_of_stage(run, stage);
  if (time.wall_ns <= 0) return std::nullopt;
  const double ns =
      time.blocked_ns ? found->share * *time.blocked_ns : static_cast<double>(found->ns);
  limiting_lock lock{*found, {}, std::fmin(1, ns / time.wall_ns)};
  const auto threads = static_cast<double>(time.threads);
  // Fewer than 30 samples must show the lock clearly: then the share is decided at the lower end of
  // its 90 % interval. The number of its samples among all has a binomial distribution.
  constexpr double quantile = 1.645;
  const double sd = std::sqrt((1 - found->share) / static_cast<double>(found->samples));
  const double sure = found->samples < 30 ? std::max(0.0, 1 - quantile * sd) : 1;
  const double surely = lock.share * sure;
  const double waiting = surely * threads;
  // If nearly all threads except the holder wait for the lock, it is held nearly all the time. It
  // is enough if 75 % of them wait: if two threads hold a lock for random times, and 0.75 threads
  // wait for it on average, it is held 97 % of the time.
  const bool nearly_all_wait = threads > 1 && waiting >= 0.75 * (threads - 1);
  const bool mostly_one_waits =
      stage.empty() && found == all.begin() && threads > 1 && waiting >= 1;
  const bool is_shared =
      !stage.empty() && surely >= 0.25 &&
      held_by_stages(run, joined.locks.at(found->what), ns / static_cast<double>(found->samples)) >=
          most_of_the_time;
  // Threads whose work fills the run exactly once, and that often wait for the lock, work in turn.
  const auto fills_the_run = [&] {
    const double work = work_of_holder(run, joined, *found);
    return work >= 0.85 && work <= 1.15;
  };
  const bool delays_much =
      found->share * sure * blocked_on_path(run, path, stage) >= much_of_the_run;
  if (!nearly_all_wait && !mostly_one_waits && !is_shared && !delays_much &&
      surely < most_of_the_time && (surely < 0.15 || !fills_the_run())) {
    return std::nullopt;
  }
  lock.operation = is_shared ? stage : operation_that_waits(joined, *found);
  return lock;
}

std::optional<sampled_lock> find_sampled_lock(const run_blocked_on& joined) {
  constexpr std::uint64_t min_samples = 10;
  const blocked_on* lock = nullptr;
  for (const auto& [name, list] : joined.ops) {
    for (const blocked_on& one : list.by) {
      if (one.reason == wait_reason::lock && (lock == nullptr || one.samples > lock->samples)) {
        lock = &one;
      }
    }
  }
  if (lock == nullptr || lock->samples < min_samples) return std::nullopt;
  sampled_lock found;
  found.name = lock_name(*lock);
  found.operation = operation_that_waits(joined, *lock);
  const blocked_list* const own = joined.of('S' + found.operation);
  if (own == nullptr) return std::nullopt;
  found.of_preprocessing = joined.preprocessing.samples >= own->samples;
  const blocked_list& all = found.of_preprocessing ? joined.preprocessing : *own;
  const auto samples = static_cast<double>(lock->samples);
  found.share = samples / static_cast<double>(all.samples);
  // The number of samples of this lock among all samples has a binomial distribution.
  found.relative_sd = std::sqrt(std::max(0.0, 1 - found.share) / samples);
  found.users = users_of(joined.locks.at(lock->what));
  return found;
}

}  // namespace lotus::tool
