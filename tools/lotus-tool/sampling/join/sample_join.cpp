#include "sampling/join/sample_join.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>

#include "base/files/found_file.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "mapping/read/function_report.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/run_data.hpp"
#include "sampling/read/sample_files.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

void count(const located_sample& s, const located_samples& all, std::string_view counted_event,
           joined_op& to) {
  const std::string& event = all.events[s.event];
  to.counters[event] += s.value;
  if (event != counted_event) return;
  const joined_samples one{1, s.value};
  to.total += one;
  const auto& [key, inlined] = all.functions[s.function];
  joined_function& function = to.functions[key];
  function.total += one;
  if (!inlined.empty()) function.inlined[inlined] += one;
}

/// For each part of [from_ns, to_ns] during which an operation was the innermost open operation of
/// its thread, calls `on_wall(name, ns)` with the operation's name and the length of the part.
/// @param ops  operations of the thread, sorted as for sweep().
template <class OnWall>
void own_wall(const std::vector<operation>& ops, std::int64_t from_ns, std::int64_t to_ns,
              OnWall&& on_wall) {
  std::vector<const operation*> open;
  std::int64_t now_ns = from_ns;
  const auto go_on = [&](std::int64_t until_ns) {
    const std::int64_t end_ns = std::min(until_ns, to_ns);
    if (end_ns <= now_ns) return;
    if (!open.empty()) on_wall(open.back()->name, end_ns - now_ns);
    now_ns = end_ns;
  };
  const auto close_until = [&](std::int64_t time_ns) {
    for (; !open.empty() && open.back()->end_ns() <= time_ns; open.pop_back()) {
      go_on(open.back()->end_ns());
    }
  };
  for (const operation& op : ops) {
    close_until(op.start_ns);
    go_on(op.start_ns);
    open.push_back(&op);
  }
  close_until(INT64_MAX);
}

/// For each sample of one thread, in order of time, calls `on_sample(sample, operation)` with the
/// innermost operation of the thread that was open at the time, or with null.
/// @param ops  operations of the thread, sorted by start; of equal starts, the longer one first.
template <class OnSample>
void sweep(const std::vector<operation>& ops, const std::vector<const located_sample*>& samples,
           OnSample&& on_sample) {
  std::vector<const operation*> open;
  std::size_t next = 0;
  const auto ended = [](const operation& op, std::int64_t now_ns) {
    return op.start_ns + op.duration_ns <= now_ns;
  };
  for (const located_sample* s : samples) {
    while (next < ops.size() && ops[next].start_ns <= s->time_ns) {
      while (!open.empty() && ended(*open.back(), ops[next].start_ns)) open.pop_back();
      open.push_back(&ops[next++]);
    }
    while (!open.empty() && ended(*open.back(), s->time_ns)) open.pop_back();
    on_sample(*s, open.empty() ? nullptr : open.back());
  }
}

/// Finds the process ids and the names of the threads that have logs in a run.
class log_threads {
 public:
  explicit log_threads(const run_files& run)
      : processes_(run_processes::read(run.info_dir, run.earlier_info)) {
    for (const log_file& file : run.files) {
      const process_info* const process = processes_.process_of(file.number);
      const auto [first, is_new] = process_of_.try_emplace(of_log(file.number), process);
      if (!is_new && first->second != process) several_.insert(first->first);
    }
  }

  std::uint64_t of_log(std::uint64_t number) const {
    const process_info* const process = processes_.process_of(number);
    return process != nullptr ? process->thread_of(number) : number;
  }
  bool is_of_several(std::uint64_t tid) const { return several_.count(tid) != 0; }
  bool has_log(std::uint64_t tid) const { return process_of_.count(tid) != 0; }
  /// Returns the id of the thread's process; 0 if unknown.
  std::uint64_t pid_of(std::uint64_t tid) const {
    const auto at = process_of_.find(tid);
    return at == process_of_.end() || at->second == nullptr ? 0 : at->second->pid;
  }
  /// Returns the name of a thread: the one in the samples or, if they contain none, the one in the
  /// information file of the thread's process.
  std::string name_of(std::uint32_t tid, const located_samples& samples) const {
    const auto seen = samples.thread_names.find(tid);
    if (seen != samples.thread_names.end()) return seen->second;
    const auto at = process_of_.find(tid);
    if (at == process_of_.end() || at->second == nullptr) return {};
    const auto thread = at->second->threads.find(tid);
    return thread == at->second->threads.end() ? std::string() : thread->second;
  }

 private:
  run_processes processes_;
  std::map<std::uint64_t, const process_info*> process_of_;  // process by thread id
  std::set<std::uint64_t> several_;
};

}  // namespace

located_samples samples_of_run(const std::string& dir, diagnostic_log& diagnostics) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (!is_samples_name(entry.path().filename().string())) continue;
    if (is_found_file(entry)) {
      files.push_back(entry.path().string());
    } else {
      diagnostics.warning(entry.path().string() + ": ignored: it is a link or not a regular file");
    }
  }
  std::sort(files.begin(), files.end());
  located_samples found;
  for (const std::string& file : files) add_samples(file, found, diagnostics);
  return found;
}

joined_samples joined_run::total() const noexcept {
  joined_samples sum = outside.total;
  for (const auto& [name, op] : ops) sum += op.total;
  return sum;
}

