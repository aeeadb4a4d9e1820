#include "model/batches/batch_preprocessings.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/sorting.hpp"
#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

struct votes {
  std::size_t items = 0;
  std::size_t batches = 0;
  std::size_t ended_before = 0;
  std::size_t ended_after = 0;
};

/// Finds the stages that process items in a run that records which items became part of which batch
/// (`inclusions`). A stage processes items if more of its numbers occur in these records as items
/// than as batches. If both occur equally often, it processes items if most of its spans end before
/// their item became part of a batch.
std::set<stage_id> by_inclusions(const std::vector<stage_span>& stages,
                                 const std::vector<batch_inclusion>& inclusions) {
  // For each item number: the times when an item with this number became part of a batch.
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> times_of_item;
  std::unordered_set<std::int64_t> batches;
  for (const batch_inclusion& t : inclusions) {
    times_of_item[t.item].push_back(t.time_ns);
    batches.insert(t.batch);
  }
  std::map<stage_id, votes> of_stage;
  std::map<std::pair<stage_id, std::int64_t>, std::size_t> seen;
  for (const stage_span& s : stages) {
    votes& v = of_stage[stage_id(s.name)];
    const auto times = times_of_item.find(s.number);
    if (times != times_of_item.end()) ++v.items;
    if (batches.count(s.number) != 0) ++v.batches;
    if (times == times_of_item.end()) continue;
    const std::size_t k = seen[{stage_id(s.name), s.number}]++;
    if (k >= times->second.size()) continue;
    ++(s.end_ns() <= times->second[k] ? v.ended_before : v.ended_after);
  }
  std::set<stage_id> found;
  for (const auto& [stage, v] : of_stage) {
    const bool items = v.items != v.batches ? v.items > v.batches : v.ended_before > v.ended_after;
    if (items) found.insert(stage);
  }
  return found;
}

/// Finds the stages that process items in a run that does not record which items became part of
/// which batch: most numbers of these stages do not occur in batch records.
std::set<stage_id> by_records(const batch_records& records, const std::vector<stage_span>& stages) {
  std::unordered_set<std::int64_t> batches;
  for (const batch_record& r : records) batches.insert(r.index);
  std::set<stage_id> found;
  if (batches.empty()) return found;
  std::map<stage_id, std::unordered_set<std::int64_t>> numbers;
  for (const stage_span& s : stages) numbers[stage_id(s.name)].insert(s.number);
  for (const auto& [stage, all] : numbers) {
    std::size_t unknown = 0;
    for (const std::int64_t number : all) unknown += batches.count(number) == 0 ? 1U : 0U;
    if (2 * unknown > all.size()) found.insert(stage);
  }
  return found;
}

/// Returns the stages that process items rather than batches, by the rules described at
/// find_preprocessings().
std::set<stage_id> item_stages(const batch_records& records, const std::vector<stage_span>& stages,
                               const std::vector<batch_inclusion>& inclusions) {
  if (stages.empty()) return {};
  return inclusions.empty() ? by_records(records, stages) : by_inclusions(stages, inclusions);
}

/// Identifies a batch or an item: the process that consumes it, and its number.
using number_key = std::pair<consumer_id, std::int64_t>;

class preprocessing_finder {
 public:
  preprocessing_finder(const batch_records& records, const std::vector<stage_span>& stages,
                       const std::vector<batch_inclusion>& inclusions, bool in_pieces)
      : inclusions_(inclusions), in_pieces_(in_pieces) {
    for (record_number n = 0; n < records.size(); ++n) {
      const batch_record& r = records[n];
      if (r.kind == record_kind::consumed) {
        deliveries_.push_back({{r.consumer, r.index}, r.start_ns});
      } else if (r.kind == record_kind::preprocessed) {
        found_.spans.push_back(
            {r.start_ns, r.duration_ns, r.index, preprocess_stage, r.file, r.consumer});
        found_.records.push_back(n);
      }
    }
    std::sort(deliveries_.begin(), deliveries_.end());
    const std::set<stage_id> of_items = item_stages(records, stages, inclusions);
    for (const stage_span& s : stages) {
      preprocessing_span& span = found_.spans.emplace_back(preprocessing_span{
          s.start_ns, s.duration_ns, s.number, stage_id(s.name), s.file, s.consumer});
      span.of_item = of_items.count(span.stage) != 0;
    }
  }

