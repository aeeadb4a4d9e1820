// Finds the items and batches that went through the stages of a loader, what was done for each, and
// counts the workers.
#ifndef LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
#define LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/identifiers.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// An item, batch or request, with the spans of work on it.
struct item {
  std::int64_t number = 0;
  /// If the number belongs to a batch in run_batches: the epoch of the batch. Otherwise: how often
  /// the same number was preprocessed before.
  std::uint32_t epoch = 0;
  bool of_item = false;
  time_span extent;  ///< from the first start to the last end of the item's spans
  std::int64_t service_ns = 0;
  std::int64_t queueing_ns = 0;
  std::vector<span_number> spans;  ///< the item's spans in order of start
};

/// Returns all items and batches that went through stages, in order of start. An item and the batch
/// that it becomes part of are separate entries.
std::vector<item> items_of(const run_batches& batches);

/// Whether batches were built by short threads, of which several share a log. Then logs are no
/// workers.
bool are_built_by_short_threads(const run_data& run);

/// Returns the maximum number of workers that existed at the same time, each from the start of its
/// first preprocess span to the end of its last.
std::size_t living_workers(const run_batches& batches);

/// Returns the maximum number of preprocess spans that overlap. If several spans build each batch
/// together, complete batches count instead of spans. The result is at most living_workers().
std::size_t workers_at_once(const run_batches& batches);

struct item_node {
  /// Name of a stage, or name of an operation with the S that begins it in logs.
  std::string name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t thread = 0;  ///< number of the thread's log
  std::size_t depth = 0;     ///< nesting depth; 0 for one of the item's own spans
};

/// Returns, for each item, its spans in order of start. Each span is followed by the operations
/// inside it on the same thread. The depth of an operation is one more than that of the span or
/// operation that contains it. Logs also contain the span of a stage as an operation; that
/// operation is left out.
/// @param run  a run that was read with run_parts::operations; otherwise the result contains only
///   spans.
std::vector<std::vector<item_node>> trees_of(const run_data& run, const std::vector<item>& items);

/// Returns the `count` items with the longest latency; the item with the longest comes first.
std::vector<item> slowest_items(std::vector<item> items, std::size_t count);

/// Adds up the spans of one batch or item. Spans must be added in order of start.
class work_time {
 public:
  void add(const preprocessing_span& s) {
    covered_ns_ += std::max<std::int64_t>(0, s.end_ns() - std::max(s.start_ns, end_ns_));
    end_ns_ = std::max(end_ns_, s.end_ns());
    // A span that is nested in another span of its thread is already part of the other span's time.
    const auto [until, is_new] = until_ns_.try_emplace(s.file, INT64_MIN);
    if (s.end_ns() <= until->second) return;
    service_ns_ += s.duration_ns;
    until->second = s.end_ns();
  }

  /// Returns the sum of the spans' durations. If spans overlap, the sum may exceed the time from
  /// the first start to the last end.
  std::int64_t service_ns() const noexcept { return service_ns_; }
  /// Returns how long at least one of the spans was open.
  std::int64_t covered_ns() const noexcept { return covered_ns_; }

 private:
  std::int64_t service_ns_ = 0;
  std::int64_t covered_ns_ = 0;
  std::int64_t end_ns_ = INT64_MIN;
  std::map<optional_file, std::int64_t> until_ns_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PIPELINE_ITEMS_HPP
