#include "model/run_data.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "base/parallel.hpp"
#include "base/terminal/table.hpp"
#include "log/clock/clock_search.hpp"
#include "log/folder/lost_records.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/shown_name.hpp"
#include "log/window/time_window.hpp"
#include "model/gathered_logs.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_reading.hpp"
#include "model/run_part.hpp"
#include "model/times/percentile_search.hpp"

namespace lotus::tool {
namespace {

/// Appends the arguments of calls to the names of operations in one log, so that calls with
/// different arguments become different operations.
class argument_names {
 public:
  /// @param side  the side logs, which contain the arguments. Must outlive this object.
  argument_names(const read_side& side, file_id file) : names_(side.names) {
    for (const operation_arguments& a : side.data.arguments) {
      if (a.file == file) all_.push_back(a);
    }
  }

  /// Returns the id of the name `name` with the arguments of the call that began at `start_ns`
  /// appended. Adds this longer name to `names` if it is new. Returns `name` itself if the call has
  /// no arguments.
  std::uint32_t name(std::uint32_t name, std::int64_t start_ns, name_table& names) {
    const auto at = std::lower_bound(
        all_.begin(), all_.end(), start_ns,
        [](const operation_arguments& a, std::int64_t ns) { return a.start_ns < ns; });
    if (at == all_.end() || at->start_ns != start_ns) return name;
    const auto [known, fresh] = known_.try_emplace({name, at->text}, name);
    if (fresh) {
      const std::string text = shown_name(names_.name(at->text));
      known->second = names.id_of_decoded(std::string(names.name(name)) + '(' + text + ')');
    }
    return known->second;
  }

