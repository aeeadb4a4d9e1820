#include "findings/facts/idle_workers.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/pipeline/items.hpp"
#include "model/pipeline/stage_threads.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// The integral over time of how many spans cover it.
class covering {
 public:
  explicit covering(const std::vector<time_span>& spans) {
    for (const time_span& s : spans) {
      changes_.push_back({s.start_ns, 1, 0});
      changes_.push_back({s.end_ns, -1, 0});
    }
    std::sort(changes_.begin(), changes_.end(),
              [](const change& a, const change& b) { return a.at_ns < b.at_ns; });
    int number = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (i > 0) {
        changes_[i].sum_ns =
            changes_[i - 1].sum_ns +
            number * static_cast<double>(changes_[i].at_ns - changes_[i - 1].at_ns);
      }
      number += changes_[i].number;
      changes_[i].number = number;
    }
  }

  double between(std::int64_t start_ns, std::int64_t end_ns) const {
    return until(end_ns) - until(start_ns);
  }

 private:
  struct change {
    std::int64_t at_ns;
    int number;     ///< of spans that cover the time from here to the next change
    double sum_ns;  ///< the integral until here
  };

  double until(std::int64_t ns) const {
    const auto next = std::upper_bound(changes_.begin(), changes_.end(), ns,
                                       [](std::int64_t t, const change& c) { return t < c.at_ns; });
    if (next == changes_.begin()) return 0;
    const change& last = *(next - 1);
    return last.sum_ns + last.number * static_cast<double>(ns - last.at_ns);
  }

  std::vector<change> changes_;
};

/// @param lives  of each thread, from the start of its first batch to the end of its last one.
void find_ended(const std::vector<std::pair<std::int64_t, std::int64_t>>& lives,
                const std::vector<time_span>& spans, idle_workers& found) {
  constexpr double early = 0.2;
  constexpr double long_before_end = 0.6;
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  for (const auto& [first_ns, last_ns] : lives) {
    start_ns = std::min(start_ns, first_ns);
    end_ns = std::max(end_ns, last_ns);
  }
  const auto share_of = [&](std::int64_t ns) {
    return static_cast<double>(ns - start_ns) / static_cast<double>(end_ns - start_ns);
  };
  for (const auto& [first_ns, last_ns] : lives) {
    // Threads that begin later may take the place of others, as in each epoch.
    if (share_of(first_ns) > early) {
      found.ended = 0;
      return;
    }
    if (share_of(last_ns) >= long_before_end) continue;
    ++found.ended;
    found.ended_at = std::max(found.ended_at, share_of(last_ns));
  }
  // The others may only have ended a long batch.
  constexpr std::size_t several = 5;
  const auto later = std::count_if(spans.begin(), spans.end(), [&](const time_span& s) {
    return share_of(s.start_ns) > found.ended_at;
  });
  if (static_cast<std::size_t>(later) < std::max(several, spans.size() / 10)) found.ended = 0;
}

/// Returns the consumer's waits, sorted by time. Those for the first batches of epochs are empty:
/// workers may start meanwhile.
std::vector<time_span> waits_of(const run_batches& batches) {
  std::vector<time_span> waits;
  std::map<std::uint32_t, std::size_t> first;  // of each epoch: the wait that ends first
  for (const batch& b : batches.all()) {
    const batch_record* const wait = batches.record(b.wait);
    if (wait == nullptr || wait->is_marker()) continue;
    const auto [at, is_new] = first.try_emplace(b.epoch, waits.size());
    if (!is_new && wait->end_ns() < waits[at->second].end_ns) at->second = waits.size();
    waits.push_back({wait->start_ns, wait->end_ns()});
  }
  for (const auto& [epoch, number] : first) waits[number].start_ns = waits[number].end_ns;
  sort_by_start(waits);
  return waits;
}

/// When batches were begun and received, each sorted.
struct begun_and_received {
  std::vector<std::int64_t> begun;
  std::vector<std::int64_t> received;
  std::int64_t soon_ns = 0;  ///< what is received so soon after a begin may have allowed it

  /// How many batches are in flight when one begins at `ns`, with this one.
  std::size_t in_flight(std::int64_t ns) const {
    const auto until = [](const std::vector<std::int64_t>& times, std::int64_t end_ns) {
      return static_cast<std::size_t>(std::upper_bound(times.begin(), times.end(), end_ns) -
                                      times.begin());
    };
    const std::size_t gone = until(received, ns + soon_ns);
    return std::max(until(begun, ns), gone) - gone;
  }

