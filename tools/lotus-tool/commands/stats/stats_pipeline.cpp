#include "commands/stats/stats_pipeline.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "commands/stats/stats.hpp"
#include "findings/diagnosis_text.hpp"
#include "log/shown_name.hpp"
#include "model/stage_stats.hpp"

namespace lotus::tool {
namespace {

void print_stages(const run_stats_result& run, std::ostream& out) {
  const bool cpu = std::any_of(run.stages.begin(), run.stages.end(),
                               [](const figures& of) { return of.cpu.has_value(); });
  table rows;
  std::vector<std::string> head{"stage", "count", "mean", "p50", "p99", "max", "total"};
  if (cpu) head.insert(head.end(), {"on CPU", "waits for CPU", "blocked"});
  head.insert(head.end(), {"threads", "capacity", "busy", "no input", "queue full"});
  rows.row(head);
  const auto time = [](const std::optional<std::int64_t>& ns) {
    return ns ? human_time(static_cast<double>(*ns)) : std::string("-");
  };
  for (const stage_stats& s : run.stages) {
    std::vector<std::string> row{s.name,
                                 std::to_string(s.time.count),
                                 human_time(s.time.mean_ns),
                                 human_time(s.time.p50_ns),
                                 human_time(s.time.p99_ns),
                                 time(s.time.max_ns),
                                 time(s.time.total_ns)};
    if (cpu) {
      row.push_back(s.cpu ? time(s.cpu->cpu_ns) : "-");
      row.push_back(s.cpu ? time(s.cpu->run_queue_ns) : "-");
      row.push_back(s.cpu ? time(s.cpu->blocked_ns) : "-");
    }
    row.push_back(std::to_string(s.stage.slots) + (s.stage.pool ? " shared" : ""));
    row.push_back(rate(s.stage.batches_per_s));
    row.push_back(human_share(s.stage.shares.busy));
    for (const std::optional<double>& share : {s.stage.shares.starved, s.stage.shares.blocked}) {
      row.push_back(share ? human_share(*share) : "-");
    }
    rows.row(row);
  }
  const bool shared = std::any_of(run.stages.begin(), run.stages.end(),
                                  [](const stage_stats& s) { return s.stage.pool; });
  rows.spare({"p50", "total", "max", "waits for CPU", "blocked", "on CPU", "p99", "count"});
  out << '\n';
  rows.print(out);
  out << fitted_sentences(
             out,
             "Measured throughput: " + rate(run.run.batches.achieved_per_s()) +
                 ". In steady state (from the first batch to the last): " +
                 rate(run.run.batches.steady_per_s()) +
                 ". The capacity is the throughput if the stage's threads never had to wait. "
                 "Shares are of the time of the stage's threads, from their first to last work." +
                 (shared ? " 'shared': these threads also work in other stages, which limits the "
                           "capacity."
                         : ""),
             "  ", "    ")
      << '\n';
}

/// Returns a text such as "item 7 took 48.34 ms (42.06 ms of it in queues)".
std::string item_text(const item& it, const std::string& kind) {
  std::string text =
      (kind == "items" ? "item " : "batch ") + std::to_string(shown_number(it.number));
  if (it.epoch > 0) text += " of epoch " + std::to_string(it.epoch);
  return text + " took " + human_time(static_cast<double>(it.extent.duration_ns())) + " (" +
         human_time(static_cast<double>(it.queueing_ns)) + " of it in queues)";
}

void print_items(const item_stats& of, bool slowest, std::ostream& out) {
  if (of.slowest.empty()) return;
  const std::string from =
      of.from_first_item ? ", from the start of the first item of each" : ", through all stages";
  const std::string text = "latency of " + std::to_string(of.time.count) + ' ' + of.name + from +
                           ": p50 " + human_time(of.time.p50_ns) + ", p99 " +
                           human_time(of.time.p99_ns);
  if (!slowest) {
    out << fitted_sentences(
               out,
               text + ". The slowest: " + item_text(of.slowest.front(), of.name) +
                   ". 'lotus-tool stats --slowest 3' shows where the 3 slowest spent their time.",
               "  ", "    ")
        << '\n';
    return;
  }
  out << "\n  " << text << "; the slowest:\n";
  // Deeper operations are not indented further: lines would become as long as there are operations.
  constexpr std::size_t max_depth = 32;
  for (std::size_t i = 0; i < of.slowest.size(); ++i) {
    out << "  " << item_text(of.slowest[i], of.name) << '\n';
    table tree(table_form::rows);
    for (const item_node& node : of.trees[i]) {
      const std::string name = node.depth == 0 ? node.name : shown_name(node.name);
      tree.row(
          {std::string(2 + 2 * std::min(node.depth, max_depth), ' ') + name,
           human_time(static_cast<double>(node.duration_ns)),
           "at " + human_time(static_cast<double>(node.start_ns - of.slowest[i].extent.start_ns)),
           "thread " + std::to_string(node.thread)});
    }
    tree.print(out);
  }
}

void print_async(const run_stats_result& run, std::ostream& out) {
  if (run.async.empty()) return;
  table rows;
  rows.spare({"p50", "max", "count"});
  rows.row({"async operation", "count", "mean", "p50", "p99", "max", "total", "without pauses"});
  for (const async_stats& of : run.async) {
    rows.row({shown_name(of.name), std::to_string(of.time.count), human_time(of.time.mean_ns),
              human_time(of.time.p50_ns), human_time(of.time.p99_ns),
              human_time(static_cast<double>(of.time.max_ns)),
              human_time(static_cast<double>(of.time.total_ns)),
              human_time(static_cast<double>(of.running_ns))});
  }
  out << '\n';
  rows.print(out);
}

void print_counters(const run_stats_result& run, std::ostream& out) {
  if (run.counters.empty()) return;
  table rows;
  rows.row({"counter", "updates", "min", "mean over time", "max", "last"});
  for (const counter_figures& c : run.counters) {
    const bool bytes = c.name.rfind("heap bytes", 0) == 0;
    const auto value = [bytes](std::int64_t number) {
      return bytes ? human_bytes(static_cast<double>(number)) : std::to_string(number);
    };
    rows.row({c.name, std::to_string(c.count), value(c.min),
              bytes ? human_bytes(c.mean) : three_digits(c.mean), value(c.max), value(c.last)});
  }
  out << '\n';
  rows.print(out);
}

void write_items(json_writer& json, const item_stats& of) {
  json.newline().key(of.name).begin_object();
  write_figures(json, of, quantity_json, true);
  json.member("p90_ns", of.time.p90_ns).member("p99_ns", of.time.p99_ns);
  json.key("slowest").begin_array();
  for (std::size_t i = 0; i < of.slowest.size(); ++i) {
    const item& it = of.slowest[i];
    json.newline()
        .begin_object()
        .member("number", shown_number(it.number))
        .member("epoch", it.epoch);
    json.member("start_ns", it.extent.start_ns).member("latency_ns", it.extent.duration_ns());
    json.member("service_ns", it.service_ns).member("queueing_ns", it.queueing_ns);
    write_tree(json, of.trees[i]);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

void collect_pipeline(run_stats_result& result, std::size_t slowest) {
  result.stages = describe_stages(result.run);
  result.items = describe_items(result.run, slowest);
  result.async = describe_async(result.run);
  result.counters = counters_of(result.run);
}

void print_pipeline_table(const run_stats_result& run, bool slowest, std::ostream& out) {
  if (!run.stages.empty()) print_stages(run, out);
  for (const item_stats& of : run.items) print_items(of, slowest, out);
  if (slowest && run.items.empty()) {
    out << "\n  --slowest shows nothing: the run has no stages (LOTUS_STAGE)\n";
  }
  print_async(run, out);
  print_counters(run, out);
}

void write_pipeline_json(json_writer& json, const run_stats_result& run) {
  if (!run.stages.empty()) {
    json.newline().key("stages").begin_object();
    for (const stage_stats& s : run.stages) {
      json.newline().key(s.name).begin_object();
      write_stage(json, s, op_json);
      json.end_object();
    }
    json.end_object().newline().key("through_stages").begin_object();
    for (const item_stats& of : run.items) write_items(json, of);
    json.end_object();
  }
  if (!run.async.empty()) {
    json.newline().key("async").begin_object();
    for (const async_stats& of : run.async) {
      json.newline().key(of.name).begin_object();
      write_figures(json, of, quantity_json, true);
      json.member("p90_ns", of.time.p90_ns).member("p99_ns", of.time.p99_ns);
      json.member("running_ns", of.running_ns).end_object();
    }
    json.end_object();
  }
  if (run.counters.empty()) return;
  json.newline().key("counters").begin_object();
  for (const counter_figures& c : run.counters) {
    json.newline().key(c.name).begin_object().member("count", c.count).member("min", c.min);
    json.member("mean", c.mean).member("max", c.max).member("last", c.last).end_object();
  }
  json.end_object();
}

}  // namespace lotus::tool
