#include "model/path/critical_path.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "model/path/path_sum.hpp"
#include "model/path/span_segments.hpp"
#include "model/pipeline/awaited_spans.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// The reception of a batch by the consumer.
struct delivered {
  std::int64_t at_ns = 0;
  batch_id batch;
};

class path_walker {
 public:
  path_walker(const run_data& run, std::vector<path_activity>* activities)
      : run_(run),
        batches_(run.batches),
        spans_(run.batches.preprocessing_spans()),
        is_segmented_(segmented_spans(run.batches)),
        links_(run.batches, is_segmented_),
        awaited_(run, is_segmented_),
        activities_(activities),
        sum_(run, activities) {}

  critical_path walk() {
    critical_path path;
    std::map<std::uint32_t, std::vector<delivered>> epochs;
    for (batch_id b; b.value() < batches_.all().size(); ++b) {
      const std::optional<std::int64_t> at_ns = batches_.left_ns(batches_.at(b));
      if (at_ns) epochs[batches_.at(b).epoch].push_back({*at_ns, b});
    }
    std::int64_t ended_ns = INT64_MIN;
    for (auto& [number, deliveries] : epochs) {
      std::sort(deliveries.begin(), deliveries.end(), [](const delivered& a, const delivered& b) {
        return std::tie(a.at_ns, a.batch) < std::tie(b.at_ns, b.batch);
      });
      const bool is_first = ended_ns == INT64_MIN;
      const std::int64_t from_ns = is_first ? begin_of(deliveries) : begin_after_pause(deliveries);
      begin_ns_ = std::min(std::max(ended_ns, from_ns), deliveries.front().at_ns);
      ended_ns = deliveries.back().at_ns;
      path.run_ns += ended_ns - begin_ns_;
      walk_epoch(deliveries);
    }
    for (const preprocessing_interval& m : intervals_) {
      path.made.push_back({spans_[m.span].batch, m.end_ns - m.start_ns});
    }
    add_operations();
    sort_by_start(segments_);
    path.shares = sum_.shares();
    path.misses = missing_stage(run_, path);
    if (path.misses.empty()) {
      path.segments = std::move(segments_);
    } else {
      path.shares.clear();
      path.made.clear();
      if (activities_ != nullptr) activities_->clear();
    }
    return path;
  }

 private:
  /// The part of the preprocessing span `span` that is on the critical path.
  struct preprocessing_interval {
    span_number span;
    std::int64_t start_ns;
    std::int64_t end_ns;
  };

  /// Adds the times of the operations inside the spans on the critical path to `sum_`, which sums
  /// up the path's time by activity. Call it after the walk through all epochs.
  void add_operations() {
    std::sort(intervals_.begin(), intervals_.end(),
              [](const preprocessing_interval& a, const preprocessing_interval& b) {
                return a.span < b.span;
              });
    std::vector<bool> on_path(spans_.size());
    for (const preprocessing_interval& m : intervals_) on_path[m.span] = true;
    // The sums of each log, and of the spans without a log, because the logs are read in parallel.
    struct sum_of_log {
      std::vector<path_activity> activities;
      std::optional<path_sum> sum;
    };
    std::vector<sum_of_log> of_log(run_.files->files.size() + 1);
    for_each_span(run_, on_path, [&](span_number n, const std::vector<span_segment>& segments) {
      const preprocessing_span& s = spans_[n];
      sum_of_log& to = of_log[s.file ? s.file->value() : of_log.size() - 1];
      if (!to.sum) to.sum.emplace(run_, activities_ == nullptr ? nullptr : &to.activities);
      auto at = std::lower_bound(
          intervals_.begin(), intervals_.end(), n,
          [](const preprocessing_interval& m, span_number span) { return m.span < span; });
      for (; at != intervals_.end() && at->span == n; ++at) {
        for (const span_segment& p : segments) {
          const path_kind kind = !p.name                        ? path_kind::unrecorded
                                 : stage_id(*p.name) == s.stage ? path_kind::stage
                                                                : path_kind::operation;
          to.sum->add(kind, p.name, std::max(p.start_ns, at->start_ns),
                      std::min(p.end_ns, at->end_ns), s.file);
        }
      }
    });
    for (const sum_of_log& of : of_log) {
      if (!of.sum) continue;
      sum_.add(*of.sum);
      if (activities_ == nullptr) continue;
      activities_->insert(activities_->end(), of.activities.begin(), of.activities.end());
    }
  }

