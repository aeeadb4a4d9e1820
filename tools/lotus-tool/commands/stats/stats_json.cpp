#include "commands/stats/stats_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "accelerator/ranks_text.hpp"
#include "base/formats/json_writer.hpp"
#include "commands/stats/stats.hpp"
#include "commands/stats/stats_pipeline.hpp"
#include "findings/check.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/folder/log_files.hpp"
#include "model/figures.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// Returns the exact blocked time; nullopt if it was not measured.
std::optional<std::int64_t> blocked_ns_of(const figures& of) {
  return of.cpu ? of.cpu->blocked_ns : std::nullopt;
}

/// Writes the times of a batch.
/// @param staged  whether the run has named stages.
void write_batch(json_writer& json, const run_data& run, const batch& b, bool staged) {
  const batch_record* const preprocessed = run.batches.record(b.preprocessed);
  json.newline()
      .begin_object()
      .member("epoch", b.epoch)
      .member("index", shown_number(b.index))
      .key("worker");
  if (preprocessed != nullptr) {
    json.value(run.log(preprocessed->file).number);
  } else {
    json.value(nullptr);
  }
  json.member("preprocess_ns", run.batches.preprocess_ns(b));
  json.member("wait_ns", run.batches.wait_ns(b));
  json.member("delay_ns", run.batches.delay_ns(b));
  json.member("step_ns", value_of(run.batches, b, quantity::step));
  json.member("out_of_order", run.batches.out_of_order(b));
  if (staged) {
    const std::optional<time_span> preprocessing = run.batches.made(b);
    json.member("latency_ns",
                preprocessing ? std::optional(preprocessing->duration_ns()) : std::nullopt);
    json.member("service_ns", run.batches.service_ns(b));
    json.member("queueing_ns", run.batches.queueing_ns(b));
  }
  if (const std::optional<cpu_split> cpu = preprocessing_cpu(run, b)) {
    json.member("cpu_ns", cpu->cpu_ns).member("run_queue_ns", cpu->run_queue_ns);
    json.member("blocked_ns", cpu->blocked_ns);
  }
  json.end_object();
}

/// Writes the batches and operations of the thread that wrote one log, if there are any.
void write_worker(json_writer& json, const run_stats_result& run, std::size_t f) {
  const worker_batches preprocessed = batches_of_worker(run, f);
  const auto has = [&run, f](std::uint32_t index) {
    const worker_shares& shares = run.run.ops[index].by_file;
    return f < shares.size() && shares[f].count > 0;
  };
  if (preprocessed.count == 0 && std::none_of(run.shown_ops.begin(), run.shown_ops.end(), has)) {
    return;
  }
  json.newline().begin_object().member("worker", run.run.files->files[f].number);
  json.member("batches", preprocessed.count).member("preprocess_total_ns", preprocessed.total_ns);
  json.key("ops").begin_object();
  for (const std::uint32_t index : run.shown_ops) {
    if (!has(index)) continue;
    const op_samples& op = run.run.ops[index];
    const worker_share& share = op.by_file[f];
    json.key(op.name).begin_object().member("count", share.count);
    json.member("mean_ns", static_cast<double>(share.total_ns) / static_cast<double>(share.count));
    json.member("max_ns", share.max_ns).member("total_ns", share.total_ns).end_object();
  }
  json.end_object().end_object();
}

}  // namespace

void print_stats_json(const std::vector<run_stats_result>& runs, std::ostream& out) {
  std::string text;
  json_writer json(text);
  constexpr std::size_t poured_bytes = std::size_t{1} << 20U;
  const auto pour = [&] {
    out << text;
    text.clear();
  };
  json.begin_object().key("runs").begin_array();
  for (const run_stats_result& run : runs) {
    json.newline().begin_object().member("dir", run.run.files->dir);
    if (!run.run.files->loader.empty()) json.member("loader", run.run.files->loader);
    json.key("ops").begin_object();
    for (std::size_t i = 0; i < run.shown_ops.size(); ++i) {
      const op_samples& op = run.op(i);
      const figures of = figures_of(op);
      json.newline().key(op.name).begin_object();
      write_figures(json, of, op_json, true);
      write_blocked_on(json, run.blocked_on.of(op.name), blocked_ns_of(of));
      json.end_object();
      if (text.size() >= poured_bytes) pour();
    }
    json.end_object();
    if (!run.aggregated.empty()) {
      json.newline().key("aggregated").begin_object();
      for (const figures& of : run.aggregated) {
        json.newline().key(of.name).begin_object();
        write_figures(json, of, op_json, true);
        json.end_object();
      }
      json.end_object();
    }
    for (const figures& of : run.quantities) {
      json.newline().key(of.name).begin_object();
      write_figures(json, of, quantity_json, true);
      if (of.name == quantity_name(quantity::wait)) {
        write_blocked_on(json, &run.blocked_on.waits, blocked_ns_of(of));
      } else if (of.name == quantity_name(quantity::preprocess)) {
        write_blocked_on(json, &run.blocked_on.preprocessing, blocked_ns_of(of));
      }
      json.end_object();
    }
    json.newline().member("out_of_order", run.out_of_order).key("batches").begin_array();
    for (const batch& b : run.run.batches.all()) {
      write_batch(json, run.run, b, !run.stages.empty());
      pour();
    }
    json.end_array().newline().key("workers").begin_array();
    for (std::size_t f = 0; f < run.run.files->files.size(); ++f) write_worker(json, run, f);
    json.end_array();
    json.newline().member("achieved_batches_per_s", run.run.batches.achieved_per_s());
    json.member("steady_batches_per_s", run.run.batches.steady_per_s());
    write_pipeline_json(json, run);
    write_memory_json(json, run.run, run.calls_of_operations());
    if (!run.accelerators.empty()) {
      json.newline().key("accelerator");
      write_accelerator(json, run.accelerators, false);
    }
    write_snapshot_threads(json, run.threads);
    json.newline().key("checks");
    write_checks(json, run.checks);
    if (run.run.records.dropped > 0) {
      json.newline().member("dropped", run.run.records.dropped);
      json.member("recorded", run.run.records.all());
    }
    if (run.run.records.whole_from_ns != 0) {
      json.newline().member("deleted_bytes", run.run.records.deleted_bytes);
      json.member("whole_from_ns", run.run.records.whole_from_ns);
    }
    json.end_object();
    pour();
  }
  json.newline().end_array().end_object();
  out << text << '\n';
}

}  // namespace lotus::tool
