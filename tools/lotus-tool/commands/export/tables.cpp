#include "commands/export/tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "aggregates/data/aggregated.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"
#include "log/process_info.hpp"
#include "model/calls/call_stack.hpp"
#include "model/quantities.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/sampled_waits.hpp"
#include "waits/stacks/unwound_stacks.hpp"

namespace lotus::tool {
namespace {

enum table : std::size_t { runs, spans, batches, stages, counters, aggregated, blocked };

/// The process and thread that recorded a row. The texts in the cells belong to an object of
/// run_processes, which must outlive this object.
struct recorded_by {
  cell host, rank, pid, tid, thread;
};

class table_writer {
 public:
  table_writer(std::int64_t number, const run_data& run, row_sink& sink,
               diagnostic_log& diagnostics)
      : number_(number),
        run_(run),
        diagnostics_(diagnostics),
        sink_(sink),
        loader_(run.files->loader),
        processes_(run_processes::read(run.files->info_dir, run.files->earlier_info)) {
    for (const log_file& file : run.files->files) by_.push_back(recorded_by_log(file.number));
    preprocessing_of_file_.resize(run.files->files.size());
    for (const preprocessing_span& span : run.batches.preprocessing_spans()) {
      if (span.file) preprocessing_of_file_[span.file->value()].push_back(&span);
    }
    for (auto& of_file : preprocessing_of_file_) {
      std::stable_sort(of_file.begin(), of_file.end(),
                       [](const preprocessing_span* a, const preprocessing_span* b) {
                         return a->start_ns < b->start_ns;
                       });
    }
  }

  void write() {
    write_run();
    for (std::size_t file = 0; file < run_.files->files.size(); ++file) write_spans(file);
    write_batches();
    write_stages();
    write_counters();
    for (const log_file& file : run_.files->aggregated) write_aggregated(file);
    write_blocked_on();
  }

 private:
  recorded_by recorded_by_log(std::uint64_t log_number) const {
    recorded_by by;
    const process_info* process = processes_.process_of(log_number);
    const std::uint64_t tid = process != nullptr ? process->thread_of(log_number) : log_number;
    by.tid = static_cast<std::int64_t>(tid);
    if (process == nullptr) return by;
    by.pid = static_cast<std::int64_t>(process->pid);
    by.rank = cell_of(process->rank);
    if (!process->host.empty()) by.host = std::string_view(process->host);
    const auto name = process->threads.find(tid);
    if (name != process->threads.end() && !name->second.empty()) {
      by.thread = std::string_view(name->second);
    }
    return by;
  }

  /// Returns a name without the S that begins all names in logs.
  static std::string_view plain(std::string_view name) {
    return name.substr(0, 1) == "S" ? name.substr(1) : name;
  }
  std::string_view name_of(std::uint32_t name) const { return plain(run_.names.name(name)); }

  void write_run() {
    const std::optional<usable_cpus> cpus = run_.cpus;
    cell affinity;
    if (cpus) affinity = static_cast<std::int64_t>(cpus->affinity);
    sink_.row(runs,
              {number_, std::string_view(run_.files->dir), std::string_view(loader_), run_.first_ns,
               run_.last_ns, affinity, static_cast<std::int64_t>(run_.records.dropped)});
  }

  /// Returns the batch that a thread worked on during the whole interval; null if there is none.
  const batch* batch_of(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
    const std::vector<const preprocessing_span*>& spans_of_thread = preprocessing_of_file_[file];
    auto at = std::upper_bound(spans_of_thread.begin(), spans_of_thread.end(), start_ns,
                               [](std::int64_t time_ns, const preprocessing_span* span) {
                                 return time_ns < span->start_ns;
                               });
    constexpr int max_nested = 8;
    for (int tries = 0; at != spans_of_thread.begin() && tries < max_nested; ++tries) {
      const preprocessing_span& span = **--at;
      if (span.end_ns() >= end_ns && span.batch) return &run_.batches.at(*span.batch);
    }
    return nullptr;
  }

  void write_spans(std::size_t file) {
    const off_cpu_time* const off = run_.side.off_cpu_of(file_id(file));
    const recorded_by& by = by_[file];
    for_each_call(run_, file, [&](const call_stack::call& call, const call_stack&) {
      const operation& op = call.what;
      const batch* of = batch_of(file, op.start_ns, op.end_ns());
      cell cpu;
      if (off != nullptr) cpu = off->split(op.start_ns, op.end_ns()).cpu_ns;
      sink_.row(spans,
                {number_, by.host, by.rank, by.pid, by.tid, by.thread, std::string_view(loader_),
                 name_of(op.name), index_of(of), epoch_of(of), op.start_ns, op.duration_ns,
                 call.self_ns, cpu, static_cast<std::int64_t>(call.depth)});
    });
  }

  static cell index_of(const batch* b) { return b != nullptr ? cell(b->index) : cell(); }
  /// Returns the number of the epoch that contains a batch. The consumer of the batch counts the
  /// epochs, so an epoch has the same number in all ranks.
  cell epoch_of(const batch* b) const {
    if (b == nullptr) return {};
    return static_cast<std::int64_t>(run_.batches.epoch_of_consumer(*b));
  }

  void write_batches() {
    for (const batch& b : run_.batches.all()) {
      const batch_record* consumed = run_.batches.record(b.consumed);
      const batch_record* wait = run_.batches.record(b.wait);
      const batch_record* by_consumer = consumed != nullptr ? consumed : wait;
      const recorded_by by =
          by_consumer != nullptr ? by_[by_consumer->file.value()] : recorded_by();
      const batch_record* queued = run_.batches.record(b.queued);
      cell queued_ns;
      if (queued != nullptr) queued_ns = queued->start_ns;
      sink_.row(batches, {number_, by.host, by.rank, by.pid, std::string_view(loader_), b.index,
                          epoch_of(&b), queued_ns, cell_of(run_.batches.preprocess_ns(b)),
                          cell_of(run_.batches.wait_ns(b)), cell_of(run_.batches.delay_ns(b)),
                          cell_of(run_.batches.delivery_ns(b)),
                          cell_of(value_of(run_.batches, b, quantity::step))});
    }
  }

