#include "model/pipeline/items.hpp"

#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "log/shown_name.hpp"
#include "lotus/folder/log_claims.hpp"
#include "model/calls/nesting_times.hpp"
#include "model/pipeline/stage_threads.hpp"

namespace lotus::tool {

std::vector<item> items_of(const run_batches& batches) {
  const std::vector<preprocessing_span>& spans = batches.preprocessing_spans();
  std::vector<span_number> order(spans.size());
  std::iota(order.begin(), order.end(), span_number{0});
  // Spans with equal keys form one entry of the result. They are the spans of one batch (with the
  // same `batch`), or of one occurrence of an item number (with the same `number` and `pass`).
  const auto key = [&](span_number n) {
    const preprocessing_span& s = spans[n];
    return std::make_tuple(s.of_item, s.consumer, s.number, s.of_item ? std::nullopt : s.batch,
                           s.of_item ? s.pass : pass_number());
  };
  std::sort(order.begin(), order.end(), [&](span_number a, span_number b) {
    return std::make_pair(key(a), spans[a].start_ns) < std::make_pair(key(b), spans[b].start_ns);
  });
  std::vector<item> items;
  for (std::size_t at = 0; at < order.size();) {
    const auto of = key(order[at]);
    item& it = items.emplace_back();
    const preprocessing_span& first = spans[order[at]];
    it.number = first.number;
    it.of_item = first.of_item;
    it.epoch = first.of_item || !first.batch ? first.pass.value() : batches.at(*first.batch).epoch;
    it.extent = {first.start_ns, first.end_ns()};
    work_time time;
    for (; at < order.size() && key(order[at]) == of; ++at) {
      const preprocessing_span& s = spans[order[at]];
      it.spans.push_back(order[at]);
      it.extent.end_ns = std::max(it.extent.end_ns, s.end_ns());
      time.add(s);
    }
    it.service_ns = time.service_ns();
    it.queueing_ns = it.extent.duration_ns() - time.covered_ns();
  }
  std::sort(items.begin(), items.end(), [](const item& a, const item& b) {
    return std::tie(a.extent.start_ns, a.number) < std::tie(b.extent.start_ns, b.number);
  });
  return items;
}

bool are_built_by_short_threads(const run_data& run) {
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  return std::any_of(spans.begin(), spans.end(), [&](const preprocessing_span& s) {
    return s.file && run.log(*s.file).number > lotus::detail::largest_thread_id;
  });
}

std::size_t living_workers(const run_batches& batches) {
  std::map<optional_file, std::pair<std::int64_t, std::int64_t>> extents;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (s.stage != preprocess_stage) continue;
    auto& extent = extents.try_emplace(s.file, s.start_ns, s.end_ns()).first->second;
    extent = {std::min(extent.first, s.start_ns), std::max(extent.second, s.end_ns())};
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  all.reserve(extents.size());
  for (const auto& [file, extent] : extents) all.push_back(extent);
  return max_at_once(all);
}

std::size_t workers_at_once(const run_batches& batches) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    // Add 1 ns to the end of the span. Then two spans overlap also if one begins at the moment when
    // the other ends, because both workers existed at that moment.
    const bool counts = s.stage == preprocess_stage && !batches.in_parts();
    if (counts) spans.emplace_back(s.start_ns, s.end_ns() + 1);
  }
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.in_parts() ? batches.made(b) : std::nullopt;
    if (made) spans.emplace_back(made->start_ns, made->end_ns);
  }
  return std::min(living_workers(batches), max_at_once(spans));
}

namespace {

/// The operations that ran in some spans of one thread; the key is the span.
using operations_of_span = std::map<span_number, std::vector<operation>>;

void find_operations(const run_data& run, file_id file, std::vector<span_number> wanted,
                     operations_of_span& found) {
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  std::sort(wanted.begin(), wanted.end(), [&spans](span_number a, span_number b) {
    return spans[a].start_ns < spans[b].start_ns;
  });
  // For each wanted span: the latest end of this span and all spans before it. It shows which spans
  // need not be compared with an operation, because they and all spans before them ended earlier.
  std::vector<std::int64_t> last_end_ns;
  last_end_ns.reserve(wanted.size());
  for (const span_number n : wanted) {
    const std::int64_t end_ns = spans[n].end_ns();
    last_end_ns.push_back(last_end_ns.empty() ? end_ns : std::max(last_end_ns.back(), end_ns));
  }
  run.for_each_operation(file.value(), [&](const operation& op) {
    const auto later = std::upper_bound(
        wanted.begin(), wanted.end(), op.start_ns,
        [&spans](std::int64_t start_ns, span_number n) { return start_ns < spans[n].start_ns; });
    for (auto i = static_cast<std::size_t>(later - wanted.begin());
         i-- > 0 && last_end_ns[i] >= op.end_ns();) {
      const span_number n = wanted[i];
      const preprocessing_span& s = spans[n];
      if (op.end_ns() > s.end_ns()) continue;
      const bool itself = stage_id(op.name) == s.stage && op.start_ns == s.start_ns &&
                          op.duration_ns == s.duration_ns;
      if (!itself) found[n].push_back(op);
    }
  });
}

std::string name_of(const run_data& run, const preprocessing_span& s) {
  return s.stage == preprocess_stage ? "preprocess" : shown_name(run.names.name(s.stage.value()));
}

}  // namespace

std::vector<std::vector<item_node>> trees_of(const run_data& run, const std::vector<item>& items) {
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  std::map<file_id, std::vector<span_number>> of_file;
  for (const item& it : items) {
    for (const span_number n : it.spans) {
      if (spans[n].file) of_file[*spans[n].file].push_back(n);
    }
  }
  operations_of_span operations;
  for (const auto& [file, wanted] : of_file) find_operations(run, file, wanted, operations);
  std::vector<std::vector<item_node>> trees;
  for (const item& it : items) {
    std::vector<item_node>& tree = trees.emplace_back();
    for (const span_number n : it.spans) {
      const preprocessing_span& s = spans[n];
      const std::uint64_t thread = s.file ? run.log(*s.file).number : 0;
      tree.push_back({name_of(run, s), s.start_ns, s.duration_ns, thread, 0});
      std::vector<operation>& inside = operations[n];
      std::stable_sort(inside.begin(), inside.end(), [](const operation& a, const operation& b) {
        return std::make_pair(a.start_ns, -a.duration_ns) <
               std::make_pair(b.start_ns, -b.duration_ns);
      });
      std::vector<std::int64_t> ends;
      for (const operation& op : inside) {
        while (!ends.empty() && ends.back() < op.end_ns()) ends.pop_back();
        ends.push_back(op.end_ns());
        tree.push_back({std::string(run.names.name(op.name)), op.start_ns, op.duration_ns, thread,
                        ends.size()});
      }
    }
  }
  return trees;
}

std::vector<item> slowest_items(std::vector<item> items, std::size_t count) {
  const std::size_t kept = std::min(count, items.size());
  std::partial_sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(kept), items.end(),
                    [](const item& a, const item& b) {
                      return std::make_tuple(-a.extent.duration_ns(), a.extent.start_ns, a.number) <
                             std::make_tuple(-b.extent.duration_ns(), b.extent.start_ns, b.number);
                    });
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(kept), items.end());
  return items;
}

}  // namespace lotus::tool
