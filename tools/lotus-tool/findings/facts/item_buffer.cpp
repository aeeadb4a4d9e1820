#include "findings/facts/item_buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "findings/facts/changes.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

using number_of_consumer = std::pair<consumer_id, std::int64_t>;

struct taken_item {
  std::int64_t ready_ns = 0;
  std::int64_t taken_ns = 0;
  number_of_consumer batch;
};

/// The items of a batch, which one thread takes one after the other.
struct taken_together {
  std::int64_t first_ns = 0;
  std::size_t items = 0;
  std::size_t ready = 0;       // ready items when the first one was taken
  bool includes_last = false;  // whether it includes the item that was the last one to become ready
};

/// Returns the items in the order in which they were taken.
std::vector<taken_item> taken_items(const run_data& run) {
  std::map<number_of_consumer, std::vector<std::int64_t>> ends;
  for (const stage_span& s : run.side.stages) {
    ends[{s.consumer, s.number}].push_back(s.end_ns());
  }
  for (auto& [number, all] : ends) std::sort(all.begin(), all.end());
  std::vector<taken_item> items;
  for (const batch_inclusion& in : run.side.inclusions) {
    const auto of = ends.find({in.consumer, in.item});
    if (of == ends.end()) continue;
    // In each epoch, there may be an item with this number.
    const auto after = std::upper_bound(of->second.begin(), of->second.end(), in.time_ns);
    if (after == of->second.begin()) continue;
    items.push_back({*(after - 1), in.time_ns, {in.consumer, in.batch}});
  }
  return items;
}

/// Counts the ready items that no batch has taken yet. A binary indexed tree (P. M. Fenwick, "A new
/// data structure for cumulative frequency tables", 1994).
class ready_items {
 public:
  explicit ready_items(std::size_t all) : sums_(all + 1) {}

  void add(std::size_t place, int change) {
    for (std::size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += change;
  }

  /// Returns the number of ready items at the places before this one.
  int before(std::size_t place) const {
    int sum = 0;
    for (std::size_t i = place; i > 0; i &= i - 1) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<int> sums_;
};

/// Takes of batches in the order of their times, by batch; nothing if the order of the items is not
/// random.
std::map<number_of_consumer, std::vector<taken_together>> find_takes(
    const std::vector<taken_item>& items) {
  std::vector<std::size_t> by_ready(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) by_ready[i] = i;
  std::stable_sort(by_ready.begin(), by_ready.end(), [&](std::size_t a, std::size_t b) {
    return items[a].ready_ns < items[b].ready_ns;
  });
  std::vector<std::size_t> place(items.size());
  for (std::size_t p = 0; p < by_ready.size(); ++p) place[by_ready[p]] = p;

  std::map<number_of_consumer, std::vector<taken_together>> takes;
  ready_items ready(items.size());
  std::size_t became_ready = 0;
  std::size_t last_of_batch = 0;  // the last item to become ready before the batch took its first
  double ranks = 0;
  std::size_t ranked = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const taken_item& item = items[i];
    while (became_ready < items.size() && items[by_ready[became_ready]].ready_ns <= item.taken_ns) {
      ready.add(became_ready++, 1);
    }
    const auto count = static_cast<std::size_t>(ready.before(items.size()));
    std::vector<taken_together>& of_batch = takes[item.batch];
    if (of_batch.empty() || i == 0 || items[i - 1].batch != item.batch) {
      of_batch.push_back({item.taken_ns, 0, count, false});
      last_of_batch = became_ready - 1;
    }
    taken_together& now = of_batch.back();
    ++now.items;
    now.includes_last = now.includes_last || place[i] == last_of_batch;
    constexpr std::size_t fewest_ready = 8;
    if (count >= fewest_ready) {
      ranks += static_cast<double>(ready.before(place[i])) / static_cast<double>(count - 1);
      ++ranked;
    }
    ready.add(place[i], -1);
  }
  // The oldest item has the rank 0, the newest one 1, and random ones 0.5 +- 0.29 / sqrt(ranked).
  constexpr std::size_t fewest = 50;
  const double mean = ranked == 0 ? 0 : ranks / static_cast<double>(ranked);
  if (ranked < fewest || mean < 0.3 || mean > 0.7) return {};
  return takes;
}

}  // namespace

item_buffer find_item_buffer(const run_data& run) {
  constexpr double many = 3;  // batches for which a buffer holds items
  if (run.side.inclusions.empty()) return {};
  const auto takes = find_takes(taken_items(run));
  item_buffer found;
  std::vector<double> ready;
  std::vector<double> batches;
  double all_ns = 0;
  std::size_t with_last = 0;
  for (const batch& b : run.batches.all()) {
    const batch_record* const wait = run.batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    all_ns += static_cast<double>(wait->duration_ns);
    const auto of = takes.find({wait->consumer, b.index});
    if (of == takes.end()) continue;
    for (const taken_together& taken : of->second) {
      if (taken.first_ns <= wait->start_ns || taken.first_ns > wait->end_ns()) continue;
      const double enough_for = static_cast<double>(taken.ready) / static_cast<double>(taken.items);
      if (enough_for < many) continue;
      found.mean_ns += static_cast<double>(taken.first_ns - wait->start_ns);
      ready.push_back(static_cast<double>(taken.ready));
      batches.push_back(enough_for);
      if (taken.includes_last) ++with_last;
    }
  }
  if (ready.empty() || all_ns <= 0 || 2 * with_last > ready.size()) return {};
  found.share = found.mean_ns / all_ns;
  found.fills = ready.size();
  found.mean_ns /= static_cast<double>(found.fills);
  found.items = static_cast<std::size_t>(quantile(ready, 0.5));
  found.batches = quantile(batches, 0.5);
  return found;
}

}  // namespace lotus::tool
