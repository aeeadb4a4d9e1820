#include "model/batches/epochs.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

bool is_reception(const batch_record& r) {
  return r.kind == record_kind::consumed;
}

/// Batches that were built after one pass (epoch) and before the next, and that the consumer never
/// received.
struct discarded_group {
  std::uint32_t after = 0;  ///< number of passes received before these batches were built
  std::set<std::int64_t> numbers;
};

/// The records and preprocessings of one consumer. Each is added with a preliminary epoch: how
/// often its batch number occurred before. This epoch is wrong if an earlier epoch does not contain
/// the number, because the consumer stopped that epoch early or prefetched batches were discarded.
/// Then the times of the preliminary epochs overlap, and number_epochs() numbers the epochs again
/// in the order in which batches were received: a number that repeats, or a smaller number after a
/// larger one, begins a new pass (epoch). Batches that were never received belong to the pass in
/// which they were built. A pass of which no batch was received is an epoch too.
class consumer_passes {
 public:
  void add(batch_record& r) { records_.push_back(&r); }
  void add(batch_preprocessing& m) { preprocessings_.push_back(&m); }

  /// Replaces the preliminary epochs of all records and preprocessings by their final epochs.
  /// Returns the number that follows the number of the last epoch.
  /// @param counted_from  the lowest preliminary epoch of this consumer.
  /// @param first  the number that the first final epoch gets.
  std::uint32_t number_epochs(std::uint32_t counted_from, std::uint32_t first) {
    std::uint32_t next = first;
    const auto set = [&](auto& of, std::uint32_t epoch) {
      of.epoch = epoch;
      next = std::max(next, epoch + 1);
    };
    if (are_epochs_apart()) {
      for (batch_record* const r : records_) set(*r, r->epoch - counted_from + first);
      for (batch_preprocessing* const m : preprocessings_) set(*m, m->epoch - counted_from + first);
      return next;
    }
    find_instances();
    find_received_passes();
    place_discarded();
    const auto epoch_of = [this](std::int64_t number, std::uint32_t counted) {
      const auto at =
          std::lower_bound(instances_.begin(), instances_.end(), std::make_tuple(number, counted),
                           [](const instance& i, const auto& wanted) {
                             return std::make_tuple(i.number, i.counted) < wanted;
                           });
      return at->epoch;
    };
    for (batch_record* const r : records_) set(*r, first + epoch_of(r->index, r->epoch));
    for (batch_preprocessing* const m : preprocessings_)
      set(*m, first + epoch_of(m->number, m->epoch));
    return next;
  }

 private:
  /// One occurrence of a batch number: all records and preprocessings with this number and
  /// preliminary epoch.
  struct instance {
    std::int64_t number = 0;
    std::uint32_t counted = 0;  ///< the preliminary epoch
    std::int64_t received_ns = INT64_MAX;
    std::int64_t began_ns = INT64_MAX;
    std::uint32_t epoch = 0;
  };

  /// The preliminary epoch of a batch is how often its number occurred before. Returns whether the
  /// preliminary epochs are correct: whether the consumer received all batches of each epoch after
  /// those of the epoch before.
  bool are_epochs_apart() const {
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> of_epoch;
    for (const batch_record* const r : records_) {
      if (!is_reception(*r)) continue;
      auto& [from_ns, to_ns] =
          of_epoch.try_emplace(r->epoch, r->start_ns, r->start_ns).first->second;
      from_ns = std::min(from_ns, r->start_ns);
      to_ns = std::max(to_ns, r->start_ns);
    }
    std::int64_t before_ns = INT64_MIN;
    for (const auto& [epoch, span] : of_epoch) {
      if (span.first < before_ns) return false;
      before_ns = span.second;
    }
    return true;
  }

  void find_instances() {
    std::map<std::pair<std::int64_t, std::uint32_t>, instance> found;
    const auto instance_of = [&found](std::int64_t number, std::uint32_t counted) -> instance& {
      instance& of = found[{number, counted}];
      of.number = number;
      of.counted = counted;
      return of;
    };
    for (const batch_record* const r : records_) {
      instance& of = instance_of(r->index, r->epoch);
      if (is_reception(*r)) of.received_ns = std::min(of.received_ns, r->start_ns);
      if (r->kind == record_kind::queued) of.began_ns = std::min(of.began_ns, r->start_ns);
    }
    for (const batch_preprocessing* const m : preprocessings_) {
      instance& of = instance_of(m->number, m->epoch);
      of.began_ns = std::min(of.began_ns, m->start_ns);
    }
    for (const auto& [key, of] : found) instances_.push_back(of);
  }

