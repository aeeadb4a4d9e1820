#include "model/batches/pieces.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>

#include "base/sorting.hpp"
#include "log/log_line.hpp"

namespace lotus::tool {
namespace {

bool is_consumer_wait(const batch_record& r) {
  return r.kind == record_kind::wait && !r.is_marker();
}

bool is_received(const batch_record& r) {
  return r.kind == record_kind::consumed;
}

/// Waits and receptions with the same number that follow each other in one thread, as the range
/// [first, last) in a list of records.
struct succession {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Finds the batches that were received in pieces, and joins their records.
class joined_pieces {
 public:
  joined_pieces(batch_records& records, const std::vector<stage_span>& stages)
      : records_(records), stages_(stages) {
    for (record_number n = 0; n < records.size(); ++n) {
      if (is_consumer_wait(records[n]) || is_received(records[n])) of_consumer_.push_back(n);
    }
    sort_runs(of_consumer_.begin(), of_consumer_.end(), [&](record_number a, record_number b) {
      const auto key = [](const batch_record& r) {
        return std::make_tuple(r.file, r.consumer_had_it_ns(), is_received(r));
      };
      return key(records[a]) < key(records[b]);
    });
    find_successions();
  }

  bool join() {
    if (repeated_.empty()) return false;
    find_work();
    const bool usual = repeated_.size() >= 3 && 4 * repeated_.size() > batches_;
    std::vector<bool> left_out(records_.size());
    for (const succession& s : repeated_) {
      if (usual || !is_built_again(s)) join(s, left_out);
    }
    std::size_t kept = 0;
    for (std::size_t n = 0; n < records_.size(); ++n) {
      if (!left_out[n]) records_[kept++] = records_[n];
    }
    records_.resize(kept);
    return usual;
  }

 private:
  const batch_record& at(std::size_t i) const { return records_[of_consumer_[i]]; }

  void find_successions() {
    bool differ = false;
    for (std::size_t i = 0; i < of_consumer_.size();) {
      succession s{i, i};
      std::size_t waits = 0;
      std::size_t receptions = 0;
      for (; s.last < of_consumer_.size() && at(s.last).index == at(i).index &&
             at(s.last).file == at(i).file;
           ++s.last) {
        ++(is_consumer_wait(at(s.last)) ? waits : receptions);
      }
      differ = differ || at(i).index != at(0).index;
      ++batches_;
      if (waits > 1 || receptions > 1) repeated_.push_back(s);
      i = s.last;
    }
    if (!differ) repeated_.clear();
  }

  /// Finds the work on the batches that were received in pieces.
  void find_work() {
    for (const succession& s : repeated_) work_[at(s.first).index];
    const auto add = [this](std::int64_t number, const time_span& span) {
      const auto of = work_.find(number);
      if (of != work_.end()) of->second.push_back(span);
    };
    for (const batch_record& r : records_) {
      if (r.kind == record_kind::preprocessed) add(r.index, {r.start_ns, r.end_ns()});
    }
    for (const stage_span& s : stages_) add(s.number, {s.start_ns, s.end_ns()});
  }

  /// Returns whether a worker began with the batch again between its receptions.
  bool is_built_again(const succession& s) const {
    const std::int64_t from_ns = at(s.first).consumer_had_it_ns();
    const std::int64_t to_ns = at(s.last - 1).start_ns;
    const std::vector<time_span>& work = work_.at(at(s.first).index);
    return std::any_of(work.begin(), work.end(), [&](const time_span& span) {
      return span.start_ns > from_ns && span.start_ns < to_ns;
    });
  }

  /// Returns when the work on the batch ended; INT64_MIN if that is unknown.
  std::int64_t built_ns(const succession& s) const {
    const std::int64_t last_ns = at(s.last - 1).consumer_had_it_ns();
    std::int64_t end_ns = INT64_MIN;
    for (const time_span& span : work_.at(at(s.first).index)) {
      if (span.start_ns < last_ns) end_ns = std::max(end_ns, span.end_ns);
    }
    return end_ns;
  }

  /// Returns the wait for the piece that completes the batch, as its position in of_consumer_;
  /// s.last if there is no wait.
  std::size_t last_wait(const succession& s, std::int64_t waited_ns) const {
    const std::int64_t all_ns = at(s.last - 1).consumer_had_it_ns() - at(s.first).start_ns;
    const std::int64_t little_ns = std::max(waited_ns / 10, all_ns / 100);
    const std::int64_t complete_ns = built_ns(s);
    std::size_t last = s.last;
    for (std::size_t i = s.first; i < s.last; ++i) {
      if (!is_consumer_wait(at(i))) continue;
      last = i;
      waited_ns -= at(i).duration_ns;
      if (waited_ns <= little_ns && at(i).end_ns() >= complete_ns) break;
    }
    return last;
  }

  void join(const succession& s, std::vector<bool>& left_out) {
    std::int64_t waited_ns = 0;
    for (std::size_t i = s.first; i < s.last; ++i) {
      left_out[of_consumer_[i]] = true;
      if (is_consumer_wait(at(i))) waited_ns += at(i).duration_ns;
    }
    const std::size_t wait = last_wait(s, waited_ns);
    if (wait != s.last) {
      batch_record& r = records_[of_consumer_[wait]];
      const std::int64_t end_ns = r.end_ns();
      r.start_ns = end_ns - waited_ns;
      // The wait may not begin before the consumer's step on the previous batch.
      if (s.first > 0 && at(s.first - 1).file == r.file) {
        r.start_ns = std::max(r.start_ns, at(s.first - 1).consumer_had_it_ns());
      }
      r.duration_ns = end_ns - r.start_ns;
      left_out[of_consumer_[wait]] = false;
    }
    // The reception after this wait; the last one if none comes after it.
    optional_record reception;
    for (std::size_t i = s.first; i < s.last; ++i) {
      if (!is_received(at(i))) continue;
      reception = of_consumer_[i];
      if (wait == s.last || i > wait) break;
    }
    if (reception) left_out[*reception] = false;
  }

  batch_records& records_;
  const std::vector<stage_span>& stages_;
  std::vector<record_number> of_consumer_;  // in the order of threads and times
  std::vector<succession> repeated_;
  std::size_t batches_ = 0;
  std::unordered_map<std::int64_t, std::vector<time_span>> work_;
};

}  // namespace

bool join_pieces(batch_records& records, const std::vector<stage_span>& stages) {
  return joined_pieces(records, stages).join();
}

}  // namespace lotus::tool
