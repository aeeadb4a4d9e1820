#include "waits/join/blocked_on.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "log/shown_name.hpp"
#include "model/times/intervals.hpp"
#include "sampling/read/variable_names.hpp"
#include "waits/join/sampled_waits.hpp"

namespace lotus::tool {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string::npos ? 0 : slash + 1);
}

/// @param holders  in how many samples of a lock which operation held it.
void name_holders(const std::map<std::string, std::uint64_t>& holders, blocked_on& lock) {
  std::uint64_t known = 0;
  std::uint64_t most = 0;
  std::uint64_t next = 0;
  for (const auto& [name, count] : holders) {
    known += count;
    if (count > most) {
      std::tie(next, lock.also_held_by) = std::tie(most, lock.held_by);
      std::tie(most, lock.held_by) = std::tie(count, name);
    } else if (count > next) {
      std::tie(next, lock.also_held_by) = std::tie(count, name);
    }
  }
  if (known > 0) lock.held_share = static_cast<double>(most) / static_cast<double>(known);
  // Samples at the ends of an operation seem to be outside of it.
  if (3 * next <= known || lock.also_held_by == unmarked_code) lock.also_held_by.clear();
}

/// Groups the wait samples of one operation by what the operation waited for, and counts them.
class collector {
 public:
  void add(const wait_sample& sample, std::size_t process, const wait_object& what,
           const std::string& held_by) {
    group& to = groups_[{sample.reason, what}];
    ++to.samples;
    to.ns += sample.ns;
    if (sample.reason == wait_reason::lock && sample.holder != 0) {
      ++to.holders[held_by.empty() ? unmarked_code : held_by];
      if (held_by.empty()) ++to.unmarked_threads[sample.holder];
    }
    if (sample.stack != 0) ++to.stacks[{process, sample.stack}];
    if (sample.holder_stack) ++to.holder_stacks[{process, *sample.holder_stack}];
  }