  void write_stages() {
    for (const preprocessing_span& s : run_.batches.preprocessing_spans()) {
      const bool named = s.stage != preprocess_stage;
      const recorded_by by = s.file ? by_[s.file->value()] : recorded_by();
      const batch* of = s.batch ? &run_.batches.at(*s.batch) : nullptr;
      sink_.row(stages, {number_, by.host, by.rank, by.pid, by.tid, std::string_view(loader_),
                         named ? name_of(s.stage.value()) : std::string_view("preprocess"),
                         s.number, static_cast<std::int64_t>(s.of_item), index_of(of), epoch_of(of),
                         s.start_ns, s.duration_ns});
    }
  }

  void write_counters() {
    for (const counter_value& c : run_.side.counters) {
      const recorded_by by = c.file ? by_[c.file->value()] : recorded_by();
      sink_.row(counters, {number_, by.host, by.rank, by.pid, std::string_view(loader_),
                           name_of(c.name), c.time_ns, c.value});
    }
  }

  /// Writes the aggregated operations of the process that wrote `file`.
  void write_aggregated(const log_file& file) {
    const recorded_by by = recorded_by_log(file.number);
    // The messages are discarded, because they were already printed when the run was read.
    std::ostringstream reported_already;
    diagnostic_log diagnostics(reported_already, true);
    for (const thread_aggregate& part : read_aggregates(file, diagnostics)) {
      const distribution d = describe(
          aggregated_op{part.name, part.count, part.total_ns, part.self_ns, part.durations});
      cell tid;
      if (part.tid != 0) tid = static_cast<std::int64_t>(part.tid);
      const auto rounded = [](double ns) { return static_cast<std::int64_t>(std::llround(ns)); };
      sink_.row(aggregated, {number_, by.host, by.rank, static_cast<std::int64_t>(file.number), tid,
                             std::string_view(loader_), plain(part.name),
                             static_cast<std::int64_t>(part.count), part.total_ns, part.self_ns,
                             rounded(d.p50_ns), rounded(d.p90_ns), rounded(d.p99_ns), d.max_ns});
    }
  }

  /// Writes what operations, waits for batches and preprocessing were blocked on.
  void write_blocked_on() {
    run_blocked_on joined = join_waits(run_, diagnostics_);
    name_stacks(*run_.files, joined, diagnostics_);
    const auto known = [](const std::string& text) {
      return text.empty() ? cell() : cell(std::string_view(text));
    };
    for (const scaled_waits& of : scale_waits(run_, joined)) {
      for (const blocked_on& one : of.by) {
        const std::string what = object_text(one.what);
        const std::string stack = calls_text(one.calls);
        sink_.row(
            blocked,
            {number_, std::string_view(loader_), std::string_view(part_name(of.part)),
             known(of.name), std::string_view(reason_word(one.reason)), known(what),
             known(one.held_by), one.held_by.empty() ? cell() : cell(one.held_share), one.ns,
             one.share, static_cast<std::int64_t>(one.samples), known(stack), known(one.held_in)});
      }
    }
  }

  std::int64_t number_;
  const run_data& run_;
  diagnostic_log& diagnostics_;
  row_sink& sink_;
  std::string loader_;
  run_processes processes_;
  std::vector<recorded_by> by_;  // for each log: the process and thread that wrote it
  std::vector<std::vector<const preprocessing_span*>> preprocessing_of_file_;
};

/// Returns a table with the columns "a b: c#".
table_definition table_of(const char* name, std::string_view columns) {
  table_definition of{name, {}};
  while (!columns.empty()) {
    const std::string_view column = columns.substr(0, columns.find(' '));
    columns.remove_prefix(std::min(columns.size(), column.size() + 1));
    const char last = column.back();
    const column_type type = last == ':'   ? column_type::text
                             : last == '#' ? column_type::real
                                           : column_type::integer;
    of.columns.emplace_back(
        column.substr(0, column.size() - (type == column_type::integer ? 0 : 1)), type);
  }
  return of;
}

}  // namespace

const std::vector<table_definition>& exported_tables() {
  // Columns are integers unless their names end in ':' (texts) or '#' (real numbers).
  static const std::vector<table_definition> all{
      table_of("runs", "run dir: loader: start_ns end_ns cpus dropped"),
      table_of("spans",
               "run host: rank pid tid thread: loader: name: batch epoch start_ns dur_ns self_ns "
               "cpu_ns depth"),
      table_of("batches",
               "run host: rank pid loader: batch epoch queued_ns preprocess_ns wait_ns delay_ns "
               "handed_over_ns step_ns"),
      table_of("stages",
               "run host: rank pid tid loader: stage: number is_item batch epoch start_ns dur_ns"),
      table_of("counters", "run host: rank pid loader: name: time_ns value"),
      table_of("aggregated",
               "run host: rank pid tid loader: name: calls total_ns self_ns p50_ns p90_ns p99_ns "
               "max_ns"),
      table_of("blocked_on",
               "run loader: part: name: reason: what: held_by: held_share# ns share# samples "
               "stack: held_in:"),
  };
  return all;
}

void write_tables(std::int64_t number, const run_data& run, row_sink& sink,
                  diagnostic_log& diagnostics) {
  table_writer(number, run, sink, diagnostics).write();
}

}  // namespace lotus::tool