  batch_preprocessings find() && {
    const std::vector<span_number> order = in_order();
    // Decide whether each batch is built by several spans together, such as those of several
    // threads (`in_parts`). Consider only batch numbers that were received in every epoch. Other
    // numbers would mislead: if the consumer stopped an epoch early, a batch may have been built
    // several times before it was received.
    std::size_t epochs = 0;
    std::size_t deliveries = 0;  // how often these numbers were received
    for (auto at = deliveries_.cbegin(); at != deliveries_.cend();) {
      const delivery_range of = deliveries_of(at->first);
      deliveries = of.size() > epochs ? 0 : deliveries;
      epochs = std::max(epochs, of.size());
      deliveries += of.size() == epochs ? epochs : 0;
      at = of.last;
    }
    std::size_t joint = 0;
    for_each_number(order, false, [&](const auto* first, const auto* last) {
      const delivery_range of = deliveries_of(key_of(found_.spans[*first]));
      const auto spans = static_cast<std::size_t>(last - first);
      if (of.size() == epochs && spans > of.size()) joint += joint_deliveries(first, last, of);
    });
    found_.in_parts = 2 * joint > deliveries;
    if (found_.in_parts) find_usual_segments(order);
    for_each_number(order, false, [&](const auto* first, const auto* last) {
      found_.in_parts ? split_by_deliveries(first, last) : split(first, last);
      add_preprocessings(first, last);
    });
    for_each_number(order, true, [&](const auto* first, const auto* last) { split(first, last); });
    if (!inclusions_.empty()) assign_items(order);
    sort_preprocessings();
    return std::move(found_);
  }

 private:
  /// Returns the indices of all spans: first those of batches, then those of items, each sorted by
  /// consumer, number and start.
  std::vector<span_number> in_order() const {
    std::vector<span_number> order(found_.spans.size());
    std::iota(order.begin(), order.end(), span_number{0});
    sort_runs(order.begin(), order.end(), [this](span_number a, span_number b) {
      const preprocessing_span& x = found_.spans[a];
      const preprocessing_span& y = found_.spans[b];
      return std::tie(x.of_item, x.consumer, x.number, x.start_ns) <
             std::tie(y.of_item, y.consumer, y.number, y.start_ns);
    });
    return order;
  }

  template <class OnNumber>
  void for_each_number(const std::vector<span_number>& order, bool of_items, OnNumber&& on_number) {
    for (std::size_t at = 0; at < order.size();) {
      const preprocessing_span& first = found_.spans[order[at]];
      std::size_t end = at;
      for (; end < order.size(); ++end) {
        const preprocessing_span& s = found_.spans[order[end]];
        if (s.of_item != first.of_item || key_of(s) != key_of(first)) break;
      }
      if (first.of_item == of_items) on_number(order.data() + at, order.data() + end);
      at = end;
    }
  }

  static number_key key_of(const preprocessing_span& s) { return {s.consumer, s.number}; }

  /// Splits the spans of one batch or item number into passes: a pass is one occurrence of the
  /// number in the pipeline (see pass_number). A new pass begins if all earlier spans of the number
  /// have ended and the first stage begins again, or if a second preprocess span begins.
  void split(const span_number* first, const span_number* last) {
    pass_number pass;
    stage_id began_with = found_.spans[*first].stage;
    std::int64_t end_ns = INT64_MIN;
    bool preprocessed = false;
    for (; first != last; ++first) {
      preprocessing_span& s = found_.spans[*first];
      const bool preprocess = s.stage == preprocess_stage;
      const bool anew = end_ns != INT64_MIN &&
                        (preprocess ? preprocessed : s.stage == began_with && s.start_ns >= end_ns);
      if (anew) {
        ++pass;
        began_with = s.stage;
        preprocessed = false;
      }
      preprocessed |= preprocess;
      end_ns = anew ? s.end_ns() : std::max(end_ns, s.end_ns());
      s.pass = pass;
    }
  }

  using delivery_list = std::vector<std::pair<number_key, std::int64_t>>;

  /// The times when the consumer received the batches with one batch number, sorted.
  struct delivery_range {
    delivery_list::const_iterator first;
    delivery_list::const_iterator last;

    std::size_t size() const noexcept { return static_cast<std::size_t>(last - first); }
    /// Returns the index of the first of these reception times that is later than `time_ns`.
    std::size_t index_after(std::int64_t time_ns) const {
      const auto at = std::upper_bound(
          first, last, time_ns, [](std::int64_t t, const auto& other) { return t < other.second; });
      return static_cast<std::size_t>(at - first);
    }
  };

  delivery_range deliveries_of(const number_key& key) {
    // Most calls ask for the same number as the previous call, or for the next number.
    const auto end = deliveries_.cend();
    const auto is_of_key = [&](auto at) { return at != end && at->first == key; };
    auto first = deliveries_.cbegin() + last_asked_;
    if (first != end && first->first < key) first = end_of_number(first);
    if (!is_of_key(first)) {
      first = std::lower_bound(deliveries_.cbegin(), end, std::pair(key, INT64_MIN));
    }
    last_asked_ = first - deliveries_.cbegin();
    return {first, is_of_key(first) ? end_of_number(first) : first};
  }