  blocked_list finish() {
    merge_files();
    blocked_list all;
    for (const auto& [key, of] : groups_) {
      all.samples += of.samples;
      all.ns += of.ns;
    }
    for (const auto& [key, of] : groups_) {
      blocked_on one;
      one.reason = key.first;
      one.what = key.second;
      one.samples = of.samples;
      one.ns = of.ns;
      one.share = static_cast<double>(of.samples) / static_cast<double>(all.samples);
      name_holders(of.holders, one);
      if (const auto most =
              std::max_element(of.unmarked_threads.begin(), of.unmarked_threads.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
          most != of.unmarked_threads.end() && one.held_by == unmarked_code) {
        one.holder_thread = most->first;
      }
      one.stacks = frequent_stacks(of.stacks);
      one.holder_stacks = frequent_stacks(of.holder_stacks);
      all.by.push_back(std::move(one));
    }
    std::stable_sort(all.by.begin(), all.by.end(), [](const blocked_on& a, const blocked_on& b) {
      return a.samples > b.samples;
    });
    return all;
  }

 private:
  /// Numbers of samples by process and number of the stack.
  using stack_counts = std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t>;

  struct group {
    std::uint64_t samples = 0;
    std::int64_t ns = 0;
    std::map<std::string, std::uint64_t> holders;
    std::map<std::uint64_t, std::uint64_t> unmarked_threads;  // those of the holders
    stack_counts stacks;
    stack_counts holder_stacks;
  };

  /// Returns only the most frequent stacks. There may be thousands, because stacks with the same
  /// calls may differ in other words.
  static std::vector<seen_stack> frequent_stacks(const stack_counts& stacks) {
    constexpr std::size_t max_stacks = 64;
    std::vector<seen_stack> all;
    for (const auto& [key, samples] : stacks) all.push_back({key.first, key.second, samples});
    std::stable_sort(all.begin(), all.end(), [](const seen_stack& a, const seen_stack& b) {
      return a.samples > b.samples;
    });
    if (all.size() > max_stacks) all.resize(max_stacks);
    return all;
  }

  /// If there are many files, combines the files of each folder into one entry, because a loader
  /// may read thousands of files from one folder.
  void merge_files() {
    constexpr std::size_t max_files = 3;
    std::map<std::string, std::size_t> files;
    for (const auto& [key, of] : groups_) {
      if (key.first == wait_reason::file) ++files[folder_of(key.second.name)];
    }
    std::map<std::pair<wait_reason, wait_object>, group> merged;
    for (auto& [key, of] : groups_) {
      const std::string folder = folder_of(key.second.name);
      const bool many =
          key.first == wait_reason::file && !folder.empty() && files[folder] > max_files;
      group& to = merged[{key.first, many ? wait_object{folder, 0, files[folder]} : key.second}];
      to.samples += of.samples;
      to.ns += of.ns;
      for (const auto& [name, count] : of.holders) to.holders[name] += count;
      for (const auto& [thread, count] : of.unmarked_threads) to.unmarked_threads[thread] += count;
      for (const auto& [stack, count] : of.stacks) to.stacks[stack] += count;
      for (const auto& [stack, count] : of.holder_stacks) to.holder_stacks[stack] += count;
    }
    groups_ = std::move(merged);
  }

  std::map<std::pair<wait_reason, wait_object>, group> groups_;
};

std::set<std::size_t> logs_of_consumers(const run_batches& batches) {
  std::set<std::size_t> logs;
  for (const batch& b : batches.all()) {
    const batch_record* const of = batches.record(b.consumed);
    if (of != nullptr) logs.insert(of->file.value());
  }
  return logs;
}

/// Returns run_blocked_on::during_steps.
std::string work_during_steps(const run_data& run, const sampled_waits& waits) {
  std::vector<std::int64_t> times;  // of the samples
  std::set<std::size_t> left_out;   // logs of the consumer and of threads that build batches
  for (const sampled_wait& wait : waits.all()) {
    if (wait.open.count(sampled_wait::of_step) == 0 || is_lock_or_sleep(wait.sample->reason))
      continue;
    times.push_back(wait.sample->time_ns);
    left_out.insert(wait.logs.begin(), wait.logs.end());
  }
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) left_out.insert(s.file->value());
  }
  std::vector<std::int64_t> ends;  // of the steps
  for (const batch& b : run.batches.all()) {
    const std::optional<time_span> step = run.batches.step(b.consumed);
    if (step) ends.push_back(step->end_ns);
  }
  std::sort(times.begin(), times.end());
  std::sort(ends.begin(), ends.end());
  constexpr std::size_t most_calls = 2;  // for each step
  std::map<std::uint32_t, std::pair<std::size_t, std::set<std::int64_t>>> calls_and_times;
  for (std::size_t file = 0; file < run.files->files.size() && !times.empty(); ++file) {
    if (left_out.count(file) != 0) continue;
    run.for_each_operation(file, [&](const operation& op) {
      auto& [calls, seen] = calls_and_times[op.name];
      if (++calls > most_calls * ends.size()) return;
      const auto of_step = std::lower_bound(ends.begin(), ends.end(), op.start_ns);
      if (of_step != ends.end() && *of_step < op.end_ns()) return;  // the step did not wait for it
      seen.insert(std::lower_bound(times.begin(), times.end(), op.start_ns),
                  std::lower_bound(times.begin(), times.end(), op.end_ns()));
    });
  }
  for (const auto& [name, of] : calls_and_times) {
    const bool mostly = 10 * of.second.size() >= 7 * times.size();
    if (mostly && of.first <= most_calls * ends.size()) return shown_name(run.names.name(name));
  }
  return {};
}

}  // namespace

wait_object what_of(const wait_sample& sample) {
  const bool is_complete =
      sample.reason == wait_reason::condition && sample.what.find(' ') != std::string::npos;
  return {sample.what, is_complete ? 0 : sample.address, 0};
}

std::vector<blocked_on> blocked_list::of(std::optional<std::int64_t> blocked_ns) const {
  std::vector<blocked_on> scaled = by;
  if (!blocked_ns) return scaled;
  for (blocked_on& one : scaled) {
    one.ns = std::llround(one.share * static_cast<double>(*blocked_ns));
  }
  return scaled;
}