  void find_received_passes() {
    std::vector<instance*> received;
    for (instance& i : instances_) {
      if (i.received_ns != INT64_MAX) received.push_back(&i);
    }
    std::sort(received.begin(), received.end(),
              [](const instance* a, const instance* b) { return a->received_ns < b->received_ns; });
    std::size_t falls = 0;
    for (std::size_t i = 1; i < received.size(); ++i) {
      if (received[i]->number < received[i - 1]->number) ++falls;
    }
    // If a received batch often has a smaller number than the batch received before it, the
    // consumer receives batches in any order. Then a smaller number does not show that a new pass
    // (epoch) begins.
    const bool in_order = 10 * falls <= received.size();
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < received.size(); ++i) {
      const std::int64_t number = received[i]->number;
      bool is_new = seen.empty() || seen.count(number) != 0;
      if (!is_new && in_order && number < *seen.rbegin()) {
        // This batch has a smaller number than an earlier batch of the pass. It begins a new pass
        // only if the next batch has a smaller number too; otherwise it was only received late.
        is_new = i + 1 < received.size() && received[i + 1]->number < *seen.rbegin();
      }
      if (is_new) {
        seen.clear();
        ++passes_;
      }
      seen.insert(number);
      received[i]->epoch = passes_ - 1;
    }
  }

  void place_discarded() {
    std::set<std::pair<std::uint32_t, std::int64_t>> used;
    std::vector<std::int64_t> last_received(passes_, INT64_MIN);
    std::vector<instance*> by_preprocessing;
    for (instance& i : instances_) {
      by_preprocessing.push_back(&i);
      if (i.received_ns == INT64_MAX) continue;
      used.emplace(i.epoch, i.number);
      last_received[i.epoch] = std::max(last_received[i.epoch], i.number);
    }
    std::sort(by_preprocessing.begin(), by_preprocessing.end(),
              [](const instance* a, const instance* b) { return a->began_ns < b->began_ns; });
    // An instance is one occurrence of a batch number; `by_preprocessing` lists all instances in
    // the order in which their preprocessing began. For each of them, next_pass contains the pass
    // (epoch) of the first received instance from this position of the list on; `passes_` if there
    // is none.
    std::vector<std::uint32_t> next_pass(by_preprocessing.size() + 1, passes_);
    for (std::size_t i = by_preprocessing.size(); i-- > 0;) {
      next_pass[i] = by_preprocessing[i]->received_ns == INT64_MAX ? next_pass[i + 1]
                                                                   : by_preprocessing[i]->epoch;
    }
    std::vector<discarded_group> groups;
    std::map<const instance*, std::size_t> group_of;
    std::uint32_t before = 0;  // number of passes that have begun so far
    for (std::size_t i = 0; i < by_preprocessing.size(); ++i) {
      instance& of = *by_preprocessing[i];
      if (of.received_ns != INT64_MAX) {
        before = std::max(before, of.epoch + 1);
        continue;
      }
      const std::uint32_t after = next_pass[i];
      const auto is_free = [&](std::uint32_t pass) { return used.count({pass, of.number}) == 0; };
      const bool left_early =
          before > 0 && is_free(before - 1) && of.number > last_received[before - 1];
      const bool lost = before > 0 && (is_free(before - 1) || after == before - 1);
      if (!left_early && after < passes_ && is_free(after)) {
        of.epoch = after;
      } else if (left_early || lost) {
        // The batch was built for the pass that has begun last, but was never received: it was
        // discarded, lost or built again.
        of.epoch = before - 1;
      } else {
        const bool joins = !groups.empty() && groups.back().after == before &&
                           groups.back().numbers.count(of.number) == 0;
        if (!joins) groups.push_back({before, {}});
        groups.back().numbers.insert(of.number);
        group_of[&of] = groups.size() - 1;
        continue;
      }
      used.emplace(of.epoch, of.number);
    }
    // Each group of discarded batches becomes a pass of its own between the other passes, so the
    // numbers of all later passes increase.
    for (instance& i : instances_) {
      const auto group = group_of.find(&i);
      const std::uint32_t pass = group == group_of.end() ? i.epoch : groups[group->second].after;
      const auto earlier =
          std::count_if(groups.begin(), groups.end(), [&](const discarded_group& g) {
            return group == group_of.end() ? g.after <= pass : &g < &groups[group->second];
          });
      i.epoch = pass + static_cast<std::uint32_t>(earlier);
    }
  }

  std::vector<batch_record*> records_;
  std::vector<batch_preprocessing*> preprocessings_;
  std::vector<instance> instances_;  // sorted by number and preliminary epoch
  std::uint32_t passes_ = 0;
};

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
