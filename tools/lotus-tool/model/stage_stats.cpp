#include "model/stage_stats.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "describe/description.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

std::vector<stage_stats> describe_stages(const run_data& run) {
  std::vector<stage_stats> all;
  if (run.side.stages.empty()) return all;
  for (stage_figures& stage : measure_stages(run)) {
    stage_stats& of = all.emplace_back();
    static_cast<figures&>(of) = figures_of(stage.name, stage.durations_ns);
    of.self_ns = stage.self_ns;
    of.cpu = stage.cpu;
    of.stage = std::move(stage);
  }
  return all;
}

namespace {

/// `it` is an entry for a batch. If items became part of the batch and the first of them began
/// before the batch itself, makes the latency in `it` begin with this item and returns true.
/// Otherwise returns false.
bool begin_with_items(const run_batches& batches, item& it) {
  const optional_batch batch = batches.preprocessing_spans()[it.spans.front()].batch;
  if (!batch) return false;
  const lotus::tool::batch& b = batches.at(*batch);
  const std::optional<time_span> whole = batches.made(b);
  if (!whole || whole->start_ns >= it.extent.start_ns) return false;
  it.extent = *whole;
  it.service_ns = batches.service_ns(b);
  it.queueing_ns = batches.queueing_ns(b);
  return true;
}

}  // namespace

std::vector<item_stats> describe_items(const run_data& run, std::size_t slowest) {
  std::vector<item_stats> described;
  if (run.side.stages.empty()) return described;
  std::map<bool, std::vector<item>> by_kind;  // the key is true for items and false for batches
  bool from_first_item = false;
  for (item& it : items_of(run.batches)) {
    if (!it.of_item) from_first_item = begin_with_items(run.batches, it) || from_first_item;
    by_kind[it.of_item].push_back(std::move(it));
  }
  for (auto& [of_item, all] : by_kind) {
    std::vector<std::int64_t> latencies_ns;
    for (const item& it : all) latencies_ns.push_back(it.extent.duration_ns());
    item_stats& of = described.emplace_back();
    static_cast<figures&>(of) = figures_of(of_item ? "items" : "batches", latencies_ns);
    of.from_first_item = !of_item && from_first_item;
    std::vector<item> slowest_of_all = slowest_items(std::move(all), slowest);
    std::vector<std::vector<item_node>> trees = trees_of(run, slowest_of_all);
    for (std::size_t i = 0; i < trees.size(); ++i) {
      of.slowest.push_back({std::move(slowest_of_all[i]), std::move(trees[i])});
    }
  }
  return described;
}

std::vector<async_stats> describe_async(const run_data& run) {
  struct times {
    std::vector<std::int64_t> durations_ns;
    std::int64_t running_ns = 0;
  };
  std::map<std::uint32_t, times> by_name;
  std::vector<std::uint32_t> appeared;
  for (const async_operation& op : async_operations_of(run.side)) {
    const auto [at, is_new] = by_name.try_emplace(op.name);
    if (is_new) appeared.push_back(op.name);
    at->second.durations_ns.push_back(op.extent.duration_ns());
    at->second.running_ns += op.running_ns;
  }
  std::vector<async_stats> described;
  for (const std::uint32_t name : appeared) {
    times& of = by_name[name];
    async_stats& row = described.emplace_back();
    static_cast<figures&>(row) = figures_of(std::string(run.names.name(name)), of.durations_ns);
    row.running_ns = of.running_ns;
  }
  return described;
}

const description<item_node>& description_of(const item_node*) {
  static const description<item_node> all(
      "node", "a stage or operation of an item or batch",
      {
          {"name", &item_node::name, "the stage, or the operation with the S of the logs"},
          {"depth", &item_node::depth, "how many of the nodes before contain it"},
          {"start_ns", &item_node::start_ns, "its start, in ns"},
          {"duration_ns", &item_node::duration_ns, "its duration, in ns"},
          {"thread", &item_node::thread, "number of the log of its thread"},
      });
  return all;
}

const description<stage_figures>& description_of(const stage_figures*) {
  using s = const stage_figures&;
  constexpr unit share = unit::share;
  static const description<stage_figures> all(
      "stage_figures", "how busy a stage is",
      {
          {"", [](s of) { return std::to_string(of.slots) + (of.pool ? " shared" : ""); },
           "largest number of threads in the stage at the same time", column{"threads"}},
          {"concurrency", &stage_figures::slots,
           "largest number of threads in the stage at the same time"},
          {"shared", [](s of) { return of.pool.has_value(); },
           "whether its threads also work in other stages"},
          {"capacity_per_s", &stage_figures::batches_per_s,
           "batches per second if the stage's threads never had to wait",
           column{"capacity", unit::batches_per_s, 0, "unknown"}},
          {"numbers", &stage_figures::numbers, "items or batches that went through it"},
          {"per_batch", &stage_figures::numbers_per_batch, "of these per batch, on average"},
          {"busy", [](s of) { return of.shares.busy; },
           "share of the time in which the stage's threads work in it", column{"busy", share}},
          {"starved", [](s of) { return of.shares.starved; },
           "share of the time in which the threads have nothing to work on",
           column{"no input", share}},
          {"blocked", [](s of) { return of.shares.blocked; },
           "share of the time in which the stage's output queue is full",
           column{"queue full", share}},
      });
  return all;
}

description<stage_stats> stage_columns(figure_output output) {
  return description<stage_stats>("stage", "a stage of the pipeline")
      .with_base(description_of(static_cast<const figures*>(nullptr)), output)
      .with_part(description_of(static_cast<const stage_figures*>(nullptr)), &stage_stats::stage);
}

const description<stage_stats>& description_of(const stage_stats*) {
  static const description<stage_stats> all = stage_columns(op_json);
  return all;
}

const description<slow_item>& description_of(const slow_item*) {
  using i = const slow_item&;
  static const description<slow_item> all(
      "slow_item", "a slow item or batch, with what was done for it",
      {
          {"number", [](i of) { return shown_number(of.number); }, "its number"},
          {"epoch", &slow_item::epoch, "its epoch, from 0"},
          {"start_ns", [](i of) { return of.extent.start_ns; }, "start of its first stage, in ns"},
          {"latency_ns", [](i of) { return of.extent.duration_ns(); },
           "time from its first stage to its last, in ns"},
          {"service_ns", &slow_item::service_ns, "time in which a stage worked on it, in ns"},
          {"queueing_ns", &slow_item::queueing_ns, "time between stages, in ns"},
          {"tree", &slow_item::tree,
           "what was done for it, in order of start; each node is followed by those inside it"},
      });
  return all;
}

description<item_stats> item_columns(figure_output output) {
  return description<item_stats>("latencies", "times of items or batches through all stages")
      .with_base(description_of(static_cast<const figures*>(nullptr)), output)
      .with({{"slowest", &item_stats::slowest, "the slowest, with what was done for each"}});
}

const description<item_stats>& description_of(const item_stats*) {
  static const description<item_stats> all = item_columns(latency_json);
  return all;
}

description<async_stats> async_columns(figure_output output) {
  return description<async_stats>("async_operation",
                                  "an operation that can pause and resume; times include pauses")
      .with_base(description_of(static_cast<const figures*>(nullptr)), output)
      .with({{"running_ns", &async_stats::running_ns,
              "total minus the times in which the operation was paused",
              column{"without pauses", unit::time_ns}}});
}

const description<async_stats>& description_of(const async_stats*) {
  static const description<async_stats> all = async_columns(latency_json);
  return all;
}

}  // namespace lotus::tool
