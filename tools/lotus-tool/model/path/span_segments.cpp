#include "model/path/span_segments.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/parallel.hpp"
#include "model/pipeline/next_spans.hpp"

namespace lotus::tool {

span_links::span_links(const run_batches& batches, const std::vector<bool>& is_segmented)
    : spans_(batches.preprocessing_spans()), before_(spans_.size()), earlier_(spans_.size()) {
  std::vector<span_number> order;
  double sum_ns = 0;
  for (span_number n = 0; n < spans_.size(); ++n) {
    if (!is_segmented[n]) continue;
    order.push_back(n);
    sum_ns += static_cast<double>(spans_[n].duration_ns);
  }
  if (!order.empty()) {
    tolerance_ns_ += static_cast<std::int64_t>(0.05 * sum_ns / static_cast<double>(order.size()));
  }
  std::sort(order.begin(), order.end(), [this](span_number a, span_number b) {
    return std::tie(spans_[a].start_ns, a) < std::tie(spans_[b].start_ns, b);
  });
  std::map<file_id, span_number> last;
  for (const span_number n : order) {
    starts_[spans_[n].stage].push_back(n);
    ends_[spans_[n].stage].push_back(n);
    if (!spans_[n].file) continue;
    const auto [at, is_new] = last.try_emplace(*spans_[n].file, n);
    if (is_new) continue;
    before_[n] = at->second;
    at->second = n;
  }
  for (auto& [stage, spans] : ends_) {
    std::sort(spans.begin(), spans.end(), [this](span_number a, span_number b) {
      return std::pair(spans_[a].end_ns(), a) < std::pair(spans_[b].end_ns(), b);
    });
  }
  // A thread that is started for one batch has no previous span. It began when others were done.
  for (const span_number n : order) {
    if (!before_[n]) before_[n] = ended_just_before(spans_[n].stage, spans_[n].start_ns);
  }
  const std::vector<optional_span> next = next_spans(batches);
  for (const span_number n : order) {
    if (!next[n] || !is_segmented[*next[n]]) continue;
    next_stage_[spans_[n].stage] = spans_[*next[n]].stage;
    optional_span& from = earlier_[*next[n]];
    if (!from || spans_[*from].end_ns() < spans_[n].end_ns()) from = n;
  }
}

optional_span span_links::fetching_span(const preprocessing_span& span) const {
  const auto next = next_stage_.find(span.stage);
  if (next == next_stage_.end() || next->second == span.stage) return std::nullopt;
  const auto starts = starts_.find(next->second);
  if (starts == starts_.end()) return std::nullopt;
  const auto later =
      std::upper_bound(starts->second.begin(), starts->second.end(), span.start_ns,
                       [this](std::int64_t t, span_number n) { return t < spans_[n].start_ns; });
  if (later == starts->second.begin()) return std::nullopt;
  const span_number fetching = *(later - 1);
  if (!just_before(spans_[fetching].start_ns, span.start_ns)) return std::nullopt;
  return fetching;
}

optional_span span_links::taking_span(span_number span) const {
  const std::int64_t start_ns = spans_[span].start_ns;
  const auto next = next_stage_.find(spans_[span].stage);
  if (next == next_stage_.end() || next->second == spans_[span].stage) return std::nullopt;
  const auto starts = starts_.find(next->second);
  if (starts == starts_.end()) return std::nullopt;
  const auto later =
      std::upper_bound(starts->second.begin(), starts->second.end(), start_ns,
                       [this](std::int64_t t, span_number n) { return t < spans_[n].start_ns; });
  if (later == starts->second.end()) return std::nullopt;
  if (!just_before(start_ns, spans_[*later].start_ns)) return std::nullopt;
  const optional_span from = earlier_[*later];
  if (!from || from == before_[span] || spans_[*from].end_ns() > start_ns) return std::nullopt;
  return *later;
}

optional_span span_links::freeing_span(const preprocessing_span& span) const {
  const auto next = next_stage_.find(span.stage);
  if (next == next_stage_.end() || next->second == span.stage) return std::nullopt;
  return ended_just_before(next->second, span.start_ns);
}

optional_span span_links::handing_span(span_number span) const {
  const optional_span from = earlier_[span];
  if (!from || spans_[*from].stage == spans_[span].stage) return std::nullopt;
  // A thread that looks for items from time to time begins a little later, after a longer wait.
  const std::int64_t start_ns = spans_[span].start_ns;
  std::int64_t since_ns = spans_[*from].end_ns();
  if (before_[span]) since_ns = std::max(since_ns, spans_[*before_[span]].end_ns());
  return ended_just_before(spans_[*from].stage, start_ns, (start_ns - since_ns) / 10);
}

optional_span span_links::ended_just_before(stage_id stage, std::int64_t time_ns,
                                            std::int64_t tolerance_ns) const {
  const auto ends = ends_.find(stage);
  if (ends == ends_.end()) return std::nullopt;
  const auto later =
      std::upper_bound(ends->second.begin(), ends->second.end(), time_ns,
                       [this](std::int64_t t, span_number n) { return t < spans_[n].end_ns(); });
  if (later == ends->second.begin()) return std::nullopt;
  const std::int64_t since_ns = time_ns - spans_[*(later - 1)].end_ns();
  if (since_ns > std::max(tolerance_ns, tolerance_ns_)) return std::nullopt;
  return *(later - 1);
}

namespace {

/// Splits a span into segments: a new segment begins whenever the innermost operation changes. Add
/// operations in order of start, and parents before children.
class cutter {
 public:
  cutter(const preprocessing_span& span, std::vector<span_segment>& to)
      : cursor_ns_(span.start_ns), end_ns_(span.end_ns()), to_(to) {}

