#include "commands/report/timeline/timeline_data.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "commands/report/base64.hpp"
#include "commands/report/timeline/timeline_batches.hpp"
#include "commands/report/timeline/undrawn_sums.hpp"
#include "log/folder/log_files.hpp"
#include "log/shown_name.hpp"
#include "lotus/format/varint.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/pipeline/next_spans.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_depth = 6;  // must be equal to the value in the page's rows.js

/// The calls of a run, added up by operation and caller. The caller of an operation is the
/// operation that was open when it began. Calls that are nested deeper than the timeline can draw
/// are left out.
class call_tree {
 public:
  /// Adds a call. The calls of a log must be added in the order that nesting_order defines.
  void add(const operation& op) {
    while (!open_.empty() && open_.back().end_ns <= op.start_ns) open_.pop_back();
    const std::int64_t caller = open_.empty() ? -1 : open_.back().node;
    std::int64_t at = -1;
    if (open_.size() < max_depth) at = add_calls({caller, op.name, op.duration_ns, 1});
    open_.push_back({op.end_ns(), at});
  }

  /// Adds the calls of another log.
  void add(call_tree other) {
    // Usually one log has most of the nodes, so the first tree is not copied.
    if (nodes_.empty()) {
      *this = std::move(other);
      return;
    }
    std::vector<std::int64_t> place;  // for each node of `other`: its index in this tree
    for (node n : other.nodes_) {
      if (n.caller >= 0) n.caller = place[static_cast<std::size_t>(n.caller)];
      place.push_back(add_calls(n));
    }
  }

  /// Writes [[caller, name, ns, count], …]. A caller is the index of an earlier entry; -1 for none.
  void write(json_writer& json) const {
    json.list(nodes_, [&](const node& of) { json.row(of.caller, of.name, of.ns, of.count); });
  }

 private:
  struct node {
    std::int64_t caller = -1;
    std::uint32_t name = 0;
    std::int64_t ns = 0;
    std::uint64_t count = 0;
  };
  struct open_call {
    std::int64_t end_ns;
    std::int64_t node;
  };

  /// Adds calls; returns the index of their node.
  std::int64_t add_calls(const node& calls) {
    const auto [found, is_new] = places_.try_emplace({calls.caller, calls.name}, nodes_.size());
    if (is_new) nodes_.push_back({calls.caller, calls.name, 0, 0});
    node& to = nodes_[found->second];
    to.ns += calls.ns;
    to.count += calls.count;
    return static_cast<std::int64_t>(found->second);
  }

  std::vector<open_call> open_;
  std::vector<node> nodes_;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> places_;
};

/// The operations of one log, as append_operations() writes them.
struct operation_texts {
  std::string slices;
  std::string undrawn;
};

/// Writes the drawn operations of one log as the string `slices` that write_timeline() describes,
/// and the sums of the others as `undrawn`, if there are any.
/// @param name_of  maps a name's number in the run to its number on the page.
/// @param drawn  decides which operations are drawn.
/// @param edges  the edges of the log's cells, from cells_by_file(); unused if all are drawn.
void append_operations(operation_texts& texts, const run_data& run, std::size_t file,
                       const std::vector<std::uint32_t>& name_of, drawn_durations drawn,
                       const std::vector<std::int64_t>& edges) {
  json_writer slices(texts.slices);
  base64_writer bytes(slices);
  std::int64_t before_ns = run.first_ns;
  const auto emit = [&](const operation& op) {
    bytes.number(lotus::detail::to_zigzag(op.start_ns - before_ns));
    bytes.number(static_cast<std::uint64_t>(op.duration_ns));
    bytes.number(name_of[op.name]);
    before_ns = op.start_ns;
  };
  nesting_order order;
  undrawn_sums undrawn(edges);
  run.for_each_operation(file, [&](const operation& op) {
    if (drawn.draws(op.duration_ns)) {
      order.push(op, emit);
    } else {
      undrawn.add(op);
    }
  });
  order.finish(emit);
  bytes.finish();
  if (!drawn.draws_all()) undrawn.write(json_writer(texts.undrawn), run.first_ns, name_of);
}

/// What the page needs to know of all operations before it can write one of them.
struct read_operations {
  call_tree calls;          ///< of all logs
  longest_drawn durations;  ///< of the operations in the drawn logs
};

/// @param drawn_files  how many logs are drawn, from the first on.
/// @param name_of  maps a name's number in the run to its number on the page.
read_operations read_all_operations(const run_data& run, std::size_t drawn_files,
                                    const std::vector<std::uint32_t>& name_of) {
  const std::size_t files = run.files->files.size();
  std::vector<read_operations> of_log(files);
  for_each_in_parallel(files, unlimited_threads, [&](std::size_t f) {
    if (!run.has_operations(f)) return;
    nesting_order order;
    const auto add = [&](const operation& op) {
      of_log[f].calls.add({op.start_ns, op.duration_ns, name_of[op.name]});
    };
    run.for_each_operation(f, [&](const operation& op) {
      if (f < drawn_files) of_log[f].durations.add(op.duration_ns);
      order.push(op, add);
    });
    order.finish(add);
  });
  read_operations all;
  for (read_operations& of : of_log) {
    all.durations.add(of.durations);
    all.calls.add(std::move(of.calls));
  }
  return all;
}