void join(const run_files& run, const located_samples& samples, joined_run& to,
          diagnostic_log& diagnostics) {
  if (to.event.empty() && !samples.events.empty()) {
    to.event = samples.events[index_of_time_event(samples.events)];
  }
  const run_data data = read_run(run, {false, false, true}, diagnostics);
  std::unordered_map<std::uint64_t, std::vector<operation>> by_thread;
  const log_threads threads{run};
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    std::vector<operation>& ops = by_thread[threads.of_log(run.files[f].number)];
    data.for_each_operation(f, [&](const operation& op) { ops.push_back(op); });
  }
  for (auto& [tid, ops] : by_thread) {
    std::stable_sort(ops.begin(), ops.end(), [](const operation& a, const operation& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
  }
  const auto joined = [&](std::uint32_t name) -> joined_op& {
    return to.ops[shown_name(data.names.name(name))];
  };
  // Collect the samples of threads without a log separately, because such a thread may do work for
  // an operation of another thread.
  std::unordered_map<std::uint64_t, std::vector<const located_sample*>> samples_by_thread;
  std::vector<const located_sample*> without_log;
  std::uint64_t left_out = 0;
  for (const located_sample& s : samples.samples) {
    if (run.part && !run.part->has(s.time_ns, s.time_ns)) continue;
    if (threads.is_of_several(s.tid)) {
      ++left_out;
    } else {
      samples_by_thread[s.tid].push_back(&s);
      if (!threads.has_log(s.tid) && samples.events[s.event] == to.event) without_log.push_back(&s);
    }
  }
  if (left_out > 0) {
    diagnostics.warning(
        run.dir + ": " + std::to_string(left_out) +
        " samples ignored: processes of several containers have the same thread ids");
  }
  const auto sort = [](std::vector<const located_sample*>& of) {
    std::stable_sort(of.begin(), of.end(),
                     [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
  };
  for (auto& [tid, own] : samples_by_thread) {
    sort(own);
    const bool has_log = threads.has_log(tid);
    sweep(by_thread[tid], own, [&](const located_sample& s, const operation* op) {
      count(s, samples, to.event, op == nullptr ? to.outside : joined(op->name));
      if (op == nullptr && samples.events[s.event] == to.event) {
        to.outside_threads.count(s.tid, threads.name_of(s.tid, samples), has_log, {1, s.value});
      }
    });
  }
  sort(without_log);
  // For each sample in without_log: the operations whose `meanwhile` already contains the sample.
  // There it must count only once, even if several threads run the operation.
  std::vector<std::set<std::uint32_t>> counted(without_log.size());
  const bool everything = samples.from_ns > samples.to_ns;
  for (const auto& [tid, ops] : by_thread) {
    if (ops.empty()) continue;
    own_wall(ops, everything ? INT64_MIN : samples.from_ns, everything ? INT64_MAX : samples.to_ns,
             [&](std::uint32_t name, std::int64_t ns) { joined(name).wall_ns += ns; });
    const std::uint64_t pid = threads.pid_of(tid);
    std::size_t index = 0;
    sweep(ops, without_log, [&](const located_sample& s, const operation* op) {
      std::set<std::uint32_t>& by = counted[index++];
      if (op == nullptr || (s.pid != pid && s.pid != 0 && pid != 0)) return;
      joined_op& waits = joined(op->name);
      waits.meanwhile_sum += {1, s.value};
      if (!by.insert(op->name).second) return;
      waits.meanwhile.count(s.tid, threads.name_of(s.tid, samples), false, {1, s.value});
    });
  }
}

bool may_wait_for_others(const joined_op& op, const joined_run& run) {
  if (!is_cpu_time(run.event) || op.wall_ns <= 0) return false;
  constexpr std::uint64_t enough_samples = 10;
  const auto wall_ns = static_cast<std::uint64_t>(op.wall_ns);
  return op.meanwhile_sum.samples >= enough_samples && op.total.value < wall_ns / 2 &&
         op.meanwhile_sum.value >= (wall_ns - op.total.value) / 4;
}

namespace {

/// Removes a number at a name's end: "av:h264:df3" -> "av:h264:df". Keeps a name of digits only.
std::string_view without_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

}  // namespace

joined_samples& joined_samples::operator+=(const joined_samples& more) noexcept {
  samples += more.samples;
  value += more.value;
  return *this;
}

double joined_samples::share_of(const joined_samples& all) const noexcept {
  return all.value == 0 ? 0 : static_cast<double>(value) / static_cast<double>(all.value);
}

std::string thread_group::name() const {
  if (names.size() == 1) return *names.begin();
  return std::string(without_number(*names.begin())) + '*';
}

void thread_groups::count(std::uint32_t tid, std::string_view name, bool recorded,
                          const joined_samples& more) {
  thread_group& group = groups_[{recorded, std::string(without_number(name))}];
  group.recorded = recorded;
  group.names.emplace(name);
  group.tids.insert(tid);
  group.total += more;
}

std::vector<thread_group> thread_groups::sorted() const {
  std::vector<thread_group> all;
  all.reserve(groups_.size());
  for (const auto& [key, group] : groups_) all.push_back(group);
  std::stable_sort(all.begin(), all.end(), [](const thread_group& a, const thread_group& b) {
    return a.total.value > b.total.value;
  });
  return all;
}

}  // namespace lotus::tool