  std::int64_t begin_of(const std::vector<delivered>& deliveries) const {
    std::int64_t begin_ns = INT64_MAX;
    for (const delivered& h : deliveries) {
      const batch& b = batches_.at(h.batch);
      const batch_record* const wait = batches_.record(b.wait);
      const batch_record* const queued = batches_.record(b.queued);
      if (wait != nullptr && !wait->is_marker()) begin_ns = std::min(begin_ns, wait->start_ns);
      if (queued != nullptr) begin_ns = std::min(begin_ns, queued->start_ns);
      if (b.spans > 0) begin_ns = std::min(begin_ns, spans_[b.first_span].start_ns);
    }
    return begin_ns;
  }

  /// The same for an epoch that follows another one. If its first batch was ready before the
  /// consumer waited for it, it begins with this wait: what the consumer did before is no start-up.
  std::int64_t begin_after_pause(const std::vector<delivered>& deliveries) const {
    const batch& first = batches_.at(deliveries.front().batch);
    const batch_record* const wait = batches_.record(first.wait);
    const std::optional<time_span> made = batches_.made(first);
    const bool was_ready =
        wait != nullptr && !wait->is_marker() && made && made->end_ns <= wait->start_ns;
    return was_ready ? wait->start_ns : begin_of(deliveries);
  }

  void walk_epoch(const std::vector<delivered>& deliveries) {
    deliveries_ = &deliveries;
    now_ns_ = deliveries.back().at_ns;
    reception_ = deliveries.size() - 1;
    optional_span span;
    std::size_t steps = 0;
    const std::size_t max_steps = 4 * (spans_.size() + deliveries.size()) + 16;
    while (now_ns_ > begin_ns_ && steps++ < max_steps) {
      span = span ? at_start(walk_span(*span)) : at_delivery();
      if (finished_) break;
    }
    if (!finished_ && now_ns_ > begin_ns_) pass(path_kind::unrecorded, begin_ns_);
    finished_ = false;
  }

  void pass(path_kind kind, std::int64_t until_ns, optional_file file = std::nullopt) {
    until_ns = std::max(until_ns, begin_ns_);
    sum_.add(kind, std::nullopt, until_ns, now_ns_, file);
    if (until_ns < now_ns_) segments_.push_back({until_ns, now_ns_, kind, file});
    now_ns_ = std::min(now_ns_, until_ns);
  }

  /// Ends the backward walk through an epoch when no earlier event is known. `now_ns_` is the time
  /// that the walk has reached; the time from the epoch's start to it counts as start-up.
  optional_span begin() {
    pass(path_kind::start_up, begin_ns_);
    finished_ = true;
    return std::nullopt;
  }

  /// Walks back from the moment when the consumer received the batch
  /// `(*deliveries_)[reception_]`. If it waited for this batch, returns the span that ended the
  /// wait; the walk continues at the span's end. Otherwise, the walk continues where the consumer
  /// received an earlier batch: sets `reception_` to this batch and returns nullopt.
  optional_span at_delivery() {
    const delivered& h = (*deliveries_)[reception_];
    const batch& b = batches_.at(h.batch);
    const batch_record* const wait = batches_.record(b.wait);
    optional_span last = last_span(b, h.at_ns);
    // Before it receives a batch, a consumer that builds batches itself may build others.
    if (last && by_consumer(spans_[*last])) last = last_of_consumer(*spans_[*last].file, h.at_ns);
    if (batches_.pushed()) return last ? last : begin();
    const bool waited = wait != nullptr && !wait->is_marker();
    if (waited && last && spans_[*last].end_ns() > wait->start_ns) {
      pass(path_kind::delivery, spans_[*last].end_ns());
      return last;
    }
    if (reception_ == 0) return begin();
    if (waited) pass(path_kind::delivery, wait->start_ns);
    const file_id file = batches_.record(b.consumed)->file;
    --reception_;
    pass(path_kind::step, (*deliveries_)[reception_].at_ns, file);
    return std::nullopt;
  }