  /// Returns the end of the range that begins at `first` and has the same number.
  delivery_list::const_iterator end_of_number(delivery_list::const_iterator first) const {
    const auto next = first + 1;
    if (next == deliveries_.end() || next->first != first->first) return next;
    return std::upper_bound(next, deliveries_.end(), std::pair(first->first, INT64_MAX));
  }

  /// Counts the receptions of batches that several spans built together.
  /// @param first, last  the range of spans of one batch number.
  /// @param of  the times when the consumer received batches with this number. Spans of a stage
  /// that began between two receptions are assumed to build one batch together, whether they
  /// overlap or not: this differs from batch to batch. If all of them are preprocess spans, they
  /// count only if they are on several threads, because a single worker may have built the batch
  /// twice, unless in_pieces_ is true.
  std::size_t joint_deliveries(const span_number* first, const span_number* last,
                               const delivery_range& of) {
    std::size_t joint = 0;
    while (first != last) {
      const std::size_t k = of.index_after(found_.spans[*first].start_ns);
      const preprocessing_span& begun = found_.spans[*first];
      bool stages = false;
      bool threads = false;
      bool repeats = false;
      ++range_;
      for (; first != last && of.index_after(found_.spans[*first].start_ns) == k; ++first) {
        const preprocessing_span& s = found_.spans[*first];
        stages |= s.stage != preprocess_stage;
        threads |= s.file != begun.file;
        const auto [seen, is_new] = seen_in_range_.try_emplace(s.stage, range_);
        repeats |= !is_new && seen->second == range_;
        seen->second = range_;
      }
      if (k < of.size() && repeats && (stages || threads || in_pieces_)) ++joint;
    }
    return joint;
  }

  /// Groups the spans of one batch number by reception: calls on_segments(first, last) for each
  /// time when the consumer received a batch with this number. The arguments are the range of spans
  /// that began between the previous reception and this one. Spans that began after the last
  /// reception are passed in one more call.
  template <class OnSegments>
  void for_each_delivery(const span_number* first, const span_number* last,
                         OnSegments&& on_segments) {
    const delivery_range of = deliveries_of(key_of(found_.spans[*first]));
    while (first != last) {
      const std::size_t k = of.index_after(found_.spans[*first].start_ns);
      const span_number* next = first;
      while (next != last && of.index_after(found_.spans[*next].start_ns) == k) ++next;
      on_segments(first, next);
      first = next;
    }
  }

  void find_usual_segments(const std::vector<span_number>& order) {
    std::vector<std::size_t> counts;
    for_each_number(order, false, [&](const auto* first, const auto* last) {
      for_each_delivery(first, last, [&](const auto* from, const auto* to) {
        counts.push_back(static_cast<std::size_t>(to - from));
      });
    });
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    std::nth_element(counts.begin(), middle, counts.end());
    usual_segments_ = *middle;
  }

  /// Splits the spans of one batch number into preprocessings, one for each time that a batch with
  /// this number was received. Suppose that twice as many spans as usual began between two
  /// receptions, and that the second half of them began after the first half had ended. Then the
  /// batch was built twice, and the first result was discarded.
  void split_by_deliveries(const span_number* first, const span_number* last) {
    pass_number pass;
    for_each_delivery(first, last, [&](const span_number* from, const span_number* to) {
      const bool several = static_cast<std::size_t>(to - from) % usual_segments_ == 0;
      std::int64_t end_ns = INT64_MIN;
      for (const span_number* at = from; at != to; ++at) {
        preprocessing_span& s = found_.spans[*at];
        const bool is_complete = static_cast<std::size_t>(at - from) % usual_segments_ == 0;
        if (several && at != from && is_complete && s.start_ns >= end_ns) ++pass;
        end_ns = std::max(end_ns, s.end_ns());
        s.pass = pass;
      }
      ++pass;
    });
  }

  static void widen(batch_preprocessing& m, const preprocessing_span& s) {
    m.start_ns = std::min(m.start_ns, s.start_ns);
    m.end_ns = std::max(m.end_ns, s.end_ns());
  }

  batch_id add_preprocessing(const number_key& key) {
    batch_preprocessing& m = found_.all.emplace_back();
    m.consumer = key.first;
    m.number = key.second;
    return batch_id(found_.all.size() - 1);
  }

  void add_preprocessings(const span_number* first, const span_number* last) {
    std::optional<pass_number> pass;
    for (batch_id m; first != last; ++first) {
      preprocessing_span& s = found_.spans[*first];
      if (s.pass != pass) {
        m = add_preprocessing(key_of(s));
        if (!inclusions_.empty()) by_number_[key_of(s)].push_back(m);
      }
      pass = s.pass;
      s.batch = m;
      widen(found_.all[m.value()], s);
    }
  }

