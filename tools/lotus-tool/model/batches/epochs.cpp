#include "model/batches/epochs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "log/log_line.hpp"
#include "model/batches/batch_preprocessings.hpp"
#include "model/batches/passes.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// The records and preprocessings of one batch number in all epochs, sorted by time.
class same_number {
 public:
  void clear() {
    for (auto& records : of_kind_) records.clear();
    preprocessings_.clear();
  }
  void add(batch_record& r) { of_kind_[static_cast<std::size_t>(r.kind)].push_back(&r); }
  void add(batch_preprocessing& m) { preprocessings_.push_back(&m); }

  /// Sets the epoch of all records and preprocessings. The first epoch gets the number `first`.
  /// Returns the number that follows the number of the last epoch.
  /// @param cut_off  whether the records are only a part of a run. Then the first records may be of
  ///   batches that were built before this part.
  std::uint32_t set_epochs(std::uint32_t first, bool cut_off) {
    const std::size_t missing = cut_off ? consumed_before_built() : 0;
    std::size_t epochs = preprocessings_.size() + missing;
    for (std::size_t i = 0; i < preprocessings_.size(); ++i) {
      preprocessings_[i]->epoch = first + static_cast<std::uint32_t>(i + missing);
    }
    for (auto& records : of_kind_) {
      epochs = std::max(epochs, records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        records[i]->epoch = first + static_cast<std::uint32_t>(i);
      }
      if (records.size() >= preprocessings_.size() || records.empty() || missing > 0) continue;
      if (records.front()->kind == record_kind::queued) {
        match_to_later(records, first);
      } else {
        match_to_earlier(records, first);
      }
    }
    return first + static_cast<std::uint32_t>(epochs);
  }

 private:
  using records_in_time = std::vector<batch_record*>;

  /// Counts the batches that were received before the first preprocessing ended. A thread may need
  /// a moment to end its span, so up to 1 ms is no difference.
  std::size_t consumed_before_built() const {
    constexpr std::int64_t late_ns = 1'000'000;
    if (preprocessings_.empty()) return 0;
    const records_in_time& consumed = of_kind_[static_cast<std::size_t>(record_kind::consumed)];
    return static_cast<std::size_t>(
        std::count_if(consumed.begin(), consumed.end(), [this](const batch_record* r) {
          return r->consumer_had_it_ns() + late_ns < preprocessings_.front()->end_ns;
        }));
  }

  /// Sets the epoch of each record to that of the last preprocessing that ended before the consumer
  /// received the batch. No two records get the same epoch.
  void match_to_earlier(const records_in_time& records, std::uint32_t first) const {
    std::size_t end = preprocessings_.size();
    for (std::size_t i = records.size(); i-- > 0;) {
      std::size_t at = end - 1;
      while (at > i && preprocessings_[at]->end_ns > records[i]->consumer_had_it_ns()) --at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
      end = at;
    }
  }

  /// Sets the epoch of each record to that of the first preprocessing that began after the record.
  /// No two records get the same epoch.
  void match_to_later(const records_in_time& records, std::uint32_t first) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < records.size(); ++i, ++at) {
      const std::size_t last = preprocessings_.size() - (records.size() - i);
      while (at < last && preprocessings_[at]->start_ns < records[i]->start_ns) ++at;
      records[i]->epoch = first + static_cast<std::uint32_t>(at);
    }
  }

  std::array<records_in_time, record_kinds> of_kind_;
  std::vector<batch_preprocessing*> preprocessings_;
};

/// Numbers the epochs of each consumer again, in the order in which the consumer received batches.
/// The class consumer_passes describes the rules.
void number_passes(batch_records& records, batch_preprocessings& found,
                   std::vector<std::uint32_t>& first_epochs) {
  std::map<consumer_id, consumer_passes> passes;
  for (batch_record& r : records) {
    if (r.kind != record_kind::preprocessed) passes[r.consumer].add(r);
  }
  for (batch_preprocessing& m : found.all) passes[m.consumer].add(m);
  std::uint32_t next = 0;
  std::size_t consumer = 0;
  for (auto& [id, of] : passes) {
    std::uint32_t& first = first_epochs[consumer++];
    const std::uint32_t counted_from = first;
    first = next;
    next = of.number_epochs(counted_from, first);
  }
}

}  // namespace

std::vector<std::uint32_t> find_epochs(batch_records& records, batch_preprocessings& found,
                                       bool cut_off) {
  // Sort the records by consumer, batch number, kind and start. Preprocess records are in this list
  // too, but their epoch is set at the end of this function: each gets the epoch of its
  // preprocessing.
  const auto numbers = numbers_by(records, [](const batch_record& r) {
    return std::make_tuple(r.consumer, r.index, r.kind, r.start_ns);
  });
  std::vector<std::uint32_t> first_epochs;
  same_number same;
  std::uint32_t first_epoch = 0;  // first epoch of the current consumer
  std::uint32_t next_epoch = 0;
  consumer_id consumer;
  auto made = found.all.begin();
  for (std::size_t at = 0; at < numbers.size() || made != found.all.end();) {
    using number = std::pair<consumer_id, std::int64_t>;
    const auto of_record = [&](std::size_t i) {
      return number(records[numbers[i]].consumer, records[numbers[i]].index);
    };
    const auto of_preprocessing = [&] { return number(made->consumer, made->number); };
    const number next = made == found.all.end() ? of_record(at)
                        : at == numbers.size()  ? of_preprocessing()
                                                : std::min(of_record(at), of_preprocessing());
    if (first_epochs.empty() || next.first != consumer) {
      first_epoch = next_epoch;
      first_epochs.push_back(first_epoch);
    }
    consumer = next.first;
    same.clear();
    for (; made != found.all.end() && of_preprocessing() == next; ++made) same.add(*made);
    for (; at < numbers.size() && of_record(at) == next; ++at) {
      batch_record& r = records[numbers[at]];
      if (r.kind != record_kind::preprocessed) same.add(r);
    }
    next_epoch = std::max(next_epoch, same.set_epochs(first_epoch, cut_off));
  }
  number_passes(records, found, first_epochs);
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    records[found.records[i]].epoch = found.all[found.spans[i].batch->value()].epoch;
  }
  return first_epochs;
}

}  // namespace lotus::tool
