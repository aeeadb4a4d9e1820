#include "findings/facts/wait_patterns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "findings/facts/changes.hpp"
#include "model/run_model.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {
namespace {

/// A batch that the consumer received.
struct reception {
  std::int64_t at_ns = 0;
  std::int64_t asked_ns = 0;          ///< when the consumer began to wait for it
  std::optional<time_span> wait{};    ///< nullopt if it did not wait, or for a batch to leave out
  std::optional<time_span> made{};    ///< when it was built
  std::int64_t begun_ns = INT64_MAX;  ///< when as many batches as this one's place were begun
  bool is_first = false;              ///< whether it was the first one of an epoch

  double ns() const { return static_cast<double>(wait->duration_ns()); }
};

/// The batches of an epoch in the order in which they were received, which need not be the order of
/// their numbers.
using receptions = std::vector<reception>;

std::vector<receptions> receptions_of(const run_data& run, const std::vector<bool>& counted) {
  const run_batches& batches = run.batches;
  std::vector<receptions> epochs;
  std::vector<std::vector<std::int64_t>> begun;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch& b = batches.all()[i];
    if (epochs.size() <= b.epoch) {
      epochs.resize(b.epoch + 1);
      begun.resize(b.epoch + 1);
    }
    const std::optional<time_span> made = batches.made(b);
    const std::optional<std::int64_t> at_ns = batches.delivery_ns(b);
    // If it is unknown when a received batch was begun, take it for begun before all others.
    if (made || at_ns) begun[b.epoch].push_back(made ? made->start_ns : INT64_MIN);
    if (!at_ns) continue;
    reception one{*at_ns, *at_ns};
    one.made = made;
    const batch_record* const wait = batches.record(b.wait);
    if (wait != nullptr) one.asked_ns = wait->start_ns;
    if (wait != nullptr && !wait->is_marker() && counted[i]) {
      one.wait = {wait->start_ns, wait->end_ns()};
    }
    epochs[b.epoch].push_back(one);
  }
  for (std::size_t e = 0; e < epochs.size(); ++e) {
    std::stable_sort(epochs[e].begin(), epochs[e].end(),
                     [](const reception& a, const reception& b) { return a.at_ns < b.at_ns; });
    std::sort(begun[e].begin(), begun[e].end());
    const std::size_t known = std::min(epochs[e].size(), begun[e].size());
    for (std::size_t k = 0; k < known; ++k) epochs[e][k].begun_ns = begun[e][k];
    // The first batch of a part of a run is probably not the first one of its epoch.
    const bool begins_later = e == 0 && run.files->part && run.files->part->from_ns;
    if (!epochs[e].empty()) epochs[e].front().is_first = !begins_later;
  }
  return epochs;
}

/// Returns for how long no batch had been built when the one at `at_ns` was begun; nullopt if
/// another was being built.
std::optional<double> idle_until(const intervals& building, std::int64_t at_ns) {
  const auto next =
      std::upper_bound(building.begin(), building.end(), at_ns - 1,
                       [](std::int64_t t, const time_span& s) { return t < s.start_ns; });
  if (next == building.begin() || (next - 1)->end_ns > at_ns) return std::nullopt;
  return static_cast<double>(at_ns - (next - 1)->end_ns);
}

/// Returns the distance of at least three batches that nearly all distances are multiples of; 0 if
/// there is none. At the end of an epoch, one may be shorter.
std::size_t usual_distance(std::vector<std::size_t> gaps) {
  if (gaps.size() < 2) return 0;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  const std::size_t usual = *middle;
  const auto regular = std::count_if(gaps.begin(), gaps.end(),
                                     [usual](std::size_t gap) { return gap % usual == 0; });
  return usual < 3 || 10 * static_cast<std::size_t>(regular) < 9 * gaps.size() ? 0 : usual;
}

