#include "model/run_model.hpp"

#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/sorting.hpp"
#include "model/batches/batch_preprocessings.hpp"
#include "model/batches/epochs.hpp"
#include "model/batches/pieces.hpp"
#include "model/pipeline/items.hpp"

namespace lotus::tool {
namespace {

/// The spans that belong to the preprocessing of a batch. Spans that begin after the consumer
/// received the batch, such as those of a stage that the consumer runs, do not belong to it. If all
/// spans begin after that time, the logs are inconsistent; then all spans are kept, so that the
/// inconsistency stays visible.
class preprocessing_of_batch {
 public:
  preprocessing_of_batch(const run_batches& batches, const batch& b)
      : first_(batches.preprocessing_spans().data() + b.first_span),
        last_(first_ + b.spans),
        until_ns_(batches.delivery_ns(b).value_or(INT64_MAX)) {
    // The spans are sorted by start, so if the first began too late, all did.
    if (first_ != last_ && first_->start_ns >= until_ns_) until_ns_ = INT64_MAX;
  }

  /// Calls `on_span(span)` for each of the spans, in order of their starts.
  template <class OnSpan>
  void for_each(OnSpan&& on_span) const {
    for (const preprocessing_span* s = first_; s != last_ && s->start_ns < until_ns_; ++s) {
      on_span(*s);
    }
  }

  /// Returns the sum of the times of those spans for which `counts(span)` is true.
  template <class Counts>
  work_time time(Counts&& counts) const {
    work_time sum;
    for_each([&](const preprocessing_span& s) {
      if (counts(s)) sum.add(s);
    });
    return sum;
  }