/// Writes every process's counters in order of first appearance, their values in order of time.
/// @param most  maximum number of values. If there are more, neighbors are combined, and only the
///   lowest and the highest of them are written.
void write_counters(json_writer& json, const run_data& run, std::size_t most) {
  const std::size_t neighbors =
      run.side.counters.size() <= most ? 1 : 2 * run.side.counters.size() / most + 1;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<const counter_value*>> values;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> appeared;
  std::map<std::uint32_t, std::size_t> processes_with;
  for (const counter_value& c : run.side.counters) {
    const auto [at, is_new] = values.try_emplace({c.name, c.process});
    at->second.push_back(&c);
    if (!is_new) continue;
    appeared.push_back(at->first);
    ++processes_with[c.name];
  }
  json.begin_array();
  for (const auto& counter : appeared) {
    std::string name = shown_name(run.names.name(counter.first));
    if (processes_with[counter.first] > 1) name += ", pid " + std::to_string(counter.second);
    json.newline().begin_object().member("name", name).key("values").begin_array();
    const std::vector<const counter_value*>& all = values[counter];
    const auto write = [&](const counter_value* c) {
      json.row(c->time_ns - run.first_ns, c->value);
    };
    const auto lower = [](const counter_value* a, const counter_value* b) {
      return a->value < b->value;
    };
    for (std::size_t first = 0; first < all.size();) {
      const std::size_t last = std::min(all.size(), first + neighbors);
      const auto [low, high] =
          std::minmax_element(all.begin() + static_cast<std::ptrdiff_t>(first),
                              all.begin() + static_cast<std::ptrdiff_t>(last), lower);
      write(*std::min(low, high));
      if (low != high) write(*std::max(low, high));
      first = last;
    }
    json.end_array().end_object();
  }
  json.end_array();
}

/// Writes each drawn interval off the CPU as start, duration and off_cpu_reason.
void write_off_cpu(json_writer& json, const run_data& run, std::size_t file,
                   drawn_durations drawn) {
  json.key("off_cpu").begin_array();
  for (const off_cpu_interval& s : run.side.off_cpu[file].intervals()) {
    if (s.duration_ns() <= 0 || !drawn.draws(s.duration_ns())) continue;
    json.row(s.start_ns - run.first_ns, s.duration_ns(), static_cast<int>(reason_of(s)));
  }
  json.end_array();
}

/// Writes the start and the duration of asynchronous operations, by name and in order of start.
void write_async(json_writer& json, const run_data& run,
                 const std::vector<async_operation>& operations, drawn_durations drawn,
                 name_table& names) {
  std::map<std::uint32_t, std::vector<const async_operation*>> by_name;
  for (const async_operation& op : operations) {
    if (drawn.draws(op.extent.duration_ns())) by_name[op.name].push_back(&op);
  }
  json.newline().key("async").list(by_name, [&](const auto& of) {
    json.newline().begin_object();
    json.member("name", names.id_of_decoded(run.names.name(of.first))).key("histories");
    json.list(of.second, [&](const async_operation* op) {
      json.row(op->extent.start_ns - run.first_ns, op->extent.duration_ns());
    });
    json.end_object();
  });
}

/// Writes an arrow from every span that worked on a batch or item to the next span of the same
/// batch or item, or to the consumer's step if no span follows.
/// @param of_stages  whether to write also the arrows from spans of stages.
void write_arrows(json_writer& json, const run_data& run, bool of_stages) {
  const std::vector<preprocessing_span>& all = run.batches.preprocessing_spans();
  const std::vector<optional_span> next = next_spans(run.batches);
  json.begin_array();
  for (std::size_t m = 0; m < all.size(); ++m) {
    const preprocessing_span& from = all[m];
    if (!from.file || (!of_stages && from.stage != preprocess_stage)) continue;
    std::int64_t at_ns = 0;
    optional_file file;
    if (next[m]) {
      at_ns = all[*next[m]].start_ns;
      file = all[*next[m]].file;
    } else if (from.batch) {
      const batch& b = run.batches.at(*from.batch);
      const batch_record* const used = run.batches.record(b.consumed);
      if (used == nullptr) continue;
      const std::optional<time_span> step = run.batches.step(b.consumed);
      at_ns = step ? step->start_ns : used->start_ns;
      file = used->file;
    }
    if (!file) continue;
    json.row(from.end_ns() - run.first_ns, from.file->value(), at_ns - run.first_ns, file->value());
  }
  json.end_array();
}

}  // namespace

