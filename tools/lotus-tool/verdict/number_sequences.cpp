#include "verdict/number_sequences.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "verdict/recorded_work.hpp"

namespace lotus::tool {
namespace {

/// Hand-overs in order of time, of which no number comes twice.
struct sequence {
  std::set<std::int64_t> numbers;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = INT64_MAX;  ///< where the next begins
  bool left_early = false;         ///< more was made than was handed over
  std::set<optional_file> makers;
};

/// Two threads of one process that wait for batches at the same time.
bool threads_wait_at_once(const run_data& run) {
  struct thread_waits {
    consumer_id consumer;
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
  };
  std::map<file_id, thread_waits> of_file;
  for (const batch_record& r : run.batches.records()) {
    if (r.kind != record_kind::wait || r.is_marker()) continue;
    thread_waits& waits = of_file[r.file];
    waits.consumer = r.consumer;
    waits.first_ns = std::min(waits.first_ns, r.start_ns);
    waits.last_ns = std::max(waits.last_ns, r.end_ns());
  }
  std::vector<thread_waits> by_time;
  by_time.reserve(of_file.size());
  for (const auto& [file, waits] : of_file) by_time.push_back(waits);
  std::sort(by_time.begin(), by_time.end(), [](const thread_waits& a, const thread_waits& b) {
    return std::tie(a.consumer, a.first_ns) < std::tie(b.consumer, b.first_ns);
  });
  for (std::size_t i = 1; i < by_time.size(); ++i) {
    if (by_time[i].consumer == by_time[i - 1].consumer &&
        by_time[i].first_ns < by_time[i - 1].last_ns) {
      return true;
    }
  }
  return false;
}

/// The sequences of one consumer.
std::vector<sequence> sequences_of(const run_data& run, consumer_id consumer) {
  const run_batches& batches = run.batches;
  struct hand_over {
    std::int64_t at_ns;
    const batch* of;
  };
  std::vector<hand_over> by_time;
  std::vector<std::pair<std::int64_t, const batch*>> to_nobody;  // when they were made
  for (const batch& b : batches.all()) {
    const batch_record* const consumed = batches.record(b.consumed);
    if (consumed != nullptr) {
      if (consumed->consumer == consumer) by_time.push_back({consumed->start_ns, &b});
    } else if (const batch_record* const made = batches.record(b.preprocessed)) {
      if (made->consumer == consumer) to_nobody.emplace_back(made->start_ns, &b);
    }
  }
  std::sort(by_time.begin(), by_time.end(),
            [](const hand_over& a, const hand_over& b) { return a.at_ns < b.at_ns; });
  std::vector<sequence> sequences;
  for (const hand_over& h : by_time) {
    if (sequences.empty() || sequences.back().numbers.count(h.of->index) != 0) {
      if (!sequences.empty()) sequences.back().to_ns = h.at_ns;
      sequences.emplace_back().from_ns = h.at_ns;
    }
    sequences.back().numbers.insert(h.of->index);
    for (std::uint32_t s = 0; s < h.of->spans; ++s) {
      sequences.back().makers.insert(batches.making()[h.of->first_span + s].file);
    }
  }
  for (const auto& [made_ns, b] : to_nobody) {
    for (sequence& s : sequences) {
      if (made_ns < s.to_ns && *s.numbers.rbegin() < b->index) {
        s.left_early = true;
        break;
      }
    }
  }
  return sequences;
}

/// True where the numbers of an epoch are no run of all numbers from the first one on.
bool has_holes(const sequence& s, const std::vector<std::int64_t>& all, bool first) {
  const auto place = [&](std::int64_t number) {
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), number) - all.begin());
  };
  const std::size_t lowest = place(*s.numbers.begin());
  const std::size_t highest = place(*s.numbers.rbegin());
  const double few = 0.1 * static_cast<double>(all.size());
  // A run that was taken up again begins its first epoch in the middle.
  if (!first && static_cast<double>(lowest) > few) return true;
  return static_cast<double>(highest - lowest + 1 - s.numbers.size()) > few;
}

/// True where a sequence that is shorter than others was not left early.
bool is_shorter_loader(const std::vector<sequence>& all, std::size_t i, std::size_t longest,
                       const recorded_work& work) {
  const sequence& s = all[i];
  if (s.left_early || 10 * s.numbers.size() > 9 * longest) return false;
  const bool last = i + 1 == all.size();
  const bool longer_before =
      std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                  [&](const sequence& o) { return 10 * s.numbers.size() <= 9 * o.numbers.size(); });
  if (!longer_before || s.makers.empty()) return false;  // it may have been left where it ended
  bool has_makers_of_its_own = true;
  for (const sequence& o : all) {
    if (10 * o.numbers.size() <= 9 * longest) continue;
    for (const optional_file file : s.makers) {
      has_makers_of_its_own = has_makers_of_its_own && o.makers.count(file) == 0;
    }
  }
  if (!last) {
    const auto alike = std::count_if(all.begin(), all.end(), [&](const sequence& o) {
      return o.numbers.size() == s.numbers.size() && !o.left_early;
    });
    return has_makers_of_its_own || alike > 1;
  }
  // The last one may be an epoch in which the program was stopped: then work is under way.
  for (const optional_file file : s.makers) {
    if (file && work.last_outside_ns[file->value()] > s.from_ns) return false;
  }
  return has_makers_of_its_own;
}

}  // namespace

std::string mixed_sequences(const run_data& run, const recorded_work& work) {
  if (threads_wait_at_once(run)) return "two threads of one process wait for batches at once";
  std::set<consumer_id> consumers;
  for (const batch_record& r : run.batches.records()) {
    if (r.kind == record_kind::consumed) consumers.insert(r.consumer);
  }
  for (const consumer_id consumer : consumers) {
    const std::vector<sequence> sequences = sequences_of(run, consumer);
    std::set<std::int64_t> numbers;
    std::size_t longest = 0;
    for (const sequence& s : sequences) {
      numbers.insert(s.numbers.begin(), s.numbers.end());
      longest = std::max(longest, s.numbers.size());
    }
    const std::vector<std::int64_t> all(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < sequences.size() && sequences.size() > 1; ++i) {
      if (has_holes(sequences[i], all, i == 0)) {
        return "batch numbers that count through are mixed with others that come again";
      }
      if (is_shorter_loader(sequences, i, longest, work)) {
        return "among epochs of " + std::to_string(longest) + " batches there is a whole one of " +
               std::to_string(sequences[i].numbers.size());
      }
    }
  }
  return {};
}

}  // namespace lotus::tool
