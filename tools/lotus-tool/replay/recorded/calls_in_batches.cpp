#include "replay/recorded/calls_in_batches.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "log/shown_name.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

calls_in_batches::calls_in_batches(const run_data& run, std::string last) : last_(std::move(last)) {
  for (std::size_t file = 0; file < run.logs.size(); ++file) count(run, file);
  for (const op_samples& op : run.ops) {
    const auto of = of_.find(shown_name(op.name));
    if (of == of_.end() || !op.details().heap) continue;
    const heap_use& heap = *op.details().heap;
    of->second.kept_bytes =
        static_cast<double>(heap.allocated_bytes) - static_cast<double>(heap.freed_bytes);
  }
}

void calls_in_batches::count(const run_data& run, std::size_t file) {
  std::vector<std::pair<std::int64_t, std::int64_t>> works;  // start and end
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (s.batch && s.file && s.file->value() == file) works.emplace_back(s.start_ns, s.end_ns());
  }
  std::sort(works.begin(), works.end());
  std::vector<std::string> names(run.names.size());
  std::vector<operation> outermost;    // calls of this work that no later call contains
  std::set<std::uint32_t> seen;        // operations of this work that ended before `last`
  std::set<std::uint32_t> seen_after;  // operations of this work that only ended after `last`
  bool ended = false;                  // whether `last` has ended in this work
  std::size_t now = works.size();
  const auto name_of = [&](std::uint32_t name) -> const std::string& {
    if (names[name].empty()) names[name] = shown_name(run.names.name(name));
    return names[name];
  };
  // A log is sorted by the ends of calls.
  run.for_each_operation(file, [&](const operation& op) {
    auto next =
        std::upper_bound(works.begin(), works.end(), std::make_pair(op.start_ns, INT64_MAX));
    if (next == works.begin() || op.end_ns() > (--next)->second) return;
    const auto work = static_cast<std::size_t>(next - works.begin());
    // The record of a stage has the same times as the stage's span.
    const bool is_stage = op.start_ns == next->first && op.end_ns() == next->second;
    if (work != now) {
      now = work;
      ended = false;
      outermost.clear();
      seen.clear();
      seen_after.clear();
    }
    const std::string& name = name_of(op.name);
    counted& of = of_[name];
    if (is_stage && name != last_) return;
    ++of.calls;
    if (ended) {
      if (seen.count(op.name) == 0 && seen_after.insert(op.name).second) ++of.after;
      return;
    }
    while (!outermost.empty() && outermost.back().start_ns >= op.start_ns) outermost.pop_back();
    outermost.push_back(op);
    seen.insert(op.name);
    if (name != last_) return;
    ended = true;
    for (const std::uint32_t one : seen) ++of_[name_of(one)].before;
    std::set<std::uint32_t> without_parents;
    for (const operation& one : outermost) without_parents.insert(one.name);
    for (const std::uint32_t one : without_parents) ++of_[name_of(one)].outermost;
  });
}

std::set<std::string> calls_in_batches::up_to() const {
  std::set<std::string> found;
  for (const auto& [name, of] : of_) {
    if (of.before > of.after) found.insert(name);
  }
  return found;
}

double calls_in_batches::share_passed_on(std::size_t works) const {
  const double calls = of_.at(last_).calls;
  double most = 0;
  for (const auto& [name, of] : of_) {
    const bool is_of_batches = of.calls <= static_cast<double>(works) && calls > of.calls &&
                               calls > static_cast<double>(works);
    if (of.after > of.before && !is_of_batches) most = std::max(most, of.calls);
  }
  return most > 0 ? most / calls : 1;
}

double calls_in_batches::most_calls() const {
  double most = 0;
  for (const auto& [name, of] : of_) most = std::max(most, of.calls);
  return most;
}

std::optional<double> calls_in_batches::result_bytes() const {
  double sum = 0;
  bool any = false;
  for (const auto& [name, of] : of_) {
    if (2 * of.outermost <= of.before || of.before <= of.after || !of.kept_bytes) continue;
    any = true;
    sum += *of.kept_bytes;
  }
  return any && sum > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace lotus::tool
