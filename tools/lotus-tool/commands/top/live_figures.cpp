#include "commands/top/live_figures.hpp"

#include <algorithm>
#include <map>

#include "base/sorting.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

std::optional<std::int64_t> taken_ns(const run_batches& batches, const batch& b) {
  if (const auto delivered = batches.delivery_ns(b)) return delivered;
  const batch_record* const wait = batches.record(b.wait);
  return wait == nullptr ? std::nullopt : std::optional(wait->end_ns());
}

void find_gaps(const std::vector<std::int64_t>& times, live_figures& to) {
  to.batches = times.size();
  if (times.empty()) return;
  to.last_batch_ns = times.back();
  if (times.size() < 3) return;
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  std::sort(gaps.begin(), gaps.end());
  to.longest_gap_ns = gaps.back();
  to.usual_gap_ns = gaps[gaps.size() / 2];
}

void find_slowest(const run_batches& batches, live_figures& to) {
  for (const batch& b : batches.all()) {
    const std::optional<time_span> preprocessing = batches.made(b);
    const auto received_ns = taken_ns(batches, b);
    if (!preprocessing) continue;
    if (!received_ns) ++to.ready;
    to.slowest.push_back({b.index, preprocessing->duration_ns(), batches.wait_ns(b), received_ns});
  }
  constexpr std::size_t most = 10;
  const auto shown =
      to.slowest.begin() + static_cast<std::ptrdiff_t>(std::min(most, to.slowest.size()));
  std::partial_sort(to.slowest.begin(), shown, to.slowest.end(),
                    [](const live_batch& a, const live_batch& b) {
                      return a.preprocessing_ns > b.preprocessing_ns;
                    });
  to.slowest.erase(shown, to.slowest.end());
}

/// Counts, for each stage, the batches or items that the stage has finished and that are still in
/// the queue after it. A batch or item has left the queue if a record shows that the next stage
/// finished it, that a batch contains it, or that the consumer received it.
std::map<stage_id, std::size_t> find_queues(const run_batches& batches) {
  std::map<stage_id, std::size_t> queued;
  for (const item& it : items_of(batches)) {
    const preprocessing_span* last = nullptr;
    for (const span_number s : it.spans) {
      const preprocessing_span& span = batches.preprocessing_spans()[s];
      if (last == nullptr || span.start_ns >= last->start_ns) last = &span;
    }
    if (last == nullptr) continue;
    const bool known = last->batch.has_value();
    const bool is_received =
        it.of_item ? known : known && taken_ns(batches, batches.at(*last->batch));
    if (!is_received) ++queued[last->stage];
  }
  return queued;
}

void find_stages(const run_data& run, live_figures& to) {
  std::vector<stage_figures> stages = measure_stages(run);
  const std::map<stage_id, std::size_t> queued = find_queues(run.batches);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const stage_figures& s = stages[i];
    live_stage& stage = to.stages.emplace_back();
    stage.name = s.name;
    stage.threads = s.slots;
    stage.per_s = static_cast<double>(s.numbers) / to.window_s;
    stage.shares = s.shares;
    // If no consumer receives the results of the last stage, they are the answers of a service and
    // do not form a queue.
    if (i + 1 == stages.size() && to.batches == 0) continue;
    const auto at = queued.find(s.stage);
    stage.queued = at == queued.end() ? 0 : at->second;
  }
}

/// Returns the sums over the calls of an operation, without the operation's name.
live_operation sum_of(const op_samples& op, double window_s) {
  live_operation sum{{}, 0, op.self_ns, 0, 0, window_s, false, 0};
  for (std::size_t f = 0; f < op.by_file.size(); ++f) {
    const worker_share& share = op.by_file[f];
    sum.threads += share.count > 0 ? 1 : 0;
    sum.calls += share.count;
    sum.total_ns += share.total_ns;
    sum.max_ns = std::max(sum.max_ns, share.max_ns);
  }
  return sum;
}

/// Returns the ids of the names of those operations that the screen may show: the first ones in
/// each of the orders that the user can choose. In order of first appearance.
std::vector<std::uint32_t> shown_operations(const run_data& run, double window_s) {
  std::vector<std::uint32_t> shown;
  std::vector<double> values(run.ops.size());
  for (const live_order order :
       {live_order::self, live_order::calls, live_order::total, live_order::max}) {
    for (std::size_t name = 0; name < values.size(); ++name) {
      values[name] = value_of(sum_of(run.ops[name], window_s), order);
    }
    const std::vector<std::uint32_t> largest = indices_of_largest(values, most_operations);
    shown.insert(shown.end(), largest.begin(), largest.end());
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

}  // namespace

double value_of(const live_operation& op, live_order order) {
  const auto in_time = [&op](auto value) { return static_cast<double>(value) / op.interval_s; };
  switch (order) {
    case live_order::self:
      return in_time(op.self_ns);
    case live_order::calls:
      return in_time(op.calls);
    case live_order::total:
      return in_time(op.total_ns);
    case live_order::max:
      return static_cast<double>(op.max_ns);
  }
  return 0;
}

live_figures figures_of_interval(const run_data& run, const consumer_times& consumer,
                                 std::int64_t begin_ns, std::int64_t end_ns) {
  live_figures found;
  const std::int64_t first_ns = std::min(std::max(begin_ns, run.first_ns), end_ns);
  found.window_s = static_cast<double>(std::max<std::int64_t>(end_ns - first_ns, 1)) / 1e9;
  find_gaps(consumer.received_ns, found);
  find_slowest(run.batches, found);
  found.batches_per_s = static_cast<double>(found.batches) / found.window_s;
  found.wait_share = consumer.wait_share;
  found.operations_per_s = static_cast<double>(run.operations) / found.window_s;
  for (const std::uint32_t name : shown_operations(run, found.window_s)) {
    live_operation& sum = found.operations.emplace_back(sum_of(run.ops[name], found.window_s));
    sum.name = run.ops[name].name.substr(1);
  }
  find_stages(run, found);
  found.counters = counters_of(run);
  return found;
}

consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns) {
  consumer_times found;
  std::vector<std::int64_t> waits_ended;
  std::int64_t waited_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  for (const log_file& file : run.files) {
    if (file.role == file_role::worker) continue;
    read_log(file, nullptr, [&](const log_line& line) {
      const bool wait = line.kind == record_kind::wait;
      if ((!wait && line.kind != record_kind::consumed) || line.end_ns() < begin_ns) return;
      const std::int64_t start_ns = std::max(line.start_ns, begin_ns);
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, wait ? line.end_ns() : line.start_ns);
      if (!wait) found.received_ns.push_back(line.start_ns);
      if (!wait || line.duration_ns == marker_ns) return;
      waits_ended.push_back(line.end_ns());
      waited_ns += std::max<std::int64_t>(line.end_ns() - start_ns, 0);
    });
  }
  if (found.received_ns.empty()) found.received_ns = waits_ended;
  std::sort(found.received_ns.begin(), found.received_ns.end());
  if (!waits_ended.empty() && last_ns > first_ns) {
    found.wait_share =
        std::min(static_cast<double>(waited_ns) / static_cast<double>(last_ns - first_ns), 1.0);
  }
  return found;
}

}  // namespace lotus::tool
