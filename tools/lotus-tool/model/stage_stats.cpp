#include "model/stage_stats.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/figures.hpp"
#include "model/pipeline/async_operations.hpp"
#include "model/pipeline/item_tree.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stages.hpp"
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
    of.slowest = slowest_items(std::move(all), slowest);
    of.trees = trees_of(run, of.slowest);
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

void write_tree(json_writer& json, const std::vector<item_node>& tree) {
  json.key("tree").begin_array();
  for (const item_node& node : tree) {
    json.begin_object().member("name", node.name).member("depth", node.depth);
    json.member("start_ns", node.start_ns).member("duration_ns", node.duration_ns);
    json.member("thread", node.thread).end_object();
  }
  json.end_array();
}

void write_stage(json_writer& json, const stage_stats& stage, figure_output output) {
  write_figures(json, stage, output, true);
  json.member("concurrency", stage.stage.slots).member("shared", stage.stage.pool.has_value());
  json.member("capacity_per_s", stage.stage.batches_per_s);
  json.member("numbers", stage.stage.numbers).member("per_batch", stage.stage.numbers_per_batch);
  json.member("busy", stage.stage.shares.busy).member("starved", stage.stage.shares.starved);
  json.member("blocked", stage.stage.shares.blocked);
}

}  // namespace lotus::tool
