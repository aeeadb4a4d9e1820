#include "model/run_model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "log/log_line.hpp"
#include "model/pipeline/makings.hpp"

namespace lotus::tool {
namespace {

/// Numbers of the records, sorted by `key`; equal keys stay in the order of the logs.
template <class Key>
std::vector<record_number> numbers_by(const batch_records& records, Key key) {
  std::vector<record_number> numbers(records.size());
  std::iota(numbers.begin(), numbers.end(), record_number{0});
  std::sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
    return std::tuple_cat(key(records[a]), std::tie(a)) <
           std::tuple_cat(key(records[b]), std::tie(b));
  });
  return numbers;
}

/// When the consumer had the batch: the durations of markers and consumptions are placeholders.
std::int64_t consumer_had_it_ns(const batch_record& r) noexcept {
  return r.kind == record_kind::wait && !r.is_marker() ? r.end_ns() : r.start_ns;
}

/// The records and makings of one batch number, of all epochs, in order of time.
class same_number {
 public:
  void clear() {
    for (auto& records : of_kind_) records.clear();
    makings_.clear();
  }
  void add(batch_record& r) { of_kind_[static_cast<std::size_t>(r.kind)].push_back(&r); }
  void add(batch_making& m) { makings_.push_back(&m); }

  /// Returns the epoch after the last one.
  /// @param cut_off  as run_batches has it.
  std::uint32_t set_epochs(std::uint32_t first, bool cut_off) {
    const std::size_t missing = cut_off ? consumed_before_made() : 0;
    std::size_t epochs = makings_.size() + missing;
    for (std::size_t i = 0; i < makings_.size(); ++i) {
      makings_[i]->epoch = first + static_cast<std::uint32_t>(i + missing);
    }
    for (auto& records : of_kind_) {
      epochs = std::max(epochs, records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        records[i]->epoch = first + static_cast<std::uint32_t>(i);
      }
      if (records.size() >= makings_.size() || records.empty() || missing > 0) continue;
      if (records.front()->kind == record_kind::queued) {
        place_before(records, first);
      } else {
        place_behind(records, first);
      }
    }
    return first + static_cast<std::uint32_t>(epochs);
  }

 private:
  using records_in_time = std::vector<batch_record*>;

  std::size_t consumed_before_made() const {
    if (makings_.empty()) return 0;
    const records_in_time& consumed = of_kind_[static_cast<std::size_t>(record_kind::consumed)];
    return static_cast<std::size_t>(
        std::count_if(consumed.begin(), consumed.end(), [this](const batch_record* r) {
          return consumer_had_it_ns(*r) < makings_.front()->end_ns;
        }));
  }

  /// Gives each of `records` to the last making that had ended by then, one each.
  void place_behind(const records_in_time& records, std::uint32_t first) const {
    std::size_t end = makings_.size();
    for (std::size_t i = records.size(); i-- > 0;) {
      std::size_t at = end - 1;
      while (at > i && makings_[at]->end_ns > consumer_had_it_ns(*records[i])) --at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
      end = at;
    }
  }

  /// Gives each of `records` to the first making that began after it, one each.
  void place_before(const records_in_time& records, std::uint32_t first) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < records.size(); ++i, ++at) {
      const std::size_t last = makings_.size() - (records.size() - i);
      while (at < last && makings_[at]->start_ns < records[i]->start_ns) ++at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
    }
  }

  std::array<records_in_time, record_kinds> of_kind_;
  std::vector<batch_making*> makings_;
};

}  // namespace

run_batches::run_batches(batch_records records, const std::vector<stage_span>& stages,
                         const std::vector<batch_taking>& takings, bool cut_off)
    : records_(std::move(records)) {
  waits_known_ = std::any_of(records_.begin(), records_.end(),
                             [](const batch_record& r) { return r.kind == record_kind::wait; });
  makings found;
  if (join_successive_consumers()) {
    std::vector<stage_span> joined_stages = stages;
    std::vector<batch_taking> joined_takings = takings;
    for (stage_span& s : joined_stages) s.consumer = {};
    for (batch_taking& t : joined_takings) t.consumer = {};
    found = find_makings(records_, joined_stages, joined_takings);
  } else {
    found = find_makings(records_, stages, takings);
  }
  in_pieces_ = found.in_pieces;
  find_epochs(found, cut_off);
  join(found);
  find_hand_overs();
  find_steps();
  find_epoch_times();
}