  /// The number of batches in flight after most of the begins: a limit, if there is one.
  std::size_t usual_in_flight() const {
    std::map<std::size_t, std::size_t> times;
    for (const std::int64_t ns : begun) ++times[in_flight(ns)];
    return std::max_element(times.begin(), times.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
};

/// @param spans  of one thread, sorted by time.
/// @param freed  sorted: when a batch may have stopped counting for a limit.
/// @param usual  begun_and_received::usual_in_flight().
void count_begins(const std::vector<time_span>& spans, const std::vector<std::int64_t>& freed,
                  const begun_and_received& all, std::size_t usual, double mean_ns,
                  double interval_ns, idle_workers& found) {
  constexpr double idle = 0.25;
  constexpr double directly = 0.15;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const std::int64_t start_ns = spans[i].start_ns;
    if (static_cast<double>(start_ns - spans[i - 1].end_ns) < idle * mean_ns) continue;
    const auto after = std::upper_bound(freed.begin(), freed.end(), start_ns);
    if (after == freed.begin()) continue;
    ++found.begins;
    const auto late_ns = static_cast<double>(start_ns - *(after - 1));
    // A worker may begin before the consumer's thread, which let it go, records the reception.
    const auto next = std::upper_bound(all.received.begin(), all.received.end(), start_ns);
    const bool is_usual = all.in_flight(start_ns) == usual;
    const bool is_early = next != all.received.end() && *next - start_ns <= all.soon_ns && is_usual;
    if (is_usual) ++found.at_limit;
    if (late_ns < directly * interval_ns || is_early) ++found.after_reception;
  }
}

/// @param spans  all times in which a batch was built.
void measure_starved(const run_batches& batches, const std::vector<time_span>& waits,
                     const std::vector<time_span>& spans, idle_workers& found) {
  // A batch is ready from the end of its preprocessing until it is received.
  std::vector<time_span> ready;
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.made(b);
    const auto at_ns = batches.delivery_ns(b);
    if (made && at_ns && made->end_ns < *at_ns) ready.push_back({made->end_ns, *at_ns});
  }
  sort_by_start(ready);
  const covering building(spans);
  double building_ns = 0;
  std::size_t next = 0;
  std::int64_t some_ready_until = INT64_MIN;
  const auto add = [&](std::int64_t start_ns, std::int64_t end_ns) {
    if (start_ns >= end_ns) return;
    found.starved_ns += static_cast<double>(end_ns - start_ns);
    building_ns += building.between(start_ns, end_ns);
  };
  for (const time_span& wait : waits) {
    for (; next < ready.size() && ready[next].start_ns < wait.end_ns; ++next) {
      add(std::max(wait.start_ns, some_ready_until), ready[next].start_ns);
      some_ready_until = std::max(some_ready_until, ready[next].end_ns);
    }
    add(std::max(wait.start_ns, some_ready_until), wait.end_ns);
  }
  if (found.starved_ns > 0) found.building = building_ns / found.starved_ns;
}

/// @param waits     the consumer's, sorted.
/// @param since_ns  when the consumer received its first batch.
void find_starts(const run_batches& batches, const std::vector<time_span>& waits,
                 std::int64_t since_ns, idle_workers& found) {
  std::vector<time_span> spans;
  std::map<std::size_t, std::int64_t> begins;  // of the first batch of each thread
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    spans.push_back({s.start_ns, s.end_ns()});
    if (!s.file) continue;
    std::int64_t& begin_ns = begins.try_emplace(s.file->value(), s.start_ns).first->second;
    begin_ns = std::min(begin_ns, s.start_ns);
  }
  sort_by_start(spans);
  std::vector<std::int64_t> firsts;
  for (const auto& [log, begin_ns] : begins) {
    if (begin_ns > since_ns) firsts.push_back(begin_ns);
  }
  std::sort(firsts.begin(), firsts.end());
  found.started = firsts.size();
  const covering waiting(waits);
  std::int64_t built_until_ns = INT64_MAX;
  for (const time_span& s : spans) {
    const bool is_first = std::binary_search(firsts.begin(), firsts.end(), s.start_ns);
    if (is_first && built_until_ns < s.start_ns) {
      const double idle_ns = waiting.between(built_until_ns, s.start_ns);
      found.starting_ns += idle_ns;
      if (idle_ns > 0) ++found.starts;
    }
    built_until_ns = std::max(built_until_ns == INT64_MAX ? s.end_ns : built_until_ns, s.end_ns);
  }
}

}  // namespace

idle_workers find_idle_workers(const run_data& run) {
  const run_batches& batches = run.batches;
  idle_workers found;
  std::map<std::size_t, std::vector<time_span>> by_log;
  std::vector<time_span> spans;
  double built_ns = 0;
  std::vector<std::int64_t> received;
  for (const batch& b : batches.all()) {
    if (const auto at_ns = batches.delivery_ns(b)) received.push_back(*at_ns);
  }
  if (received.size() < 2 || are_built_by_short_threads(run)) return found;
  const auto [first, last] = std::minmax_element(received.begin(), received.end());
  const std::vector<time_span> waits = waits_of(batches);
  find_starts(batches, waits, *first, found);
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (!s.file || s.stage != preprocess_stage) return found;
    spans.push_back({s.start_ns, s.end_ns()});
    by_log[s.file->value()].push_back(spans.back());
    built_ns += static_cast<double>(s.duration_ns);
  }
  if (spans.empty()) return found;
  const double interval_ns =
      static_cast<double>(*last - *first) / static_cast<double>(received.size() - 1);
  // A limit may count a batch until the consumer has received it, or until the end of its step.
  constexpr double soon = 0.02;
  begun_and_received all{{}, std::move(received), static_cast<std::int64_t>(soon * interval_ns)};
  std::sort(all.received.begin(), all.received.end());
  for (const time_span& s : spans) all.begun.push_back(s.start_ns);
  std::sort(all.begun.begin(), all.begun.end());
  const std::size_t usual = all.usual_in_flight();
  std::vector<std::int64_t> freed = all.received;
  for (const time_span& wait : waits) freed.push_back(wait.start_ns);
  std::sort(freed.begin(), freed.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> lives;
  for (auto& [log, of] : by_log) {
    sort_by_start(of);
    lives.emplace_back(of.front().start_ns, of.back().end_ns);
    count_begins(of, freed, all, usual, built_ns / static_cast<double>(spans.size()), interval_ns,
                 found);
  }
  found.workers = max_at_once(lives);
  if (lives.size() == found.workers) find_ended(lives, spans, found);
  measure_starved(batches, waits, spans, found);
  return found;
}

}  // namespace lotus::tool
