// When batches were handed over, what the consumer did then, and how they were made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "log/log_line.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// What of the spans of a batch is its making: a stage of the consumer's own comes behind the
/// hand-over, unless all do, and then the logs are wrong and shall look so.
class making_of_batch {
 public:
  making_of_batch(const run_batches& batches, const batch& b) {
    const making_span* const first = batches.making().data() + b.first_span;
    const std::optional<std::int64_t> until_ns = batches.hand_over_ns(b);
    for (const making_span* s = first; s != first + b.spans; ++s) {
      if (!until_ns || s->start_ns < *until_ns) spans_.push_back(s);
    }
    if (!spans_.empty()) return;
    for (const making_span* s = first; s != first + b.spans; ++s) spans_.push_back(s);
  }

  const std::vector<const making_span*>& spans() const noexcept { return spans_; }

  /// How long any of them that `counts` was open.
  template <class Counts>
  std::int64_t covered_ns(Counts&& counts) const {
    std::int64_t sum = 0;
    std::int64_t until_ns = INT64_MIN;
    for (const making_span* const s : spans_) {
      if (!counts(*s)) continue;
      sum += std::max<std::int64_t>(0, s->end_ns() - std::max(s->start_ns, until_ns));
      until_ns = std::max(until_ns, s->end_ns());
    }
    return sum;
  }

 private:
  std::vector<const making_span*> spans_;  // in order of start
};

}  // namespace

void run_batches::find_hand_overs() {
  struct consumer_time {
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<std::pair<file_id, std::uint32_t>, consumer_time> times;  // of thread and epoch
  double late_ns = 0;
  std::size_t late = 0;
  std::size_t handed_over = 0;
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
    ++handed_over;
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
  // A batch that was put aside has no wait to be late behind, but is as late as the others.
  if (waited_for > 0) mean_late_ns_ = late_ns / static_cast<double>(waited_for);
  if (late > 0) late_ns *= static_cast<double>(handed_over) / static_cast<double>(waited_for);
  constexpr std::size_t fewest = 3;  // of one or two nothing can be said
  late_share_ = all_ns > 0 && late >= fewest ? std::min(1.0, late_ns / all_ns) : 0;

  hand_overs_.assign(records_.size(), -1);
  std::vector<const batch*> in_time;
  for (const batch& b : batches_) {
    if (b.consumed) in_time.push_back(&b);
  }
  std::sort(in_time.begin(), in_time.end(), [this](const batch* a, const batch* b) {
    const batch_record& x = records_[*a->consumed];
    const batch_record& y = records_[*b->consumed];
    return std::tie(x.file, x.start_ns, a->consumed) < std::tie(y.file, y.start_ns, b->consumed);
  });
  const batch_record* before = nullptr;
  for (const batch* b : in_time) {
    const batch_record& used = records_[*b->consumed];
    const batch_record* const wait = record(b->wait);
    std::int64_t& at = hand_overs_[*b->consumed];
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
    return hand_overs_[n] >= 0 ? hand_overs_[n] : records_[n].start_ns;
  };
  std::sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
    return std::make_tuple(records_[a].file, time_of(a), a) <
           std::make_tuple(records_[b].file, time_of(b), b);
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
  std::map<std::pair<consumer_id, std::uint32_t>, epoch_times> found;  // of consumer and epoch
  std::map<std::pair<consumer_id, std::uint32_t>, std::int64_t> begins;
  for (const batch& b : batches_) {
    for (const optional_record n : {b.wait, b.consumed}) {
      if (!n || records_[*n].is_marker()) continue;
      const batch_record& r = records_[*n];
      const auto [at, is_new] = begins.try_emplace({r.consumer, b.epoch}, r.start_ns);
      at->second = std::min(at->second, r.start_ns);
    }
    const std::optional<std::int64_t> time_ns = hand_over_ns(b);
    if (!time_ns) continue;
    const consumer_id consumer = records_[*b.consumed].consumer;
    epoch_times& e = found[{consumer, b.epoch}];
    if (e.handed_over++ == 0) {
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

std::optional<double> run_batches::achieved_per_s() const noexcept {
  double batches = 0;
  double ns = 0;
  for (const epoch_times& e : epochs_) {
    if (e.handed_over < 2) continue;
    batches += static_cast<double>(e.handed_over - 1);
    ns += static_cast<double>(e.last_ns - e.first_ns);
  }
  if (batches <= 0 || ns <= 0) return std::nullopt;
  return batches * 1e9 / ns;
}

std::optional<std::int64_t> run_batches::hand_over_ns(const batch& b) const noexcept {
  if (!b.consumed) return std::nullopt;
  return hand_overs_[*b.consumed];
}

std::optional<time_span> run_batches::step(optional_record consumed) const noexcept {
  if (!consumed || step_ends_[*consumed] < 0) return std::nullopt;
  return time_span{hand_overs_[*consumed], step_ends_[*consumed]};
}

std::optional<std::int64_t> run_batches::step_ns(optional_record consumed) const noexcept {
  const std::optional<time_span> of = step(consumed);
  return of ? std::optional(of->duration_ns()) : std::nullopt;
}

std::optional<std::int64_t> run_batches::preprocess_ns(const batch& b) const {
  const batch_record* const r = record(b.preprocessed);
  if (r == nullptr) return std::nullopt;
  if (!in_pieces_) return r->duration_ns;
  return making_of_batch(*this, b).covered_ns(
      [](const making_span& s) { return s.stage == preprocess_stage; });
}

std::optional<std::int64_t> run_batches::delay_ns(const batch& b) const {
  const std::optional<time_span> making = made(b);
  const std::optional<std::int64_t> handed_over = hand_over_ns(b);
  if (!making || !handed_over) return std::nullopt;
  return *handed_over - making->end_ns;
}

std::optional<time_span> run_batches::made(const batch& b) const {
  if (b.spans == 0) return std::nullopt;
  const making_of_batch of(*this, b);
  time_span whole{of.spans().front()->start_ns, INT64_MIN};
  for (const making_span* const s : of.spans()) whole.end_ns = std::max(whole.end_ns, s->end_ns());
  return whole;
}

std::int64_t run_batches::service_ns(const batch& b) const {
  const making_of_batch of(*this, b);
  // What is nested in another span of the batch, on its thread, is in that one's time already.
  std::map<optional_file, std::int64_t> until_ns;
  std::int64_t sum = 0;
  for (const making_span* const s : of.spans()) {
    const auto [at, is_new] = until_ns.try_emplace(s->file, INT64_MIN);
    if (s->end_ns() <= at->second) continue;
    sum += s->duration_ns;
    at->second = s->end_ns();
  }
  return sum;
}

std::int64_t run_batches::queueing_ns(const batch& b) const {
  const std::optional<time_span> whole = made(b);
  if (!whole) return 0;
  return whole->duration_ns() -
         making_of_batch(*this, b).covered_ns([](const making_span&) { return true; });
}

}  // namespace lotus::tool