  /// Returns the span that ended last among those spans of the batch that began before `used_ns`;
  /// nullopt if no span did.
  optional_span last_span(const batch& b, std::int64_t used_ns) const {
    optional_span last;
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      if (!is_segmented_[n] || awaited_.is_forked(n) || spans_[n].start_ns >= used_ns) continue;
      if (!last || spans_[*last].end_ns() < spans_[n].end_ns()) last = n;
    }
    return last;
  }

  /// Walks back from `now_ns_` to the start of the span `n`, which ended before or then. If its
  /// thread waited for an item, walks on through the work on it. Returns the last span.
  span_number walk_span(span_number n) {
    const preprocessing_span& s = spans_[n];
    if (s.end_ns() < now_ns_) pass(path_kind::delivery, s.end_ns());
    if (const optional_span item = awaited_.last_item(n)) {
      work_until(n, std::min(spans_[*item].end_ns(), now_ns_));
      n = *item;
    }
    while (const optional_span part = waited_for_before(n)) {
      work_until(n, std::min(spans_[*part].end_ns(), now_ns_));
      work_until(*part, spans_[*part].start_ns);
    }
    work_until(n, spans_[n].start_ns);
    return n;
  }

  /// Walks back through the work in a span, from `now_ns_` to another time.
  void work_until(span_number n, std::int64_t from_ns) {
    from_ns = std::max(from_ns, begin_ns_);
    if (from_ns < now_ns_) {
      intervals_.push_back({n, from_ns, now_ns_});
      segments_.push_back({from_ns, now_ns_, path_kind::operation, spans_[n].file});
    }
    now_ns_ = std::min(now_ns_, from_ns);
  }

  /// Returns the span of another thread for which the thread of `n` waited last before `now_ns_`;
  /// nullopt if it waited for none.
  optional_span waited_for_before(span_number n) const {
    const off_cpu_time* const off =
        run_.side.off_cpu_of(spans_[n].file, spans_[n].stage == preprocess_stage);
    optional_span last;
    std::int64_t last_ns = begin_ns_;
    // Backwards, few parts end later than those after them, so few are compared with the CPU time.
    const std::vector<span_number>& parts = awaited_.of(n);
    for (auto at = parts.rbegin(); at != parts.rend(); ++at) {
      const span_number m = *at;
      const std::int64_t start_ns = spans_[m].start_ns;
      const std::int64_t end_ns = std::min(spans_[m].end_ns(), now_ns_);
      if (end_ns <= start_ns || end_ns <= begin_ns_ || end_ns < last_ns) continue;
      const bool works =
          off != nullptr && 2 * off->split(start_ns, end_ns).cpu_ns > end_ns - start_ns;
      if (works) continue;
      last = m;
      last_ns = end_ns;
    }
    return last;
  }

  /// Finds the event that allowed span `n` to begin, such as the end of the thread's previous span.
  /// Returns the span at whose end the walk continues. Returns nullopt if the walk continues where
  /// the consumer received another batch, to whose index `reception_` is set.
  optional_span at_start(span_number n) {
    const preprocessing_span& s = spans_[n];
    if (by_consumer(s)) return consumer_before(n);
    const optional_span before = links_.before(n);
    const optional_span earlier = links_.earlier(n);
    if (before && links_.just_before(spans_[*before].end_ns(), s.start_ns)) {
      pass(path_kind::unrecorded, spans_[*before].end_ns());
      return before;
    }
    if (earlier && links_.just_before(spans_[*earlier].end_ns(), s.start_ns)) return earlier;
    const optional_span fetching = links_.fetching_span(s);
    if (fetching) {
      pass(path_kind::delivery, spans_[*fetching].start_ns);
      return *fetching == n ? optional_span() : at_start_of_fetching(*fetching);
    }
    const std::optional<std::size_t> reception = delivery_before(s.start_ns);
    if (reception && links_.just_before((*deliveries_)[*reception].at_ns, s.start_ns)) {
      reception_ = *reception;
      pass(path_kind::prefetch, (*deliveries_)[*reception].at_ns);
      return std::nullopt;
    }
    if (reception && was_asked_for(s, *reception)) {
      reception_ = *reception;
      const delivered& h = (*deliveries_)[reception_];
      pass(path_kind::delivery, wait_after(*reception)->start_ns);
      pass(path_kind::step, h.at_ns, batches_.record(batches_.at(h.batch).consumed)->file);
      return std::nullopt;
    }
    const optional_span freeing = links_.freeing_span(s);
    if (freeing && !worked_between(before, s)) return freeing;
    if (waited_between(before, s)) {
      if (const optional_span taking = links_.taking_span(n)) return at_start_of_fetching(*taking);
      if (const std::optional<std::size_t> taken = taken_at_start(n)) {
        reception_ = *taken;
        return std::nullopt;
      }
    }
    if (const optional_span handing = handing_before(n)) return handing;
    return latest(before, earlier, reception);
  }

  /// Returns the span at whose end the item of `n`, which had been ready before, was handed over to
  /// a waiting thread; nullopt if there is none.
  optional_span handing_before(span_number n) const {
    const optional_span handing = links_.handing_span(n);
    if (!handing || awaited_.is_forked(*handing)) return std::nullopt;
    return worked_between(links_.before(n), spans_[n]) ? std::nullopt : handing;
  }

  /// Returns whether the thread of `s` is known to have worked for most of the time from its
  /// previous span, `before`, to `s`.
  bool worked_between(optional_span before, const preprocessing_span& s) const {
    const off_cpu_time* const off = run_.side.off_cpu_of(s.file, s.stage == preprocess_stage);
    if (!before || off == nullptr) return false;
    const std::int64_t from_ns = spans_[*before].end_ns();
    return 2 * off->split(from_ns, s.start_ns).cpu_ns > s.start_ns - from_ns;
  }

  /// Returns whether the thread of `s` may have waited for another thread for most of the time from
  /// its previous span, `before`, to `s`.
  bool waited_between(optional_span before, const preprocessing_span& s) const {
    const off_cpu_time* const off = run_.side.off_cpu_of(s.file, s.stage == preprocess_stage);
    if (!before || off == nullptr) return true;
    const std::int64_t from_ns = spans_[*before].end_ns();
    const cpu_split split = off->split(from_ns, s.start_ns);
    return 2 * (split.cpu_ns + split.run_queue_ns.value_or(0)) <= s.start_ns - from_ns;
  }

  /// Returns the index in `deliveries_` of the batch that the consumer took when span `n` began;
  /// nullopt if it took none. If the thread of `n` waited for room in a full queue, it was woken up
  /// while the consumer took that batch, so it may begin before the reception is recorded.
  std::optional<std::size_t> taken_at_start(span_number n) const {
    const std::int64_t start_ns = spans_[n].start_ns;
    const std::optional<std::size_t> reception = delivery_before(start_ns);
    const std::size_t next = reception ? *reception + 1 : 0;
    if (next >= deliveries_->size()) return std::nullopt;
    const delivered& h = (*deliveries_)[next];
    const batch& taken = batches_.at(h.batch);
    const optional_span last = last_span(taken, h.at_ns);
    if (!last || spans_[*last].end_ns() > start_ns) return std::nullopt;
    const batch_record* const wait = batches_.record(taken.wait);
    const bool waited = wait != nullptr && !wait->is_marker();
    if (waited && wait->start_ns > start_ns) return std::nullopt;
    const bool at_once = waited && spans_[*last].end_ns() <= wait->start_ns &&
                         links_.just_before(wait->start_ns, start_ns);
    const bool soon = links_.just_before(start_ns, h.at_ns);
    // A thread that completes its batch outside of the span, and then begins the next one, also
    // begins just before its batch is received, but by then the consumer has waited for it.
    const optional_span before = links_.before(n);
    const bool is_own = before && spans_[*before].batch == h.batch;
    return (is_own ? at_once && soon : at_once || soon) ? std::optional(next) : std::nullopt;
  }

  /// `reception` is the index of a received batch in `deliveries_`. Returns the consumer's wait for
  /// the batch that it received next; nullptr if it did not wait for that batch.
  const batch_record* wait_after(std::size_t reception) const {
    if (reception + 1 >= deliveries_->size()) return nullptr;
    const batch& next = batches_.at((*deliveries_)[reception + 1].batch);
    const batch_record* const wait = batches_.record(next.wait);
    return wait == nullptr || wait->is_marker() ? nullptr : wait;
  }

  /// `reception` is the index of a received batch in `deliveries_`. Returns whether the span `s`
  /// belongs to the batch that the consumer received next, and began when the consumer began to
  /// wait for this batch. If so, the span began so late because of the consumer's step before the
  /// wait, not because of a limit on the batches in flight.
  bool was_asked_for(const preprocessing_span& s, std::size_t reception) const {
    const batch_record* const wait = wait_after(reception);
    return wait != nullptr && s.batch && *s.batch == (*deliveries_)[reception + 1].batch &&
           wait->start_ns >= (*deliveries_)[reception].at_ns &&
           links_.just_before(wait->start_ns, s.start_ns);
  }

  /// `fetching` is a span of the next stage that took an item out of a full queue. It began just
  /// before or after `now_ns_`. Finds the event
  /// that allowed this span to begin: the end of the previous span of its thread, or of the
  /// previous span of its batch or item.
  optional_span at_start_of_fetching(span_number fetching) {
    const optional_span before = links_.before(fetching);
    const optional_span earlier = links_.earlier(fetching);
    const bool idle = !before || !links_.just_before(spans_[*before].end_ns(), now_ns_);
    const optional_span handing = idle ? handing_before(fetching) : std::nullopt;
    if (handing && spans_[*handing].end_ns() <= now_ns_) return handing;
    if (before && spans_[*before].end_ns() <= now_ns_ &&
        (!earlier || spans_[*earlier].end_ns() <= spans_[*before].end_ns())) {
      return before;
    }
    if (earlier && spans_[*earlier].end_ns() <= now_ns_) return earlier;
    return latest(before, std::nullopt, delivery_before(now_ns_));
  }

  /// Chooses where the walk continues if it is not clear which event allowed a span to begin. It
  /// continues at the last event before the span: the end of the span `before` or `earlier`, or the
  /// moment when the consumer received the batch with the index `reception` in `deliveries_`.
  optional_span latest(optional_span before, optional_span earlier,
                       std::optional<std::size_t> reception) {
    std::int64_t at_ns = INT64_MIN;
    optional_span to;
    for (const optional_span n : {before, earlier}) {
      if (!n || spans_[*n].end_ns() > now_ns_ || spans_[*n].end_ns() <= at_ns) continue;
      at_ns = spans_[*n].end_ns();
      to = n;
    }
    if (reception && (*deliveries_)[*reception].at_ns > at_ns) {
      reception_ = *reception;
      pass(path_kind::prefetch, (*deliveries_)[*reception].at_ns);
      return std::nullopt;
    }
    if (!to || at_ns <= begin_ns_) return begin();
    pass(path_kind::unrecorded, at_ns);
    return to;
  }

  bool by_consumer(const preprocessing_span& s) const {
    if (batches_.pushed()) return false;
    const batch_record* const used =
        batches_.record(batches_.at((*deliveries_)[reception_].batch).consumed);
    return s.file && run_.log(*s.file).number == run_.log(used->file).number;
  }

  /// Returns the last span of the consumer's own thread that began before `at_ns`.
  span_number last_of_consumer(file_id file, std::int64_t at_ns) {
    std::vector<span_number>& own = of_consumer_[run_.log(file).number];
    if (own.empty()) {
      for (span_number m = 0; m < spans_.size(); ++m) {
        if (is_segmented_[m] && by_consumer(spans_[m])) own.push_back(m);
      }
      std::sort(own.begin(), own.end(), [this](span_number x, span_number y) {
        return spans_[x].start_ns < spans_[y].start_ns;
      });
    }
    return *std::prev(std::partition_point(
        own.begin(), own.end(), [&](span_number m) { return spans_[m].start_ns < at_ns; }));
  }

  optional_span consumer_before(span_number n) {
    const std::optional<std::size_t> reception = delivery_before(spans_[n].start_ns);
    const optional_span before = links_.before(n);
    const std::int64_t received_ns = reception ? (*deliveries_)[*reception].at_ns : begin_ns_;
    if (before && by_consumer(spans_[*before]) && spans_[*before].end_ns() > received_ns) {
      pass(path_kind::unrecorded, spans_[*before].end_ns());
      return before;
    }
    if (!reception) return begin();
    reception_ = *reception;
    const delivered& h = (*deliveries_)[reception_];
    pass(path_kind::step, h.at_ns, batches_.record(batches_.at(h.batch).consumed)->file);
    return std::nullopt;
  }

  /// Returns the index in `deliveries_` of the last batch that was received at or before `time_ns`.
  std::optional<std::size_t> delivery_before(std::int64_t time_ns) const {
    const auto next =
        std::upper_bound(deliveries_->begin(), deliveries_->end(), time_ns,
                         [](std::int64_t t, const delivered& h) { return t < h.at_ns; });
    if (next == deliveries_->begin()) return std::nullopt;
    return static_cast<std::size_t>(next - deliveries_->begin()) - 1;
  }

  const run_data& run_;
  const run_batches& batches_;
  const std::vector<preprocessing_span>& spans_;
  std::vector<bool> is_segmented_;  // for each span: whether it is split into segments
  std::vector<preprocessing_interval> intervals_;
  std::vector<path_segment> segments_;
  span_links links_;
  // By the number of its log: the spans of a consumer that builds batches itself, sorted by start.
  std::map<std::uint64_t, std::vector<span_number>> of_consumer_;
  awaited_spans awaited_;
  std::vector<path_activity>* activities_;
  path_sum sum_;
  const std::vector<delivered>* deliveries_ = nullptr;  // all receptions of the current epoch
  std::int64_t begin_ns_ = 0;
  std::int64_t now_ns_ = 0;
  std::size_t reception_ = 0;  // index of the reception that the walk reached last
  bool finished_ = false;
};

}  // namespace

critical_path find_critical_path(const run_data& run, std::vector<path_activity>* activities) {
  return path_walker(run, activities).walk();
}

}  // namespace lotus::tool