 private:
  const preprocessing_span* first_;
  const preprocessing_span* last_;
  std::int64_t until_ns_;  // spans that begin at this time or later do not belong to the batch
};

}  // namespace

run_batches::run_batches(batch_records records, const std::vector<stage_span>& stages,
                         const std::vector<batch_inclusion>& inclusions, bool cut_off)
    : records_(std::move(records)) {
  const bool in_pieces = join_pieces(records_, stages);
  waits_known_ = std::any_of(records_.begin(), records_.end(),
                             [](const batch_record& r) { return r.kind == record_kind::wait; });
  pushed_ = !stages.empty() && std::all_of(records_.begin(), records_.end(), [](const auto& r) {
    return r.kind == record_kind::queued;
  });
  batch_preprocessings found;
  if (join_successive_consumers()) {
    std::vector<stage_span> joined_stages = stages;
    std::vector<batch_inclusion> joined_inclusions = inclusions;
    for (stage_span& s : joined_stages) s.consumer = {};
    for (batch_inclusion& t : joined_inclusions) t.consumer = {};
    found = find_preprocessings(records_, joined_stages, joined_inclusions, in_pieces);
  } else {
    found = find_preprocessings(records_, stages, inclusions, in_pieces);
  }
  in_parts_ = found.in_parts;
  first_epochs_ = find_epochs(records_, found, cut_off);
  join(found);
  find_deliveries();
  find_steps();
  find_epoch_times();
  find_length();
}

/// Combines consumer processes that ran one after another into one consumer. Such processes occur
/// if the program was run again and appended to the same logs.
bool run_batches::join_successive_consumers() {
  struct span {
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<consumer_id, span> spans;
  for (const batch_record& r : records_) {
    if (r.kind != record_kind::wait && r.kind != record_kind::consumed) continue;
    span& s = spans[r.consumer];
    s.first_ns = std::min(s.first_ns, r.start_ns);
    s.last_ns = std::max(s.last_ns, r.consumer_had_it_ns());
  }
  std::vector<span> by_time;
  by_time.reserve(spans.size());
  for (const auto& [consumer, s] : spans) by_time.push_back(s);
  std::sort(by_time.begin(), by_time.end(),
            [](const span& a, const span& b) { return a.first_ns < b.first_ns; });
  for (std::size_t i = 1; i < by_time.size(); ++i) {
    if (by_time[i].first_ns < by_time[i - 1].last_ns) {
      consumers_ = by_time.size();
      return false;
    }
  }
  for (batch_record& r : records_) r.consumer = {};
  return true;
}

void run_batches::join(batch_preprocessings& found) {
  const auto numbers =
      numbers_by(records_, [](const batch_record& r) { return std::make_tuple(r.epoch, r.index); });
  std::vector<batch> batches;
  const auto key = [](const auto& b) { return std::make_pair(b.epoch, b.index); };
  for (const record_number n : numbers) {
    const batch_record& r = records_[n];
    if (batches.empty() || key(batches.back()) != key(r)) {
      batches.emplace_back();
      batches.back().index = r.index;
      batches.back().epoch = r.epoch;
    }
    batch& b = batches.back();
    switch (r.kind) {
      case record_kind::preprocessed:
        if (!b.preprocessed || records_[*b.preprocessed].end_ns() < r.end_ns()) {
          b.preprocessed = n;
        }
        break;
      case record_kind::wait:
        b.wait = n;
        break;
      case record_kind::consumed:
        b.consumed = n;
        break;
      case record_kind::queued:
        b.queued = n;
        break;
      case record_kind::op:
        break;
    }
  }
  // The code above has created no entry for a batch that occurs only in spans of stages. Add an
  // entry for each preprocessing; the code below removes an entry if its batch already has one.
  for (const batch_preprocessing& m : found.all) {
    batch b;
    b.index = m.number;
    b.epoch = m.epoch;
    batches.push_back(b);
  }
  sort_runs(batches.begin(), batches.end(),
            [&](const batch& a, const batch& b) { return key(a) < key(b); });
  batches.erase(std::unique(batches.begin(), batches.end(),
                            [&](const batch& a, const batch& b) { return key(a) == key(b); }),
                batches.end());
  batches_ = std::move(batches);
  first_epoch_batches_ = static_cast<std::size_t>(
      std::count_if(batches_.begin(), batches_.end(), [](const batch& b) { return b.epoch == 0; }));
  for (preprocessing_span& s : found.spans) {
    if (!s.batch) continue;
    const batch_preprocessing& m = found.all[s.batch->value()];
    batch_record wanted;
    wanted.index = m.number;
    wanted.epoch = m.epoch;
    s.batch = batch_of(wanted);
  }
  sort_runs(found.spans.begin(), found.spans.end(),
            [](const preprocessing_span& a, const preprocessing_span& b) {
              return std::tie(a.batch, a.start_ns, b.duration_ns, a.file) <
                     std::tie(b.batch, b.start_ns, a.duration_ns, b.file);
            });
  preprocessing_spans_ = std::move(found.spans);
  for (span_number i = 0; i < preprocessing_spans_.size() && preprocessing_spans_[i].batch; ++i) {
    batch& b = batches_[preprocessing_spans_[i].batch->value()];
    if (b.spans++ == 0) b.first_span = i;
  }
}

void run_batches::find_deliveries() {
  struct consumer_time {
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<std::pair<file_id, std::uint32_t>, consumer_time> times;  // the key is log and epoch
  double late_ns = 0;
  std::size_t late = 0;
  std::size_t delivered = 0;
  std::size_t waited_for = 0;
  for (const batch& b : batches_) {
    const batch_record* const wait = record(b.wait);
    const batch_record* const used = record(b.consumed);
    if (wait != nullptr && !wait->is_marker()) {
      consumer_time& t = times[{wait->file, b.epoch}];
      t.first_ns = std::min(t.first_ns, wait->start_ns);
    }
    if (used == nullptr) continue;
    consumer_time& t = times[{used->file, b.epoch}];
    t.last_ns = std::max(t.last_ns, used->start_ns);
    ++delivered;
    const bool waited = wait != nullptr && !wait->is_marker();
    if (waited) ++waited_for;
    if (waited && wait->end_ns() < used->start_ns) {
      late_ns += static_cast<double>(used->start_ns - wait->end_ns());
      ++late;
    }
  }
  double all_ns = 0;
  for (const auto& [of, t] : times) {
    if (t.first_ns < t.last_ns) all_ns += static_cast<double>(t.last_ns - t.first_ns);
  }
  // A batch that was received early and buffered has no wait, so its time from the end of the wait
  // to the SBatchConsumed record is unknown. Assume that it equals the mean of this time over the
  // other batches.
  if (waited_for > 0) mean_late_ns_ = late_ns / static_cast<double>(waited_for);
  if (late > 0) late_ns *= static_cast<double>(delivered) / static_cast<double>(waited_for);
  constexpr std::size_t fewest = 3;  // with fewer batches the share is meaningless
  late_share_ = all_ns > 0 && late >= fewest ? std::min(1.0, late_ns / all_ns) : 0;

  deliveries_.assign(records_.size(), -1);
  std::vector<const batch*> in_time;
  for (const batch& b : batches_) {
    if (b.consumed) in_time.push_back(&b);
  }
  sort_runs(in_time.begin(), in_time.end(), [this](const batch* a, const batch* b) {
    const batch_record& x = records_[*a->consumed];
    const batch_record& y = records_[*b->consumed];
    return std::tie(x.file, x.start_ns, a->consumed) < std::tie(y.file, y.start_ns, b->consumed);
  });
  const batch_record* before = nullptr;
  for (const batch* b : in_time) {
    const batch_record& used = records_[*b->consumed];
    const batch_record* const wait = record(b->wait);
    std::int64_t& at = deliveries_[*b->consumed];
    at = used.start_ns;
    if (consumed_late()) {
      if (wait != nullptr && !wait->is_marker()) {
        at = std::min(at, wait->end_ns());
      } else if (before != nullptr && before->file == used.file && before->epoch == used.epoch) {
        at = before->start_ns;
      }
    }
    before = &used;
  }
}

void run_batches::find_steps() {
  step_ends_.assign(records_.size(), -1);
  std::vector<record_number> numbers(records_.size());
  std::iota(numbers.begin(), numbers.end(), record_number{0});
  const auto time_of = [this](record_number n) {
    return deliveries_[n] >= 0 ? deliveries_[n] : records_[n].start_ns;
  };
  sort_runs(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
    return std::make_tuple(records_[a].file, time_of(a)) <
           std::make_tuple(records_[b].file, time_of(b));
  });
  optional_record open;
  for (const record_number n : numbers) {
    const batch_record& r = records_[n];
    const bool consumes = r.kind == record_kind::consumed;
    if (!consumes && (r.kind != record_kind::wait || r.is_marker())) continue;
    if (open && records_[*open].file == r.file && records_[*open].epoch == r.epoch) {
      step_ends_[*open] = time_of(n);
    }
    open = consumes ? optional_record(n) : std::nullopt;
  }
}

void run_batches::find_epoch_times() {
  std::map<std::pair<consumer_id, std::uint32_t>, epoch_times> found;  // by consumer and epoch
  std::map<std::pair<consumer_id, std::uint32_t>, std::int64_t> begins;
  for (const batch& b : batches_) {
    for (const optional_record n : {b.wait, b.consumed}) {
      if (!n || records_[*n].is_marker()) continue;
      const batch_record& r = records_[*n];
      const auto [at, is_new] = begins.try_emplace({r.consumer, b.epoch}, r.start_ns);
      at->second = std::min(at->second, r.start_ns);
    }
    const std::optional<std::int64_t> time_ns = left_ns(b);
    if (!time_ns) continue;
    const consumer_id consumer =
        pushed_ ? preprocessing_spans_[b.first_span].consumer : records_[*b.consumed].consumer;
    epoch_times& e = found[{consumer, b.epoch}];
    if (e.delivered++ == 0) {
      e.epoch = b.epoch;
      e.consumer = consumer;
      e.first_ns = e.last_ns = *time_ns;
    }
    e.first_ns = std::min(e.first_ns, *time_ns);
    e.last_ns = std::max(e.last_ns, *time_ns);
  }
  for (auto& [key, e] : found) {
    const auto next = begins.upper_bound(key);
    if (next != begins.end() && next->first.first == key.first) {
      e.between_ns = std::max<std::int64_t>(0, next->second - e.last_ns);
    }
    epochs_.push_back(e);
  }
}

void run_batches::find_length() {
  std::vector<std::int64_t> steps;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t first_left_ns = INT64_MAX;
  for (const batch& b : batches_) {
    const std::optional<std::int64_t> left = left_ns(b);
    if (!left) continue;
    first_left_ns = std::min(first_left_ns, *left);
    first_ns = std::min(first_ns, *left);
    for (const optional_record n : {b.queued, b.wait}) {
      if (n && !records_[*n].is_marker()) first_ns = std::min(first_ns, records_[*n].start_ns);
    }
    const std::optional<time_span> preprocessing = made(b);
    if (preprocessing) first_ns = std::min(first_ns, preprocessing->start_ns);
    const std::optional<std::int64_t> step = step_ns(b.consumed);
    if (step && waits_known_) steps.push_back(*step);
  }
  if (!steps.empty()) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    median_step_ns_ = *middle;
  }
  begins_with_reception_ = first_ns == first_left_ns;
  start_ns_ = epochs_.empty() ? 0 : first_ns;
  for (const epoch_times& e : epochs_) {
    length_ns_ = std::max(length_ns_, e.last_ns + last_step_ns(e) - first_ns);
  }
}

std::int64_t run_batches::last_step_ns(const epoch_times& of) const noexcept {
  return of.between_ns ? std::min(*of.between_ns, median_step_ns_) : median_step_ns_;
}

std::optional<double> run_batches::achieved_per_s() const noexcept {
  std::size_t batches = 0;
  for (const epoch_times& e : epochs_) batches += e.delivered;
  if (batches < 2 || length_ns_ <= 0) return std::nullopt;
  if (begins_with_reception_) --batches;
  return static_cast<double>(batches) * 1e9 / static_cast<double>(length_ns_);
}

std::optional<double> run_batches::steady_per_s() const noexcept {
  double batches = 0;
  double ns = 0;
  for (const epoch_times& e : epochs_) {
    if (e.delivered < 2) continue;
    batches += static_cast<double>(e.delivered - 1);
    ns += static_cast<double>(e.last_ns - e.first_ns);
  }
  if (batches <= 0 || ns <= 0) return std::nullopt;
  return batches * 1e9 / ns;
}

std::optional<std::int64_t> run_batches::delivery_ns(const batch& b) const noexcept {
  if (!b.consumed) return std::nullopt;
  return deliveries_[*b.consumed];
}

std::optional<std::int64_t> run_batches::left_ns(const batch& b) const noexcept {
  if (!pushed_ || b.spans == 0) return delivery_ns(b);
  std::int64_t end_ns = INT64_MIN;
  for (std::uint32_t i = 0; i < b.spans; ++i) {
    end_ns = std::max(end_ns, preprocessing_spans_[b.first_span + i].end_ns());
  }
  return end_ns;
}

std::size_t run_batches::discarded() const noexcept {
  const auto received = [](const batch& b) { return b.consumed.has_value(); };
  if (std::none_of(batches_.begin(), batches_.end(), received)) return 0;
  return static_cast<std::size_t>(std::count_if(
      batches_.begin(), batches_.end(), [](const batch& b) { return !b.consumed && b.spans > 0; }));
}

std::optional<time_span> run_batches::step(optional_record consumed) const noexcept {
  if (!consumed || step_ends_[*consumed] < 0) return std::nullopt;
  return time_span{deliveries_[*consumed], step_ends_[*consumed]};
}

std::optional<std::int64_t> run_batches::step_ns(optional_record consumed) const noexcept {
  const std::optional<time_span> of = step(consumed);
  return of ? std::optional(of->duration_ns()) : std::nullopt;
}

std::optional<std::int64_t> run_batches::preprocess_ns(const batch& b) const {
  const batch_record* const r = record(b.preprocessed);
  if (r == nullptr) return std::nullopt;
  if (!in_parts_) return r->duration_ns;
  return preprocessing_of_batch(*this, b)
      .time([](const preprocessing_span& s) { return s.stage == preprocess_stage; })
      .covered_ns();
}

std::optional<std::int64_t> run_batches::delay_ns(const batch& b) const {
  const std::optional<time_span> preprocessing = made(b);
  const std::optional<std::int64_t> delivered = delivery_ns(b);
  if (!preprocessing || !delivered) return std::nullopt;
  return *delivered - preprocessing->end_ns;
}

std::optional<time_span> run_batches::made(const batch& b) const {
  if (b.spans == 0) return std::nullopt;
  time_span whole{preprocessing_spans_[b.first_span].start_ns, INT64_MIN};
  preprocessing_of_batch(*this, b).for_each(
      [&whole](const preprocessing_span& s) { whole.end_ns = std::max(whole.end_ns, s.end_ns()); });
  return whole;
}

std::int64_t run_batches::service_ns(const batch& b) const {
  return preprocessing_of_batch(*this, b)
      .time([](const preprocessing_span&) { return true; })
      .service_ns();
}

std::int64_t run_batches::queueing_ns(const batch& b) const {
  const std::optional<time_span> whole = made(b);
  if (!whole) return 0;
  return whole->duration_ns() - preprocessing_of_batch(*this, b)
                                    .time([](const preprocessing_span&) { return true; })
                                    .covered_ns();
}

batch_id run_batches::batch_of(const batch_record& r) const noexcept {
  // Most epochs have the batches 0, 1, 2 and so on, as many as the other epochs. Then the batch is
  // found without a search.
  const std::uint64_t guess = r.epoch * first_epoch_batches_ + static_cast<std::uint64_t>(r.index);
  if (guess < batches_.size() && batches_[guess].epoch == r.epoch &&
      batches_[guess].index == r.index) {
    return batch_id(guess);
  }
  const auto at = std::lower_bound(
      batches_.begin(), batches_.end(), r, [](const batch& b, const batch_record& wanted) {
        return std::tie(b.epoch, b.index) < std::tie(wanted.epoch, wanted.index);
      });
  return batch_id(at - batches_.begin());
}

std::uint32_t run_batches::epoch_of_consumer(const batch& b) const noexcept {
  const auto next = std::upper_bound(first_epochs_.begin(), first_epochs_.end(), b.epoch);
  return next == first_epochs_.begin() ? b.epoch : b.epoch - *std::prev(next);
}

std::optional<std::int64_t> run_batches::wait_ns(const batch& b) const noexcept {
  const batch_record* const r = record(b.wait);
  if (r == nullptr) return std::nullopt;
  return r->is_marker() ? 0 : r->duration_ns;
}

bool run_batches::out_of_order(const batch& b) const noexcept {
  const batch_record* const r = record(b.wait);
  return r != nullptr && r->is_marker();
}

}  // namespace lotus::tool