const blocked_list* run_blocked_on::of(std::string_view name) const {
  const auto found = ops.find(name);
  return found == ops.end() ? nullptr : &found->second;
}

run_blocked_on join_waits(const run_data& run, diagnostic_log& diagnostics) {
  run_blocked_on joined;
  const sampled_waits waits(
      run, sampled_waits::operations_of::all_threads, run.names,
      [&run](std::size_t file, const on_operation& visit) { run.for_each_operation(file, visit); },
      diagnostics);
  for (const process_waits& process : waits.processes()) joined.processes.push_back(process.ending);
  std::map<std::size_t, stage_id> stages;  // of the logs of threads that build batches
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.file) stages.emplace(s.file->value(), s.stage);
  }
  const intervals pauses = between_epochs(run.batches);
  const std::set<std::size_t> consumers = logs_of_consumers(run.batches);
  collector in_pauses;
  std::map<std::uint32_t, collector> collectors;
  std::map<stage_id, collector> between;
  std::set<std::uint64_t> elsewhere;  // threads with logs of other loaders
  for (const log_file& file : run.files->elsewhere) elsewhere.insert(file.number);
  for (const sampled_wait& wait : waits.all()) {
    const wait_object what = what_of(*wait.sample);
    const std::string held_by = waits.name_of(wait.holder);
    const bool is_other = !wait.holder_has_log && elsewhere.count(wait.sample->holder) != 0;
    const std::string holder = is_other ? other_loader_code : held_by;
    const auto stage = wait.logs.empty() ? stages.end() : stages.find(wait.logs.front());
    if (wait.open.empty() && stage != stages.end()) {
      between[stage->second].add(*wait.sample, wait.process, what, holder);
    }
    const bool is_marked = std::any_of(wait.open.begin(), wait.open.end(), [](std::uint32_t name) {
      return name != sampled_wait::of_step;
    });
    if (!is_marked && !wait.logs.empty() && consumers.count(wait.logs.front()) != 0 &&
        covered(pauses, wait.sample->time_ns, wait.sample->time_ns + 1) > 0) {
      in_pauses.add(*wait.sample, wait.process, what, holder);
    }
    for (const std::uint32_t name : wait.open) {
      collectors[name].add(*wait.sample, wait.process, what, holder);
    }
    if (wait.sample->reason != wait_reason::lock) continue;
    lock_samples& lock = joined.locks[what];
    ++lock.waits[waits.name_of(wait.in)];
    if (!held_by.empty()) ++lock.holds[held_by];
  }
  joined.during_steps = work_during_steps(run, waits);
  joined.between_epochs = in_pauses.finish();
  for (auto& [stage, of] : between) joined.between_batches[stage] = of.finish();
  for (auto& [name, of] : collectors) {
    (name == sampled_wait::of_wait            ? joined.waits
     : name == sampled_wait::of_preprocessing ? joined.preprocessing
     : name == sampled_wait::of_step          ? joined.steps
                                     : joined.ops[std::string(run.names.name(name))]) = of.finish();
  }
  return joined;
}

std::vector<blocked_on> listed(const blocked_list* list, std::optional<std::int64_t> blocked_ns) {
  constexpr std::size_t most = 20;
  if (list == nullptr) return {};
  std::vector<blocked_on> all = list->of(blocked_ns);
  if (all.size() > most) all.resize(most);
  return all;
}

bool is_lock_or_sleep(wait_reason reason) noexcept {
  return reason == wait_reason::lock || reason == wait_reason::sleep;
}

bool has_name(const blocked_on& lock) {
  return !lock.what.name.empty() && !variable_names::is_place_in_library(lock.what.name);
}

bool is_allocation(std::string_view function) {
  constexpr std::array<std::string_view, 8> functions{"malloc",        "calloc",        "realloc",
                                                      "free",          "cfree",         "memalign",
                                                      "aligned_alloc", "posix_memalign"};
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

bool is_of_lotus(const blocked_on& lock) {
  const std::string& name = has_name(lock) ? lock.what.name : lock.taken_in;
  return name.rfind("lotus::", 0) == 0 || name.find(" lotus::") != std::string::npos;
}

}  // namespace lotus::tool