  /// Assigns items to preprocessings of batches. Item numbers may repeat; each occurrence of a
  /// number is a pass. Each pass of an item is assigned to the preprocessing of the batch of which
  /// the item then became part.
  void assign_items(const std::vector<span_number>& order) {
    // For each item: each time when it became part of a batch, with the number of that batch.
    std::map<number_key, std::vector<std::pair<std::int64_t, std::int64_t>>> included;
    for (const batch_inclusion& t : inclusions_) {
      included[{t.consumer, t.item}].emplace_back(t.time_ns, t.batch);
    }
    for (auto& [item, times] : included) std::sort(times.begin(), times.end());
    for_each_number(order, true, [&](const auto* first, const auto* last) {
      const auto times = included.find(key_of(found_.spans[*first]));
      if (times == included.end()) return;
      while (first != last) {
        const pass_number pass = found_.spans[*first].pass;
        const std::int64_t start_ns = found_.spans[*first].start_ns;
        const auto* next = first;
        while (next != last && found_.spans[*next].pass == pass) ++next;
        const std::int64_t next_ns = next == last ? INT64_MAX : found_.spans[*next].start_ns;
        const auto event = std::lower_bound(times->second.begin(), times->second.end(),
                                            std::pair(start_ns, INT64_MIN));
        if (event != times->second.end() && event->first < next_ns) {
          const batch_id m = preprocessing_of({times->first.first, event->second}, event->first);
          for (const auto* at = first; at != next; ++at) found_.spans[*at].batch = m;
          for (; first != next; ++first) widen(found_.all[m.value()], found_.spans[*first]);
        }
        first = next;
      }
    });
  }

  /// `batch` is the number of a batch to which an item was added at `time_ns`. Returns the first
  /// preprocessing of a batch with this number that had not ended at that time, or the last one if
  /// all had ended. If no spans of batches with this number are recorded, creates one preprocessing
  /// for each reception of such a batch.
  batch_id preprocessing_of(const number_key& batch, std::int64_t time_ns) {
    const auto own = by_number_.find(batch);
    if (own != by_number_.end()) {
      for (const batch_id m : own->second) {
        if (found_.all[m.value()].end_ns >= time_ns) return m;
      }
      return own->second.back();
    }
    const std::size_t k = deliveries_of(batch).index_after(time_ns - 1);
    const auto [at, is_new] = of_delivery_.try_emplace({batch, k});
    if (is_new) at->second = add_preprocessing(batch);
    return at->second;
  }

  void sort_preprocessings() {
    std::vector<std::uint32_t> order(found_.all.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    sort_runs(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const batch_preprocessing& x = found_.all[a];
      const batch_preprocessing& y = found_.all[b];
      return std::tie(x.consumer, x.number, x.start_ns, a) <
             std::tie(y.consumer, y.number, y.start_ns, b);
    });
    std::vector<batch_preprocessing> sorted;
    std::vector<batch_id> place(order.size());
    for (const std::uint32_t m : order) {
      place[m] = batch_id(sorted.size());
      sorted.push_back(found_.all[m]);
    }
    found_.all = std::move(sorted);
    for (preprocessing_span& s : found_.spans) {
      if (s.batch) s.batch = place[s.batch->value()];
    }
  }

  const std::vector<batch_inclusion>& inclusions_;
  bool in_pieces_;  // whether a single worker may build a batch in several spans
  batch_preprocessings found_;
  // joint_deliveries() numbers the ranges of spans at which it looks. For each stage: the last
  // range in which it occurred.
  std::map<stage_id, std::size_t> seen_in_range_;
  std::size_t range_ = 0;
  std::size_t usual_segments_ = 1;  // usual number of spans of a preprocessing
  delivery_list deliveries_;        // when batches were received, sorted by number, then by time
  // Index of the first of the deliveries that deliveries_of() returned last.
  std::ptrdiff_t last_asked_ = 0;
  // For each batch number: the preprocessings of the batches with this number, sorted by start.
  // This map is filled only if the run records which items became part of which batch.
  std::map<number_key, std::vector<batch_id>> by_number_;
  std::map<std::pair<number_key, std::size_t>, batch_id> of_delivery_;
};

}  // namespace

batch_preprocessings find_preprocessings(const batch_records& records,
                                         const std::vector<stage_span>& stages,
                                         const std::vector<batch_inclusion>& inclusions,
                                         bool in_pieces) {
  return preprocessing_finder(records, stages, inclusions, in_pieces).find();
}

}  // namespace lotus::tool
