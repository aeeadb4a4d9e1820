#include "waits/stacks/snapshot_threads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "describe/description.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/stack_files.hpp"
#include "waits/join/sampled_waits.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

/// Returns the end of the name of an information file, which identifies the process.
std::string ending_of(const std::string& path) {
  const std::size_t at = path.rfind(lotus::detail::run_info_start);
  if (at == std::string::npos) return {};
  return path.substr(at + std::string_view(lotus::detail::run_info_start).size());
}

/// Returns the process that took the snapshot; "" if the run is no snapshot.
std::string process_of_snapshot(const run_processes& processes) {
  for (const auto& [path, process] : processes.by_file()) {
    if (process.snapshot_ns != 0) return ending_of(path);
  }
  return {};
}

/// Returns the processes whose threads were recorded for the snapshot, first the one that took it.
/// @param taker  the process that took the snapshot, and recorded its threads at `now_ns`.
std::vector<std::string> recorded_processes(const run_processes& processes, unwound_stacks& stacks,
                                            const std::string& taker, std::int64_t now_ns) {
  // A process answers within a second. States that are older are from an earlier snapshot.
  constexpr std::int64_t max_apart_ns = 2'000'000'000;
  std::vector<std::string> all{taker};
  for (const auto& [path, process] : processes.by_file()) {
    const std::string ending = ending_of(path);
    if (ending.empty() || ending == taker) continue;
    const process_stacks& other = stacks.read(ending);
    if (!other.states.empty() && std::abs(other.states_ns - now_ns) <= max_apart_ns) {
      all.push_back(ending);
    }
  }
  return all;
}

/// Finds the last operation that a thread completed at or before `now_ns`, and stores it in `to`.
void find_last(const run_data& run, const std::vector<std::size_t>& logs, std::int64_t now_ns,
               snapshot_thread& to) {
  std::int64_t last_ns = INT64_MIN;
  for (const std::size_t file : logs) {
    run.for_each_operation(file, [&](const operation& op) {
      if (op.end_ns() < last_ns || op.end_ns() > now_ns) return;
      last_ns = op.end_ns();
      to.last = shown_name(run.names.name(op.name));
    });
  }
  if (!to.last.empty()) to.since_last_ns = now_ns - last_ns;
}

/// Returns a number by which threads are sorted in the output. The threads with the smallest
/// number, those that wait for a batch, come first, because they are the most important to the
/// user.
int order_of(const snapshot_thread& t) {
  return t.batch_wait_ns > 0                                                 ? 0
         : t.waits && t.reason == wait_reason::lock                          ? 1
         : !t.last.empty()                                                   ? 2
         : t.waits && t.reason != wait_reason::condition && !t.calls.empty() ? 3
                                                                             : 4;
}

/// Returns the thread's id, with the process if that is another one than the one that took the
/// snapshot.
std::string number_of(const snapshot_thread& t) {
  std::string number = std::to_string(t.tid);
  if (!t.in_other_process || t.pid == 0) return number;
  return t.pid == t.tid ? "process " + number : number + " of process " + std::to_string(t.pid);
}

std::string state_text(const snapshot_thread& t) {
  std::string text;
  if (t.batch_wait_ns > 0) {
    text = "it has waited for a batch for " + human_time(t.batch_wait_ns) + ". This thread ";
  } else if (!t.last.empty()) {
    text = "its last recorded operation, " + printable_line(t.last) + ", ended " +
           human_time(t.since_last_ns) + " before the snapshot. This thread ";
  }
  if (!t.waits) return text + "is running";
  blocked_on wait;
  wait.reason = t.reason;
  wait.what = t.what;
  if (t.holder != 0) wait.held_by = "thread " + std::to_string(t.holder);
  return text + wait_phrase(wait, "");
}

}  // namespace