  void add(const operation& op) {
    leave_until(op.start_ns);
    cut(op.start_ns);
    open_.push_back(
        {std::min(op.end_ns(), open_.empty() ? end_ns_ : open_.back().end_ns), op.name});
  }
  void finish() {
    leave_until(end_ns_);
    cut(end_ns_);
  }

 private:
  struct open_operation {
    std::int64_t end_ns;
    std::uint32_t name;
  };

  void leave_until(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) {
      cut(open_.back().end_ns);
      open_.pop_back();
    }
  }
  void cut(std::int64_t until_ns) {
    if (until_ns <= cursor_ns_) return;
    span_segment& segment = to_.emplace_back(span_segment{cursor_ns_, until_ns, std::nullopt});
    if (!open_.empty()) segment.name = open_.back().name;
    cursor_ns_ = until_ns;
  }

  std::int64_t cursor_ns_;
  std::int64_t end_ns_;
  std::vector<span_segment>& to_;
  std::vector<open_operation> open_;
};

/// Returns the indices of the spans, sorted by thread, then by start, outer spans first.
std::vector<span_number> in_order(const std::vector<preprocessing_span>& spans) {
  std::vector<span_number> order(spans.size());
  std::iota(order.begin(), order.end(), span_number{0});
  std::sort(order.begin(), order.end(), [&](span_number a, span_number b) {
    const preprocessing_span& x = spans[a];
    const preprocessing_span& y = spans[b];
    return std::tie(x.file, x.start_ns, y.duration_ns, a) <
           std::tie(y.file, y.start_ns, x.duration_ns, b);
  });
  return order;
}

/// Returns the spans that have a duration and are not nested in another span of their thread, in
/// the order of in_order().
std::vector<span_number> outer_of(const std::vector<preprocessing_span>& spans) {
  std::vector<span_number> outer;
  optional_file file;
  std::int64_t until_ns = INT64_MIN;  // end of the last span that is not nested
  for (const span_number n : in_order(spans)) {
    const preprocessing_span& span = spans[n];
    if (span.file != file) until_ns = INT64_MIN;
    file = span.file;
    if (file && span.end_ns() <= until_ns) continue;
    until_ns = span.end_ns();
    if (span.duration_ns > 0) outer.push_back(n);
  }
  return outer;
}

bool comes_before(const operation& a, const operation& b) {
  return std::tie(a.start_ns, b.duration_ns) < std::tie(b.start_ns, a.duration_ns);
}

/// Sorts operations by their starts, and parents before their children.
/// @param ops  operations in the order of a log. If two have equal times, the one in the later line
///   is the parent.
void put_parents_first(std::vector<operation>& ops) {
  // A log is nearly sorted: only parents come too late, after their children. So insert one
  // operation after another, unless they must move far.
  std::size_t sorted = 0;
  for (std::size_t moves = 0; sorted < ops.size() && moves <= 8 * ops.size(); ++sorted) {
    const operation op = ops[sorted];
    std::size_t at = sorted;
    for (; at > 0 && !comes_before(ops[at - 1], op); --at, ++moves) ops[at] = ops[at - 1];
    ops[at] = op;
  }
  if (sorted == ops.size()) return;
  // The operations that are not sorted yet are in later lines of the log. If one of them equals a
  // sorted operation, it is the parent and must come first.
  const auto others = ops.begin() + static_cast<std::ptrdiff_t>(sorted);
  std::reverse(others, ops.end());
  std::stable_sort(others, ops.end(), comes_before);
  const auto middle = std::rotate(ops.begin(), others, ops.end());
  std::inplace_merge(ops.begin(), middle, ops.end(), comes_before);
}

/// Assigns the operations of one log to the spans of the log, and splits each span as soon as all
/// of its operations were added.
class thread_cutter {
 public:
  using range = std::pair<const span_number*, const span_number*>;