 private:
  const name_table& names_;
  std::vector<operation_arguments> all_;  // arguments of the calls in the log, sorted by time
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known_;
};

/// Returns the time range of the calls that are read of one thread if only a part of the run is
/// wanted: without the calls in batches and items that the thread builds only partly in the part.
/// They would seem to belong to no batch.
/// @param read  the time range of the part.
time_window range_of_calls(const log_file& file, file_id id, const read_side& side,
                           const time_window& read) {
  time_window calls = read;
  const auto leave_out = [&](const time_span& span) {
    if (crosses(span, read.whole_from_ns)) {
      calls.whole_from_ns = std::max(*calls.whole_from_ns, span.end_ns);
    }
    if (crosses(span, read.whole_to_ns)) {
      calls.whole_to_ns = std::min(*calls.whole_to_ns, span.start_ns);
    }
  };
  read_log(file, nullptr, [&](const log_line& line) {
    if (line.kind == record_kind::preprocessed) leave_out({line.start_ns, line.end_ns()});
  });
  for (const auto& [of, stage] : side.left_out) {
    if (of == id) leave_out(stage);
  }
  return calls;
}

/// Reads one log.
/// @param side  the side logs of the run.
/// @param read  the time range to read: all lines that overlap with this range are used.
/// @param calls  the same for operations.
/// @return what the times of the log say about the clock.
clock_watch read_one(const log_file& file, std::size_t index, const run_parts& wanted,
                     const read_side& side, const time_window& read, const time_window& calls,
                     log_data& to) {
  clock_watch clock;
  const off_cpu_time& off_cpu = side.data.off_cpu[index];
  const off_cpu_time& aggregated = side.data.aggregated[index];
  std::optional<argument_names> arguments;
  if (wanted.by_arguments) arguments.emplace(side, file_id(index));
  const bool totals = wanted.totals || wanted.durations || wanted.blocks;
  const bool named = totals || wanted.operations;
  // Count in local variables and not in `to`, because `to` may lie in the same cache line as data
  // that another thread writes, which would make each addition slow.
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  nesting_times nesting;
  // The time of a call without the aggregated operations inside it.
  const auto worked_ns = [&aggregated](const log_line& line) {
    return aggregated.intervals().empty() ? line.duration_ns
                                          : aggregated.split(line.start_ns, line.end_ns()).cpu_ns;
  };
  read_log(file, &to.diagnostics, [&](const log_line& line) {
    const bool is_call = line.kind == record_kind::op;
    if (!(is_call ? calls : read).has(line.start_ns, line.end_ns())) return;
    clock.see(line.start_ns, line.end_ns());
    first_ns = std::min(first_ns, line.start_ns);
    last_ns = std::max(last_ns, line.end_ns());
    if (!is_call) {
      to.records.push_back({line.start_ns, line.duration_ns, line.batch, file_id(index), 0,
                            line.kind, consumer_id(file.consumer)});
      return;
    }
    ++operations;
    if (!named) return;
    if (wanted.only != nullptr && wanted.only->find(line.name) == raw_name_table::none) {
      nesting.self_ns(line.start_ns, line.duration_ns, worked_ns(line));
      return;
    }
    std::uint32_t name = to.names.id(line.name);
    if (arguments) name = arguments->name(name, line.start_ns, to.names);
    if (wanted.operations) to.packed.push({line.start_ns, line.duration_ns, name});
    if (!totals) return;
    if (name >= to.ops.size()) to.ops.resize(name + std::size_t{1});
    log_op& op = to.ops[name];
    if (wanted.durations) op.durations.add(line.duration_ns);
    if (wanted.blocks) {
      if (name >= to.blocks.size()) to.blocks.resize(name + std::size_t{1});
      to.blocks[name].add(line.duration_ns);
    }
    if (off_cpu.known()) {
      if (name >= to.cpu.size()) to.cpu.resize(name + std::size_t{1}, cpu_split{0, 0, 0});
      to.cpu[name] += off_cpu.split(line.start_ns, line.end_ns());
    }
    op.self_ns += nesting.self_ns(line.start_ns, line.duration_ns, worked_ns(line));
    ++op.share.count;
    op.share.total_ns += line.duration_ns;
    op.share.max_ns = std::max(op.share.max_ns, line.duration_ns);
  });
  to.packed.finish();
  to.operations = operations;
  to.first_ns = first_ns;
  to.last_ns = last_ns;
  return clock;
}

/// Calls `work(index)` for each log, on several threads.
template <class Work>
void for_each_log(const run_files& run, Work&& work) {
  // More threads would not be faster, because reading logs is limited by memory bandwidth.
  constexpr std::size_t max_threads = 4;
  for_each_in_parallel(run.files.size(), max_threads, work);
}

/// Reads all logs of a run, several at a time, and returns the batch records. Stores all other data
/// in `data`.
/// @param read  the time range of the run to read.
/// @param is_cut  whether this is a part that the user wants.
/// @param clocks  receives what the times of each log say about the clock.
batch_records read_logs(const run_files& run, const run_parts& wanted, const read_side& side,
                        const time_window& read, bool is_cut, std::vector<clock_watch>& clocks,
                        run_data& data, diagnostic_log& diagnostics) {
  gathered_logs logs(side.data, data, diagnostics);
  const bool quiet = diagnostics.quiet();
  clocks.resize(run.files.size());
  for_each_log(run, [&](std::size_t f) {
    auto log = std::make_unique<log_data>(quiet);
    try {
      const log_file& file = run.files[f];
      const time_window calls = is_cut ? range_of_calls(file, file_id(f), side, read) : read;
      clocks[f] = read_one(file, f, wanted, side, read, calls, *log);
    } catch (...) {
      log->failure = std::current_exception();
    }
    logs.take(f, std::move(log));
  });
  return logs.finish();
}

/// Adds a wait for each batch that a consumer received at the end of one of `waits`, unless the
/// records contain waits.
void add_waits(const std::vector<time_span>& waits, batch_records& records) {
  constexpr std::int64_t later_ns = 1'000'000;  // a reception is marked so soon after its wait
  batch_records added;
  for (const batch_record& record : records) {
    if (record.kind == record_kind::wait) return;
    if (record.kind != record_kind::consumed) continue;
    const auto after =
        std::upper_bound(waits.begin(), waits.end(), record.start_ns,
                         [](std::int64_t ns, const time_span& wait) { return ns < wait.end_ns; });
    if (after == waits.begin()) continue;
    const time_span& wait = *std::prev(after);
    if (record.start_ns - wait.end_ns > later_ns) continue;
    batch_record of = record;
    of.kind = record_kind::wait;
    of.start_ns = wait.start_ns;
    of.duration_ns = wait.duration_ns();
    added.push_back(of);
  }
  records.insert(records.end(), added.begin(), added.end());
}

/// Computes the percentiles of operations with so many calls that their durations are not all in
/// memory. This reads the operations again.
void describe_many(run_data& data) {
  const auto is_known = [](const op_samples& op) { return op.durations.are_all(); };
  if (std::all_of(data.ops.begin(), data.ops.end(), is_known)) return;
  std::vector<percentile_search> searches;
  // For each operation, indexed by the id of its name: its index in `searches`.
  std::vector<std::optional<std::size_t>> search_of(data.names.size());
  for (std::uint32_t name = 0; name < data.ops.size(); ++name) {
    if (data.ops[name].durations.are_all()) continue;
    search_of[name] = searches.size();
    searches.emplace_back(data.ops[name].durations, described_shares());
  }
  finish(searches, [&](auto&& look) {
    for_each_log(*data.files, [&](std::size_t f) {
      data.for_each_operation(f, [&](const operation& op) {
        if (search_of[op.name]) look(*search_of[op.name], op.duration_ns);
      });
    });
  });
  for (std::uint32_t name = 0; name < data.ops.size(); ++name) {
    if (!search_of[name]) continue;
    data.ops[name].change_details().time =
        describe(data.ops[name].durations, searches[*search_of[name]]);
  }
}

/// Moves the data of the side logs into `data.side`. Adds the names that occur in the side logs to
/// the names of the run.
void take_side(read_side side, run_data& data) {
  std::vector<std::uint32_t> number;
  number.reserve(side.names.size());
  for (std::uint32_t n = 0; n < side.names.size(); ++n) {
    number.push_back(data.names.id_of_decoded(side.names.name(n)));
  }
  data.side = std::move(side.data);
  for (stage_span& s : data.side.stages) s.name = number[s.name];
  for (async_segment& p : data.side.segments) p.name = number[p.name];
  for (counter_value& c : data.side.counters) c.name = number[c.name];
  for (named_range& r : data.side.ranges) r.name = number[r.name];
  for (operation_arguments& a : data.side.arguments) a.text = number[a.text];
  heap_data& heap = data.side.heap;
  std::map<std::uint32_t, heap_use> operations;
  for (const auto& [name, use] : heap.operations) operations[number[name]] = use;
  heap.operations = std::move(operations);
  for (auto& [pid, process] : heap.processes) {
    process.unit_name = number[process.unit_name];
    for (held_bytes& h : process.by_operation) h.name = number[h.name];
  }
}

}  // namespace

void worker_shares::set(std::size_t file, const worker_share& share) {
  if (size_ > 0) {
    if (before_ == nullptr) before_ = std::make_unique<std::vector<worker_share>>();
    before_->resize(size_);
    before_->back() = last_;
  }
  last_ = share;
  size_ = file + 1;
}

const op_details& op_samples::details() const noexcept {
  static const op_details none;
  return details_ != nullptr ? *details_ : none;
}

op_details& op_samples::change_details() {
  if (details_ == nullptr) details_ = std::make_unique<op_details>();
  return *details_;
}

namespace {

/// Leaves out what is known only of the whole run, because these figures would be wrong for a part.
void leave_out_sums(run_data& data, diagnostic_log& diagnostics) {
  const auto note = [&](const char* what) {
    diagnostics.note(data.files->dir + ": " + what +
                     " left out: it is known only for the whole run, not for a part of it");
  };
  if (!data.aggregated.empty()) note("the time of aggregated operations is");
  if (data.side.heap.known()) note("the heap use of operations is");
  data.aggregated.clear();
  data.side.heap = {};
  data.counts = {};
}

/// Finds out the times of the part of a run that the user wants. If the run has no such part,
/// reports this, and no record lies in the part that is found.
void find_part(const run_files& run, diagnostic_log& diagnostics) {
  diagnostic_log silent = diagnostic_log::silenced();
  run_parts everything;
  everything.beyond_part = true;
  const run_data whole = read_run(run, everything, silent);
  const std::int64_t run_ns = whole.empty() ? 0 : whole.last_ns - whole.first_ns;
  run.part = time_window{INT64_MAX, INT64_MIN};
  if (!has_part(*run.wanted, whole)) {
    diagnostics.warning(run.dir + ": has no batch of the number given to --from or --to");
    return;
  }
  const time_window part = part_of(*run.wanted, whole);
  if (whole.empty() || !part.has(whole.first_ns, whole.last_ns)) {
    diagnostics.warning(run.dir + ": nothing was recorded in this part of the run; the run takes " +
                        human_time(run_ns));
    return;
  }
  run.part = part;
  diagnostics.note(
      run.dir + ": only the part from " +
      human_time(std::max(part.from_ns.value_or(0) - whole.first_ns, std::int64_t{0})) + " to " +
      human_time(std::min(part.to_ns.value_or(INT64_MAX) - whole.first_ns, run_ns)) + " of " +
      human_time(run_ns) + "; what began before it or ended after it is left out");
}

/// Reads a run without correcting the times in its logs.
/// @param clocks  receives what the times of each log say about the clock.
run_data read_as_it_is(const run_files& run, const run_parts& asked,
                       std::vector<clock_watch>& clocks, diagnostic_log& diagnostics) {
  run_parts wanted = asked;
  wanted.operations = wanted.operations || wanted.durations;
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  time_window read = run.window ? run.window->read : time_window();
  const std::int64_t whole_from_ns = processes.records().whole_from_ns;
  if (whole_from_ns != 0) read.whole_from_ns = whole_from_ns;
  const bool is_cut = run.part && !asked.beyond_part;
  if (is_cut) {
    if (run.part->from_ns) read.whole_from_ns = std::max(whole_from_ns, *run.part->from_ns);
    read.whole_to_ns = run.part->to_ns;
  }
  read_side side = read_side_logs(run, processes, read, diagnostics);
  run_data data;
  data.files = &run;
  data.cpus = processes.cpus();
  data.cpu_time = processes.cpu_time();
  data.counts = processes.counts();
  for (const log_file& file : run.files) {
    data.thread_cpus_of.push_back(processes.cpus_of_thread(file.number));
  }
  data.first_ns = side.first_ns;
  data.last_ns = side.last_ns;
  data.logs.resize(run.files.size());
  batch_records records = read_logs(run, wanted, side, read, is_cut, clocks, data, diagnostics);
  if (wanted.waits != nullptr) add_waits(*wanted.waits, records);
  if (run.window && run.window->run_first_ns && !is_cut) {
    data.first_ns = std::max(*run.window->run_first_ns, whole_from_ns);
    data.last_ns = *run.window->run_last_ns;
  }
  data.records = counted_records(run, processes);
  data.aggregated = read_aggregated(run, diagnostics);
  take_side(std::move(side), data);
  if (is_cut) leave_out_sums(data, diagnostics);
  const bool cut_off = run.window || is_cut || whole_from_ns != 0;
  for_each_in_parallel(wanted.durations ? 2 : 1, unlimited_threads, [&](std::size_t i) {
    if (i == 0) {
      data.batches =
          run_batches(std::move(records), data.side.stages, data.side.inclusions, cut_off);
    } else {
      describe_many(data);
    }
  });
  // Heap use is recorded by operation name only, so it is unknown for a name with arguments.
  if (data.side.heap.known() && !wanted.by_arguments) {
    for (std::uint32_t name = 0; name < data.ops.size(); ++name) {
      data.ops[name].change_details().heap = data.side.heap.of(name);
    }
  }
  return data;
}

}  // namespace

run_data read_run(const run_files& run, const run_parts& asked, diagnostic_log& diagnostics) {
  if (run.wanted && !run.part && !asked.beyond_part) find_part(run, diagnostics);
  std::vector<clock_watch> clocks;
  const bool known = run.files.empty() || run.files.front().clock != nullptr;
  std::ostringstream text;
  diagnostic_log first(text, diagnostics.quiet());
  run_data data;
  try {
    data = read_as_it_is(run, asked, clocks, known ? diagnostics : first);
  } catch (...) {
    diagnostics.absorb(text.str(), first);
    throw;
  }
  if (!known) {
    // A part of a run does not show whether the clock was set.
    const bool search = !run.window && may_have_been_set(clocks);
    const auto step = search ? find_clock_step(run, clocks) : nullptr;
    if (step == nullptr) {
      diagnostics.absorb(text.str(), first);
      return data;
    }
    const auto set = [&run](const std::shared_ptr<const clock_step>& found) {
      for (const auto* files : {&run.files, &run.side_files, &run.elsewhere}) {
        for (const log_file& file : *files) file.clock = found;
      }
    };
    set(step);
    data = read_as_it_is(run, asked, clocks, diagnostics);
    if (may_have_been_set(clocks) && was_set_again(run, clocks)) {
      set(several_clock_steps());
      diagnostic_log silent = diagnostic_log::silenced();
      data = read_as_it_is(run, asked, clocks, silent);
    }
  }
  if (!run.files.empty()) diagnostics.note(run.dir + ": " + described(*run.files.front().clock));
  return data;
}

}  // namespace lotus::tool