std::vector<snapshot_thread> threads_at_snapshot(const run_data& run, diagnostic_log& diagnostics) {
  const run_processes processes = run_processes::read(run.files->info_dir, run.files->earlier_info);
  const std::string taker = process_of_snapshot(processes);
  if (taker.empty()) return {};
  unwound_stacks stacks(*run.files, diagnostics);
  if (stacks.read(taker).states.empty()) return {};
  const std::vector<std::string> recorded =
      recorded_processes(processes, stacks, taker, stacks.read(taker).states_ns);
  // The names of locks that are global variables, by process and address. Only wait samples contain
  // these names.
  std::map<std::pair<std::string, std::uint64_t>, std::string> named;
  for (const process_waits& process : read_waits(*run.files, diagnostics)) {
    for (const wait_sample& sample : process.samples) {
      if (sample.address != 0 && !sample.what.empty()) {
        named[{process.ending, sample.address}] = sample.what;
      }
    }
  }
  for (const std::string& ending : recorded) {
    for (const thread_state& state : stacks.read(ending).states) {
      if (state.wait.stack != 0) stacks.add(ending, state.wait.stack);
    }
  }
  stacks.name_all();
  const thread_logs logs(run);
  std::vector<snapshot_thread> threads;
  for (const std::string& ending : recorded) {
    const process_stacks& of = stacks.read(ending);
    const process_info* const process = processes.process_named(ending);
    for (const thread_state& state : of.states) {
      snapshot_thread t;
      t.pid = process == nullptr ? 0 : process->pid;
      t.in_other_process = ending != taker;
      t.tid = state.tid;
      t.name = state.name;
      t.waits = state.waits;
      t.reason = state.wait.reason;
      wait_sample wait = state.wait;
      const auto name = named.find({ending, wait.address});
      if (wait.what.empty() && name != named.end()) wait.what = name->second;
      if (state.waits) t.what = what_of(wait);
      t.holder = state.wait.holder;
      if (state.batch_since_ns != 0) {
        t.batch_wait_ns = std::max<std::int64_t>(1, of.states_ns - state.batch_since_ns);
      }
      find_last(run, logs.of(state.tid, ending), of.states_ns, t);
      if (state.wait.stack != 0) t.calls = stacks.of(ending, state.wait.stack);
      threads.push_back(std::move(t));
    }
  }
  std::stable_sort(
      threads.begin(), threads.end(),
      [](const snapshot_thread& a, const snapshot_thread& b) { return order_of(a) < order_of(b); });
  return threads;
}

void print_snapshot_threads(const std::vector<snapshot_thread>& threads, std::ostream& out) {
  if (threads.empty()) return;
  out << "\nthreads when the snapshot was taken\n";
  constexpr std::size_t max_numbers = 4;
  std::vector<bool> printed(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (printed[i]) continue;
    const snapshot_thread& t = threads[i];
    // Threads of a pool often do the same, so they are printed together.
    std::string numbers = number_of(t);
    std::size_t same = 1;
    for (std::size_t other = i + 1; other < threads.size(); ++other) {
      const snapshot_thread& o = threads[other];
      if (o.batch_wait_ns > 0 || o.name != t.name || o.calls != t.calls || o.last != t.last ||
          o.waits != t.waits || o.reason != t.reason || !(o.what == t.what)) {
        continue;
      }
      printed[other] = true;
      if (++same <= max_numbers) numbers += ", " + number_of(o);
    }
    if (same > max_numbers) numbers += " and " + std::to_string(same - max_numbers) + " more";
    print_sentences(out,
                    "thread '" + printable_line(t.name) + (same == 1 ? "' (ID " : "' (IDs ") +
                        numbers + "): " + state_text(t),
                    "  ", "    ");
    if (!t.calls.empty()) print_fitted(out, "call stack: " + calls_text(t.calls), "    ", "      ");
  }
}

const description<snapshot_thread>& description_of(const snapshot_thread*) {
  using t = const snapshot_thread&;
  static const description<snapshot_thread> all(
      "thread_at_snapshot", "what a thread did when the snapshot was taken",
      {
          {"tid", &snapshot_thread::tid, "its id"},
          {"pid", &snapshot_thread::pid, "its process; absent if unknown", if_any},
          {"name", [](t of) { return printable(of.name); }, "its name"},
          {"batch_wait_ns", &snapshot_thread::batch_wait_ns,
           "for how long it had waited for a batch, in ns", if_any},
          {"last_operation", &snapshot_thread::last, "the operation that ended last", if_any},
          {"since_last_operation_ns", &snapshot_thread::since_last_ns,
           "how long before the snapshot that was, in ns", [](t of) { return !of.last.empty(); }},
          {"running", [](t of) { return !of.waits; }, "whether it was running"},
          {"reason", [](t of) { return reason_word(of.reason); }, "why it was blocked",
           [](t of) { return of.waits; }, words_of(lotus::detail::wait_reason_words)},
          {"what", [](t of) { return object_text(of.what); }, "name or path of what it waited for",
           if_any},
          {"holder", &snapshot_thread::holder, "id of the thread that held the lock",
           [](t of) { return of.waits && of.holder != 0; }},
          {"stack", &snapshot_thread::calls, "its open calls, the innermost first", if_any},
      });
  return all;
}

}  // namespace lotus::tool
