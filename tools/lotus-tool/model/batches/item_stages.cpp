#include "model/batches/item_stages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lotus::tool {
namespace {

struct votes {
  std::size_t items = 0;
  std::size_t batches = 0;
  std::size_t ended_before = 0;
  std::size_t ended_after = 0;
};

/// Finds the stages that process items in a run that records which items became part of which batch
/// (`inclusions`). A stage processes items if more of its numbers occur in these records as items
/// than as batches. If both occur equally often, it processes items if most of its spans end before
/// their item became part of a batch.
std::set<stage_id> by_inclusions(const std::vector<stage_span>& stages,
                                 const std::vector<batch_inclusion>& inclusions) {
  // For each item number: the times when an item with this number became part of a batch.
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> times_of_item;
  std::unordered_set<std::int64_t> batches;
  for (const batch_inclusion& t : inclusions) {
    times_of_item[t.item].push_back(t.time_ns);
    batches.insert(t.batch);
  }
  std::map<stage_id, votes> of_stage;
  std::map<std::pair<stage_id, std::int64_t>, std::size_t> seen;
  for (const stage_span& s : stages) {
    votes& v = of_stage[stage_id(s.name)];
    const auto times = times_of_item.find(s.number);
    if (times != times_of_item.end()) ++v.items;
    if (batches.count(s.number) != 0) ++v.batches;
    if (times == times_of_item.end()) continue;
    const std::size_t k = seen[{stage_id(s.name), s.number}]++;
    if (k >= times->second.size()) continue;
    ++(s.end_ns() <= times->second[k] ? v.ended_before : v.ended_after);
  }
  std::set<stage_id> found;
  for (const auto& [stage, v] : of_stage) {
    const bool items = v.items != v.batches ? v.items > v.batches : v.ended_before > v.ended_after;
    if (items) found.insert(stage);
  }
  return found;
}

/// Finds the stages that process items in a run that does not record which items became part of
/// which batch: most numbers of these stages do not occur in batch records.
std::set<stage_id> by_records(const batch_records& records, const std::vector<stage_span>& stages) {
  std::unordered_set<std::int64_t> batches;
  for (const batch_record& r : records) batches.insert(r.index);
  std::set<stage_id> found;
  if (batches.empty()) return found;
  std::map<stage_id, std::unordered_set<std::int64_t>> numbers;
  for (const stage_span& s : stages) numbers[stage_id(s.name)].insert(s.number);
  for (const auto& [stage, all] : numbers) {
    std::size_t unknown = 0;
    for (const std::int64_t number : all) unknown += batches.count(number) == 0 ? 1U : 0U;
    if (2 * unknown > all.size()) found.insert(stage);
  }
  return found;
}

}  // namespace

std::set<stage_id> item_stages(const batch_records& records, const std::vector<stage_span>& stages,
                               const std::vector<batch_inclusion>& inclusions) {
  if (stages.empty()) return {};
  return inclusions.empty() ? by_records(records, stages) : by_inclusions(stages, inclusions);
}

}  // namespace lotus::tool