/// A program that was run again, into the same logs, has begun new epochs.
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
    s.last_ns = std::max(s.last_ns, consumer_had_it_ns(r));
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

void run_batches::find_epochs(makings& found, bool cut_off) {
  // A preprocess span has the epoch of its making, so it is not numbered itself.
  const auto numbers = numbers_by(records_, [](const batch_record& r) {
    return std::make_tuple(r.consumer, r.index, r.kind, r.start_ns);
  });
  same_number same;
  std::uint32_t first_epoch = 0;  // of this consumer
  std::uint32_t next_epoch = 0;
  consumer_id consumer;
  auto made = found.all.begin();
  for (std::size_t at = 0; at < numbers.size() || made != found.all.end();) {
    using number = std::pair<consumer_id, std::int64_t>;
    const auto of_record = [&](std::size_t i) {
      return number(records_[numbers[i]].consumer, records_[numbers[i]].index);
    };
    const auto of_making = [&] { return number(made->consumer, made->number); };
    const number next = made == found.all.end() ? of_record(at)
                        : at == numbers.size()  ? of_making()
                                                : std::min(of_record(at), of_making());
    if (first_epochs_.empty() || next.first != consumer) {
      first_epoch = next_epoch;
      first_epochs_.push_back(first_epoch);
    }
    consumer = next.first;
    same.clear();
    for (; made != found.all.end() && of_making() == next; ++made) same.add(*made);
    for (; at < numbers.size() && of_record(at) == next; ++at) {
      batch_record& r = records_[numbers[at]];
      if (r.kind != record_kind::preprocessed) same.add(r);
    }
    next_epoch = std::max(next_epoch, same.set_epochs(first_epoch, cut_off));
  }
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    records_[found.records[i]].epoch = found.all[found.spans[i].batch->value()].epoch;
  }
}

void run_batches::join(makings& found) {
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
  // Those that only stages made come in between.
  for (const batch_making& m : found.all) {
    batch b;
    b.index = m.number;
    b.epoch = m.epoch;
    batches.push_back(b);
  }
  std::stable_sort(batches.begin(), batches.end(),
                   [&](const batch& a, const batch& b) { return key(a) < key(b); });
  batches.erase(std::unique(batches.begin(), batches.end(),
                            [&](const batch& a, const batch& b) { return key(a) == key(b); }),
                batches.end());
  batches_ = std::move(batches);
  for (making_span& s : found.spans) {
    if (!s.batch) continue;
    const batch_making& m = found.all[s.batch->value()];
    batch_record wanted;
    wanted.index = m.number;
    wanted.epoch = m.epoch;
    s.batch = batch_of(wanted);
  }
  std::sort(found.spans.begin(), found.spans.end(), [](const making_span& a, const making_span& b) {
    return std::tie(a.batch, a.start_ns, b.duration_ns, a.file) <
           std::tie(b.batch, b.start_ns, a.duration_ns, b.file);
  });
  making_ = std::move(found.spans);
  for (span_number i = 0; i < making_.size() && making_[i].batch; ++i) {
    batch& b = batches_[making_[i].batch->value()];
    if (b.spans++ == 0) b.first_span = i;
  }
}

batch_id run_batches::batch_of(const batch_record& r) const noexcept {
  const auto at = std::lower_bound(
      batches_.begin(), batches_.end(), r, [](const batch& b, const batch_record& wanted) {
        return std::tie(b.epoch, b.index) < std::tie(wanted.epoch, wanted.index);
      });
  return batch_id(at - batches_.begin());
}

std::uint32_t run_batches::epoch_of_consumer(const batch& b) const noexcept {
  const auto behind = std::upper_bound(first_epochs_.begin(), first_epochs_.end(), b.epoch);
  return behind == first_epochs_.begin() ? b.epoch : b.epoch - *std::prev(behind);
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