  /// @param wanted  for each span: whether it is split.
  /// @param outer  the spans of the log that are not nested in another span, with ascending starts
  ///   and ends.
  thread_cutter(const std::vector<preprocessing_span>& spans, const std::vector<bool>& wanted,
                range outer,
                std::function<void(span_number, const std::vector<span_segment>&)> on_segments)
      : spans_(spans),
        wanted_(wanted),
        outer_(std::move(outer)),
        on_segments_(std::move(on_segments)) {}

  void add(const operation& op) {
    const span_number* const of = span_of(op);
    // Drop an operation that begins in none of the wanted spans, and an operation whose line comes
    // so late in the log that its span is already split.
    if (of == outer_.second || of < outer_.first || !wanted_[*of]) return;
    const auto index = static_cast<std::size_t>(of - outer_.first);
    if (index >= held_.size()) held_.resize(index + 1);
    if (held_[index].capacity() == 0) held_[index].swap(spare_);
    held_[index].push_back(op);
    ++count_;
    while (count_ > max_held && held_.size() > 1) cut_first();
  }
  void finish() {
    while (outer_.first != outer_.second) cut_first();
  }

 private:
  static constexpr std::size_t max_held = std::size_t{1} << 16U;

  /// Returns the span of `outer_` in which the operation begins; outer_.second if it begins in none
  /// of these spans.
  const span_number* span_of(const operation& op) {
    const auto ended = [this, &op](span_number n) { return spans_[n].end_ns() <= op.start_ns; };
    if (hint_ == nullptr || hint_ < outer_.first || ended(*hint_) ||
        (hint_ != outer_.first && !ended(*(hint_ - 1)))) {
      hint_ = std::partition_point(outer_.first, outer_.second, ended);
      if (hint_ == outer_.second) {
        hint_ = nullptr;
        return outer_.second;
      }
    }
    return spans_[*hint_].start_ns <= op.start_ns ? hint_ : outer_.second;
  }

  void cut_first() {
    const span_number n = *outer_.first++;
    std::vector<operation> ops;
    if (!held_.empty()) {
      ops = std::move(held_.front());
      held_.pop_front();
    }
    if (!wanted_[n]) return;
    count_ -= ops.size();
    put_parents_first(ops);
    segments_.clear();
    cutter cut(spans_[n], segments_);
    for (const operation& op : ops) {
      // Leave out operations that end after the span, because such an operation is not inside the
      // span but contains it.
      if (op.end_ns() <= spans_[n].end_ns()) cut.add(op);
    }
    cut.finish();
    on_segments_(n, segments_);
    ops.clear();
    spare_ = std::move(ops);
  }

  const std::vector<preprocessing_span>& spans_;
  const std::vector<bool>& wanted_;
  range outer_;  // spans that are not split yet
  std::function<void(span_number, const std::vector<span_segment>&)> on_segments_;
  const span_number* hint_ = nullptr;
  // For each span that is not split yet: the operations that began in it. The first element is for
  // the span outer_.first.
  std::deque<std::vector<operation>> held_;
  std::size_t count_ = 0;         // number of operations in held_
  std::vector<operation> spare_;  // empty; its memory is used for the next span
  std::vector<span_segment> segments_;
};

}  // namespace

std::vector<bool> segmented_spans(const run_batches& batches) {
  std::vector<bool> with(batches.preprocessing_spans().size());
  for (const span_number n : outer_of(batches.preprocessing_spans())) with[n] = true;
  return with;
}

void for_each_span(
    const run_data& run, const std::vector<bool>& wanted,
    const std::function<void(span_number, const std::vector<span_segment>&)>& on_segments) {
  const std::vector<preprocessing_span>& spans = run.batches.preprocessing_spans();
  const std::vector<span_number> outer = outer_of(spans);
  const span_number* const end = outer.data() + outer.size();
  std::vector<thread_cutter::range> logs;
  for (const span_number* first = outer.data(); first != end; first = logs.back().second) {
    const optional_file file = spans[*first].file;
    logs.emplace_back(
        first, std::find_if(first, end, [&](span_number n) { return spans[n].file != file; }));
  }
  for_each_in_parallel(logs.size(), unlimited_threads, [&](std::size_t i) {
    const auto [first, last] = logs[i];
    if (std::none_of(first, last, [&](span_number n) { return wanted[n]; })) return;
    thread_cutter cut(spans, wanted, logs[i], on_segments);
    if (const optional_file file = spans[*first].file) {
      run.for_each_operation(file->value(), [&](const operation& op) { cut.add(op); });
    }
    cut.finish();
  });
}

}  // namespace lotus::tool
