// Detects runs in which the batches of several loaders were recorded as batches of one loader.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "findings/checks/checked_run.hpp"
#include "findings/checks/consumers.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// A set of batches that a consumer received one after another until a batch number repeated. This
/// is usually one epoch.
struct sequence {
  std::set<std::int64_t> numbers;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = INT64_MAX;  ///< start of the next sequence
  bool left_early = false;         ///< whether some of its batches were built but not received
  std::set<optional_file> builders;
};

/// Splits the batches that one consumer received into sequences, sorted by time.
std::vector<sequence> sequences_of(const run_data& run, consumer_id consumer) {
  const run_batches& batches = run.batches;
  struct delivery {
    std::int64_t at_ns;
    const batch* of;
  };
  std::vector<delivery> by_time;
  // The batches that no consumer received, each with the start of its preprocessing.
  std::vector<std::pair<std::int64_t, const batch*>> not_received;
  for (const batch& b : batches.all()) {
    const batch_record* const consumed = batches.record(b.consumed);
    if (consumed != nullptr) {
      if (consumed->consumer == consumer) by_time.push_back({consumed->start_ns, &b});
    } else if (const batch_record* const made = batches.record(b.preprocessed)) {
      if (made->consumer == consumer) not_received.emplace_back(made->start_ns, &b);
    }
  }
  std::sort(by_time.begin(), by_time.end(),
            [](const delivery& a, const delivery& b) { return a.at_ns < b.at_ns; });
  std::vector<sequence> sequences;
  for (const delivery& h : by_time) {
    // Most numbers are higher than all before them, which needs no search.
    const auto is_known = [&h](const std::set<std::int64_t>& numbers) {
      return !numbers.empty() && h.of->index <= *numbers.rbegin() &&
             numbers.count(h.of->index) != 0;
    };
    if (sequences.empty() || is_known(sequences.back().numbers)) {
      if (!sequences.empty()) sequences.back().to_ns = h.at_ns;
      sequences.emplace_back().from_ns = h.at_ns;
    }
    std::set<std::int64_t>& numbers = sequences.back().numbers;
    numbers.insert(numbers.end(), h.of->index);
    for (std::uint32_t s = 0; s < h.of->spans; ++s) {
      sequences.back().builders.insert(batches.preprocessing_spans()[h.of->first_span + s].file);
    }
  }
  // The lowest of the last numbers of a sequence and all after it.
  std::vector<std::int64_t> lowest_last(sequences.size() + 1, INT64_MAX);
  for (std::size_t i = sequences.size(); i-- > 0;) {
    lowest_last[i] = std::min(lowest_last[i + 1], *sequences[i].numbers.rbegin());
  }
  for (const auto& [began_ns, b] : not_received) {
    const auto open =
        std::upper_bound(sequences.begin(), sequences.end(), began_ns,
                         [](std::int64_t time_ns, const sequence& s) { return time_ns < s.to_ns; });
    auto at = static_cast<std::size_t>(open - sequences.begin());
    if (lowest_last[at] >= b->index) continue;
    while (*sequences[at].numbers.rbegin() >= b->index) ++at;
    sequences[at].left_early = true;
  }
  return sequences;
}

/// Returns whether more than 10 % of all batch numbers are missing in a sequence, either at its
/// beginning (below its lowest number) or between its lowest and highest number. If so, the
/// sequence cannot be an epoch of a single loader.
bool has_holes(const sequence& s, const std::vector<std::int64_t>& all, bool first) {
  const auto index_of = [&](std::int64_t number) {
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), number) - all.begin());
  };
  const std::size_t lowest = index_of(*s.numbers.begin());
  const std::size_t highest = index_of(*s.numbers.rbegin());
  const double few = 0.1 * static_cast<double>(all.size());
  // The first epoch may begin in the middle, because a training may be resumed from a checkpoint.
  if (!first && static_cast<double>(lowest) > few) return true;
  return static_cast<double>(highest - lowest + 1 - s.numbers.size()) > few;
}

