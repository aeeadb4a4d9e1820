#include "model/batches/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "log/log_line.hpp"
#include "model/batches/batch_preprocessings.hpp"
#include "model/run_model.hpp"

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

}  // namespace

std::uint32_t consumer_passes::number_epochs(std::uint32_t counted_from, std::uint32_t first) {
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

/// The preliminary epoch of a batch is how often its number occurred before. Returns whether the
/// preliminary epochs are correct: whether the consumer received all batches of each epoch after
/// those of the epoch before.
bool consumer_passes::are_epochs_apart() const {
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> of_epoch;
  for (const batch_record* const r : records_) {
    if (!is_reception(*r)) continue;
    auto& [from_ns, to_ns] = of_epoch.try_emplace(r->epoch, r->start_ns, r->start_ns).first->second;
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

void consumer_passes::find_instances() {
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

void consumer_passes::find_received_passes() {
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
  // If a received batch often has a smaller number than the batch received before it, the consumer
  // receives batches in any order. Then a smaller number does not show that a new pass (epoch)
  // begins.
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

void consumer_passes::place_discarded() {
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
  // An instance is one occurrence of a batch number; `by_preprocessing` lists all instances in the
  // order in which their preprocessing began. For each of them, next_pass contains the pass (epoch)
  // of the first received instance from this position of the list on; `passes_` if there is none.
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
    const auto earlier = std::count_if(groups.begin(), groups.end(), [&](const discarded_group& g) {
      return group == group_of.end() ? g.after <= pass : &g < &groups[group->second];
    });
    i.epoch = pass + static_cast<std::uint32_t>(earlier);
  }
}

}  // namespace lotus::tool