/// Finds out whether most waiting is done at every n-th batch, because it and all later ones are
/// begun only when the consumer has received the batch before, and nobody builds until then.
window_waits find_windows(const std::vector<receptions>& epochs, const intervals& building) {
  constexpr std::size_t fewest = 3;
  std::vector<std::size_t> gaps;
  double all_ns = 0;
  double begins_ns = 0;  // the waits for the batches that begin a window
  double late_ns = 0;    // from when the consumer waited for these until they were begun
  double idle_ns = 0;
  std::size_t begins = 0;
  for (const receptions& epoch : epochs) {
    std::optional<std::size_t> before;
    for (std::size_t k = 0; k < epoch.size(); ++k) {
      const reception& r = epoch[k];
      if (r.is_first) before = k;
      if (!r.wait || r.is_first) continue;
      all_ns += r.ns();
      if (k == 0 || !r.made || r.begun_ns == INT64_MAX) continue;
      // The next batches may be asked for just before the last one is received.
      if (r.begun_ns < epoch[k - 1].asked_ns || r.begun_ns == epoch[k - 1].begun_ns) continue;
      const std::optional<double> idle = idle_until(building, r.begun_ns);
      // A thread that builds one batch after the other is never idle for so long.
      if (!idle || *idle < 0.1 * static_cast<double>(r.made->duration_ns())) continue;
      if (before) gaps.push_back(k - *before);
      before = k;
      ++begins;
      begins_ns += r.ns();
      late_ns += static_cast<double>(std::max<std::int64_t>(0, r.begun_ns - r.wait->start_ns));
      idle_ns += *idle;
    }
  }
  if (begins < fewest || begins_ns < 0.5 * all_ns) return {};
  // Without this idle time, the workers would be as late. Much later begins have another cause.
  if (idle_ns < 0.4 * begins_ns || late_ns > 0.3 * begins_ns) return {};
  const std::size_t usual = usual_distance(gaps);
  if (usual == 0) return {};
  return {usual, begins_ns / static_cast<double>(begins), begins_ns / all_ns};
}

/// Returns the range of the middle half of the values, which few delays do not change.
double spread(const std::vector<double>& values) {
  return quantile(values, 0.75) - quantile(values, 0.25);
}

/// Returns how long the batch was ready in the wait for it.
double ready_in(const reception& r) {
  return static_cast<double>(r.wait->end_ns - std::max(r.made->end_ns, r.wait->start_ns));
}

/// Returns the length that half of the time of the waits do not exceed.
double usual_length(const receptions& waits) {
  std::vector<double> lengths;
  double all_ns = 0;
  for (const reception& r : waits) {
    lengths.push_back(r.ns());
    all_ns += r.ns();
  }
  std::sort(lengths.begin(), lengths.end());
  double sum_ns = 0;
  const auto at = std::find_if(lengths.begin(), lengths.end(),
                               [&](double ns) { return 2 * (sum_ns += ns) >= all_ns; });
  return at == lengths.end() ? 0 : *at;
}

/// Finds out whether nearly all waiting is done in long waits at every n-th batch.
window_waits find_regular(const std::vector<receptions>& epochs) {
  constexpr std::size_t fewest = 4;
  receptions all;
  double all_ns = 0;
  for (const receptions& epoch : epochs) {
    for (const reception& r : epoch) {
      if (!r.wait || r.is_first) continue;
      all.push_back(r);
      all_ns += r.ns();
    }
  }
  const double long_ns = 0.5 * usual_length(all);
  std::vector<std::size_t> gaps;
  double sum_ns = 0;
  std::size_t count = 0;
  for (const receptions& epoch : epochs) {
    std::optional<std::size_t> before;
    for (std::size_t k = 0; k < epoch.size(); ++k) {
      const reception& r = epoch[k];
      const bool is_long = r.wait && !r.is_first && r.ns() >= long_ns;
      if (!is_long && !r.is_first) continue;
      if (before && is_long) gaps.push_back(k - *before);
      before = k;
      if (!is_long) continue;
      sum_ns += r.ns();
      ++count;
    }
  }
  const std::size_t usual = usual_distance(gaps);
  if (count < fewest || usual == 0 || sum_ns < 0.9 * all_ns) return {};
  return {usual, sum_ns / static_cast<double>(count), sum_ns / all_ns};
}