drawn_limits drawn_limits::for_runs(std::size_t runs) {
  drawn_limits limits;
  const std::size_t share = std::max<std::size_t>(1, runs);
  limits.operations /= share;
  for (std::size_t* of : {&limits.batches, &limits.values, &limits.arrows, &limits.segments,
                          &limits.threads, &limits.names}) {
    *of = std::max<std::size_t>(*of / share, 1);
  }
  return limits;
}

void write_timeline(json_writer& json, const run_data& run, const listed_operations& listed,
                    name_table& names, const drawn_limits& limits) {
  const std::vector<log_file>& files = run.files->files;
  const std::vector<std::vector<record_number>> batches = batches_by_file(run);
  const std::size_t drawn_files = std::min(files.size(), limits.threads);
  // Numbers of the threads whose times off the CPU were already written. All logs of a thread have
  // the thread's number.
  std::set<std::uint64_t> with_off_cpu;
  json.begin_object().member("span_ns",
                             run.first_ns < run.last_ns ? run.last_ns - run.first_ns : 0);
  std::string note;
  const auto say = [&note](const std::string& what) { note += (note.empty() ? "" : " ") + what; };
  if (drawn_files < files.size()) {
    say(std::to_string(drawn_files) + " of " + std::to_string(files.size()) + " logs are drawn.");
  }
  const std::vector<std::uint32_t> name_of = listed.numbers_in(names);
  read_operations operations = read_all_operations(run, drawn_files, name_of);
  const drawn_durations drawn = operations.durations.choose("operations", limits.operations, note);
  if (!drawn.draws_all()) say("Sums include those that are not drawn.");
  if (drawn_files < files.size()) say("The table of a range covers only the drawn logs.");
  std::size_t records = 0;
  std::size_t logs_with = 0;
  for (std::size_t f = 0; f < drawn_files; ++f) {
    records += batches[f].size();
    logs_with += batches[f].empty() ? 0 : 1;
  }
  const bool joins = records > limits.batches;
  const std::size_t max_batches = joins ? limits.batches / logs_with : records;
  if (joins) {
    say("Batches that follow each other closely are drawn as one, in a stronger color if there is "
        "less time between them; lotus-tool viz draws a part of the run with all batches.");
  }
  if (run.side.counters.size() > limits.values) {
    say("Of " + std::to_string(run.side.counters.size()) +
        " values of counters, only the lowest and the highest of adjacent values are drawn.");
  }
  const std::vector<async_operation> async = async_operations_of(run.side);
  longest_drawn histories;
  for (const async_operation& op : async) histories.add(op.extent.duration_ns());
  const drawn_durations drawn_histories =
      histories.choose("asynchronous operations", limits.values, note);
  longest_drawn intervals;
  for (const off_cpu_time& of : run.side.off_cpu) {
    for (const off_cpu_interval& s : of.intervals()) intervals.add(s.duration_ns());
  }
  const drawn_durations drawn_off_cpu =
      intervals.choose("intervals off the CPU", limits.values, note);
  const bool draws_arrows = run.batches.preprocessing_spans().size() <= limits.arrows;
  if (!draws_arrows) say("Arrows from batch to batch are not drawn.");
  json.member("note", note);
  json.newline().key("calls");
  operations.calls.write(json);
  operations.calls = call_tree();
  const std::vector<std::vector<std::int64_t>> cells =
      drawn.draws_all() ? std::vector<std::vector<std::int64_t>>(drawn_files)
                        : cells_by_file(run, limits.batches);
  std::vector<operation_texts> texts(drawn_files);
  for_each_in_parallel(drawn_files, unlimited_threads, [&](std::size_t f) {
    if (!run.has_operations(f)) return;
    append_operations(texts[f], run, f, name_of, drawn, cells[f]);
  });
  json.newline().key("tracks").begin_array();
  for (std::size_t f = 0; f < drawn_files; ++f) {
    json.newline().begin_object().member("name", log_title(files[f]));
    if (!batches[f].empty()) {
      json.key("batches");
      write_batches(json, run, batches[f], max_batches);
    }
    if (run.side.off_cpu_of(file_id(f)) != nullptr && with_off_cpu.insert(files[f].number).second) {
      write_off_cpu(json, run, f, drawn_off_cpu);
    }
    if (run.has_operations(f)) {
      json.key("slices").raw(texts[f].slices);
      if (!drawn.draws_all()) json.key("undrawn").raw(texts[f].undrawn);
      texts[f] = operation_texts();
    }
    json.end_object();
  }
  json.end_array();
  if (!async.empty()) write_async(json, run, async, drawn_histories, names);
  if (!run.side.counters.empty()) {
    json.newline().key("counters");
    write_counters(json, run, limits.values);
  }
  json.key("arrows");
  if (draws_arrows) {
    write_arrows(json, run, drawn.draws_all());
  } else {
    json.begin_array().end_array();
  }
  json.end_object();
}

}  // namespace lotus::tool