/// Returns whether a consumer received the numbers of one loader whose epochs overlap a little: its
/// workers build ahead into the next epoch. Then it received all numbers equally often, and each
/// of them again only after nearly all others.
bool epochs_overlap(const run_batches& batches, consumer_id consumer, std::size_t numbers) {
  constexpr double nearly_all = 0.9;
  std::vector<std::pair<std::int64_t, std::int64_t>> received;  // when, and the number
  for (const batch& b : batches.all()) {
    const batch_record* const consumed = batches.record(b.consumed);
    if (consumed != nullptr && consumed->consumer == consumer) {
      received.emplace_back(consumed->start_ns, b.index);
    }
  }
  std::sort(received.begin(), received.end());
  std::map<std::int64_t, std::size_t> times;
  std::vector<std::size_t> reached(1, numbers);  // how many numbers were received n times or more
  for (const auto& [at_ns, number] : received) {
    const std::size_t n = ++times[number];
    if (static_cast<double>(reached[n - 1]) < nearly_all * static_cast<double>(numbers)) {
      return false;
    }
    if (n == reached.size()) reached.push_back(0);
    ++reached[n];
  }
  return reached.back() == numbers;
}

/// Properties of all sequences of a consumer. They show whether one sequence is unusual.
struct all_sequences {
  std::size_t longest = 0;
  /// Threads that built the batches of the longest sequences.
  std::set<optional_file> builders_of_long;
  /// For each length: number of sequences of this length that the program did not leave early.
  std::map<std::size_t, std::size_t> complete;

  explicit all_sequences(const std::vector<sequence>& all) {
    for (const sequence& s : all) longest = std::max(longest, s.numbers.size());
    for (const sequence& s : all) {
      if (10 * s.numbers.size() > 9 * longest) {
        builders_of_long.insert(s.builders.begin(), s.builders.end());
      }
      if (!s.left_early) ++complete[s.numbers.size()];
    }
  }
};

/// Returns whether a sequence must be the epoch of another loader with fewer batches, because it is
/// shorter than other sequences although it was not left early.
/// @param before  the length of the longest sequence before `s`.
bool is_shorter_loader(const sequence& s, bool last, std::size_t before, const all_sequences& all,
                       const recorded_work& work) {
  if (s.left_early || 10 * s.numbers.size() > 9 * all.longest) return false;
  const bool longer_before = 10 * s.numbers.size() <= 9 * before;
  // If no longer sequence came before, `s` may be an epoch that the program left early.
  if (!longer_before || s.builders.empty()) return false;
  const bool has_own_builders =
      std::none_of(s.builders.begin(), s.builders.end(),
                   [&](optional_file file) { return all.builders_of_long.count(file) != 0; });
  if (!last) return has_own_builders || all.complete.at(s.numbers.size()) > 1;
  // If the program was stopped during the last sequence, the sequence is short for this reason.
  // Operations that a builder ran outside batches after the start of the sequence indicate this.
  for (const optional_file file : s.builders) {
    if (file && work.last_outside_ns[file->value()] > s.from_ns) return false;
  }
  return has_own_builders;
}

}  // namespace

phrase mixed_sequences(const run_data& run, const recorded_work& work) {
  const concurrent_consumers consumers_at_once = find_concurrent_consumers(run);
  if (consumers_at_once.threads > 0 && !consumers_at_once.share_loader) {
    return {"two threads of one process wait for batches at the same time"};
  }
  // A part of a run may begin and end in the middle of an epoch.
  if (run.files->is_part()) return {};
  std::set<consumer_id> consumers;
  for (const batch_record& r : run.batches.records()) {
    if (r.kind == record_kind::consumed) consumers.insert(r.consumer);
  }
  for (const consumer_id consumer : consumers) {
    const std::vector<sequence> sequences = sequences_of(run, consumer);
    if (sequences.size() <= 1) continue;
    std::set<std::int64_t> numbers;
    for (const sequence& s : sequences) numbers.insert(s.numbers.begin(), s.numbers.end());
    if (epochs_overlap(run.batches, consumer, numbers.size())) continue;
    const all_sequences together(sequences);
    std::size_t before = 0;
    const std::vector<std::int64_t> all(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      if (has_holes(sequences[i], all, i == 0)) {
        return {"numbers that continue over all epochs are mixed with numbers that begin again"};
      }
      if (is_shorter_loader(sequences[i], i + 1 == sequences.size(), before, together, work)) {
        return {"among epochs of % batches there is a complete one of %",
                {count_word{together.longest}, count_word{sequences[i].numbers.size()}}};
      }
      before = std::max(before, sequences[i].numbers.size());
    }
  }
  return {};
}

}  // namespace lotus::tool