/// Finds waits that last for a fixed time, as a timeout does if nobody wakes the consumer. Other
/// causes of equal waits differ from these:
/// - A thread that passes batches on takes a regular time from when a batch is ready, so that waits
///   for batches that become ready meanwhile differ by when that is.
/// - A thread that is always passing batches on, or does so at regular times, makes the receptions
///   regular, so that waits after longer steps are shorter.
/// - What takes a regular time whenever the consumer asks also does if the batch is ready before.
fixed_waits find_fixed(const std::vector<receptions>& epochs) {
  constexpr std::size_t fewest = 8;
  receptions late;
  double ready_ns = 0;
  for (const receptions& epoch : epochs) {
    for (const reception& r : epoch) {
      if (!r.wait || r.is_first || !r.made || r.made->end_ns >= r.wait->end_ns) continue;
      late.push_back(r);
      ready_ns += ready_in(r);
    }
  }
  const double usual_ns = usual_length(late);
  std::vector<double> lengths;
  std::vector<double> ready_for;
  std::vector<double> apart;  // from one of these receptions to the next
  double share_ns = 0;
  std::size_t all = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::size_t k = 0; k < late.size(); ++k) {
    const reception& r = late[k];
    // A timer is never early, but the thread may get a CPU late.
    if (r.ns() < 0.97 * usual_ns || r.ns() > 1.15 * usual_ns || 2 * ready_in(r) < r.ns()) continue;
    share_ns += ready_in(r);
    if (all++ == 0) first = k;
    if (all > 1) apart.push_back(static_cast<double>(r.at_ns - late[last].at_ns));
    last = k;
    if (r.made->end_ns <= r.wait->start_ns) continue;
    lengths.push_back(r.ns());
    ready_for.push_back(ready_in(r));
  }
  if (lengths.size() < fewest || 10 * lengths.size() < 7 * all) return {};
  const double differs_ns = spread(lengths);
  if (share_ns < 0.75 * ready_ns || differs_ns > 0.04 * usual_ns) return {};
  const bool any_time = spread(ready_for) >= 3 * differs_ns && spread(apart) >= 1.2 * differs_ns;
  // Then several batches became ready in one wait.
  const bool several = spread(apart) >= 3 * differs_ns && last - first >= 2 * apart.size();
  if (!any_time && !several) return {};
  return {all, quantile(lengths, 0.5), share_ns / ready_ns};
}

/// Returns wait_patterns::idle_steps.
double find_idle_steps(const std::vector<receptions>& epochs, const intervals& building) {
  constexpr std::size_t fewest = 10;
  std::vector<double> steps;
  std::vector<double> after_asked;
  std::vector<double> after_received;
  double waits_ns = 0;
  double steps_ns = 0;
  double busy_ns = 0;  // time of the steps in which a batch was being built
  for (const receptions& epoch : epochs) {
    for (std::size_t k = 1; k < epoch.size(); ++k) {
      const reception& r = epoch[k];
      if (!r.wait || !r.made) continue;
      const std::int64_t received_ns = epoch[k - 1].at_ns;
      steps.push_back(static_cast<double>(r.asked_ns - received_ns));
      steps_ns += steps.back();
      waits_ns += r.ns();
      busy_ns += covered(building, received_ns, r.asked_ns);
      if (std::min(r.made->start_ns, r.begun_ns) < received_ns) continue;
      after_asked.push_back(static_cast<double>(r.made->start_ns - r.asked_ns));
      after_received.push_back(static_cast<double>(r.made->start_ns - received_ns));
    }
  }
  if (steps.size() < fewest || 100 * after_asked.size() < 95 * steps.size()) return 0;
  if (steps_ns < 0.05 * (steps_ns + waits_ns) || busy_ns > 0.2 * steps_ns) return 0;
  // A thread that begins the next batch by itself does so at a regular time after the last one.
  if (spread(after_asked) > 1.3 * spread(after_received)) return 0;
  if (std::abs(quantile(after_asked, 0.5)) > 0.1 * quantile(steps, 0.5)) return 0;
  return 1 - busy_ns / steps_ns;
}

}  // namespace

wait_patterns find_patterns(const run_data& run, const std::vector<bool>& counted,
                            const intervals& building) {
  const std::vector<receptions> epochs = receptions_of(run, counted);
  return {find_windows(epochs, building), find_regular(epochs), find_fixed(epochs),
          find_idle_steps(epochs, building)};
}

}  // namespace lotus::tool
