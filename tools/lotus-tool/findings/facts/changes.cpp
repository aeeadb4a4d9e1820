#include "findings/facts/changes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/sorting.hpp"
#include "base/statistics/distribution.hpp"
#include "log/folder/log_files.hpp"
#include "log/shown_name.hpp"
#include "lotus/folder/log_claims.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

namespace {

constexpr std::size_t fewest_times = 24;  ///< a shorter series shows no change
constexpr double factor = 2;              ///< smallest change that is worth saying

double part_quantile(const std::vector<double>& all, std::size_t from, std::size_t to, double q) {
  return quantile({all.begin() + static_cast<std::ptrdiff_t>(from),
                   all.begin() + static_cast<std::ptrdiff_t>(to)},
                  q);
}

/// Returns the logarithm of the factor by which the times of a part surely grow, from its first
/// quarter to its last: less than measured by a standard error of the two medians.
double log_growth(const std::vector<double>& all, std::size_t from, std::size_t to) {
  constexpr std::size_t fewest = 4;
  const std::size_t some = std::max(fewest, (to - from) / 4);
  const auto log_of = [&](std::size_t begin, double q) {
    return std::log(std::max(1.0, part_quantile(all, begin, begin + some, q)));
  };
  const auto spread = [&](std::size_t begin) { return log_of(begin, 0.75) - log_of(begin, 0.25); };
  const double growth = log_of(to - some, 0.5) - log_of(from, 0.5);
  // A median's standard error is 1.25 standard deviations, or 0.93 interquartile ranges, divided by
  // the root of the count; somewhat less finds growth better where times differ much.
  constexpr double of_median = 0.7;
  const double error = of_median * std::hypot(spread(from), spread(to - some)) /
                       std::sqrt(static_cast<double>(some));
  return std::copysign(std::max(0.0, std::abs(growth) - error), growth);
}

bool differ(double a, double b) {
  return std::max(a, b) >= factor * std::min(a, b);
}

/// Elements that take several times the median, if they take a large part of the time.
std::optional<time_change> find_rare(const std::vector<double>& all) {
  constexpr double much_longer = 5;
  constexpr double much = 0.25;
  const double median = quantile(all, 0.5);
  std::vector<std::size_t> rare;
  std::vector<double> times;
  double rare_ns = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] < much_longer * median) continue;
    rare.push_back(i);
    times.push_back(all[i]);
    rare_ns += all[i];
  }
  if (rare.size() < 2 || 5 * rare.size() > all.size()) return std::nullopt;
  const double sum_ns = std::accumulate(all.begin(), all.end(), 0.0);
  if (rare_ns < much * sum_ns) return std::nullopt;
  time_change found;
  found.is = time_change::shape::now_again;
  found.before_ns = median;
  found.after_ns = quantile(times, 0.5);
  found.rare = rare.size();
  found.rare_share = rare_ns / sum_ns;
  found.rare_mean_ns = rare_ns / static_cast<double>(rare.size());
  std::vector<double> gaps;
  for (std::size_t i = 1; i < rare.size(); ++i) {
    gaps.push_back(static_cast<double>(rare[i] - rare[i - 1]));
  }
  if (gaps.size() >= 3) {
    const double usual = quantile(gaps, 0.5);
    const auto regular =
        std::count_if(gaps.begin(), gaps.end(), [&](double g) { return std::abs(g - usual) <= 1; });
    // A few clusters with a period of their own are no period of the run.
    const bool all_through =
        2 * usual * static_cast<double>(rare.size()) >= static_cast<double>(all.size());
    if (usual >= 3 && all_through && 10 * static_cast<std::size_t>(regular) >= 9 * gaps.size()) {
      found.every = static_cast<std::size_t>(usual);
    }
  }
  return found;
}

/// The element that divides the times into two parts whose means differ most significantly (James,
/// James and Siegmund, Tests for a change-point, Biometrika 74, 1987). Long elements are cut, so
/// that a few of them do not decide.
std::size_t split_of(const std::vector<double>& all) {
  constexpr std::size_t fewest = 4;
  const double most = 3 * quantile(all, 0.9);
  std::vector<double> cut = all;
  for (double& v : cut) v = std::min(v, most);
  const auto n = static_cast<double>(cut.size());
  const double mean = std::accumulate(cut.begin(), cut.end(), 0.0) / n;
  double sum = 0;
  double largest = 0;
  std::size_t at = 0;
  for (std::size_t i = 1; i + fewest <= cut.size(); ++i) {
    sum += cut[i - 1] - mean;
    if (i < fewest) continue;
    const auto before = static_cast<double>(i);
    const double differs = std::abs(sum) / std::sqrt(before * (n - before));
    if (differs <= largest) continue;
    largest = differs;
    at = i;
  }
  return at;
}

struct worker_batches {
  std::vector<double> times_ns;
  double mean_ns = 0;
  double squares = 0;  ///< sum of squared differences from the mean
  double most_ns = 0;  ///< three quarters of the times are at most this long

  void sum_up() {
    for (const double ns : times_ns) mean_ns += ns / static_cast<double>(times_ns.size());
    for (const double ns : times_ns) squares += (ns - mean_ns) * (ns - mean_ns);
    most_ns = quantile(times_ns, 0.75);
  }
};

/// The work of several threads on batches, in order of time: the log of the thread, and the time.
struct timed_work {
  std::vector<file_id> files;
  std::vector<double> times_ns;

  void add(file_id file, std::int64_t ns) {
    files.push_back(file);
    times_ns.push_back(static_cast<double>(ns));
  }
};

/// Returns the median time of the fastest thread in a part of the work. Most of the part may be the
/// work of a slow one.
double least_median(const timed_work& work, std::size_t from, std::size_t to) {
  std::map<file_id, std::vector<double>> of_file;
  for (std::size_t i = from; i < to; ++i) of_file[work.files[i]].push_back(work.times_ns[i]);
  double least = HUGE_VAL;
  for (auto& [file, times_ns] : of_file) {
    least = std::min(least, quantile(std::move(times_ns), 0.5));
  }
  return least;
}

/// Returns the work in those parts of the run in which several threads worked, since only there
/// they can be compared. Divides each time by how much longer than usual the batches built about
/// then took.
timed_work at_the_same_time(const timed_work& work) {
  constexpr std::size_t fewest = 8;
  constexpr std::size_t most_parts = 16;
  const std::size_t n = work.times_ns.size();
  const std::size_t parts = std::min(most_parts, n / fewest);
  if (parts < 2) return work;
  timed_work compared;
  // Even if most workers are slow, a quarter of the batches are of others.
  const double usual_ns = quantile(work.times_ns, 0.25);
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t from = p * n / parts;
    const std::size_t to = (p + 1) * n / parts;
    const double then_ns = least_median(work, from, to);
    const auto others = [&](file_id file) { return file != work.files[from]; };
    const auto begin = work.files.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(to);
    if (then_ns <= 0 || std::none_of(begin + static_cast<std::ptrdiff_t>(from), end, others)) {
      continue;
    }
    for (std::size_t i = from; i < to; ++i) {
      compared.files.push_back(work.files[i]);
      compared.times_ns.push_back(work.times_ns[i] * usual_ns / then_ns);
    }
  }
  return compared;
}

double mean_of(const timed_work& work, file_id file) {
  double sum_ns = 0;
  double n = 0;
  for (std::size_t i = 0; i < work.files.size(); ++i) {
    if (work.files[i] != file) continue;
    sum_ns += work.times_ns[i];
    ++n;
  }
  return sum_ns / n;
}

/// Adds the slow ones of the workers that did this work.
void slow_among(const timed_work& work, const std::vector<log_file>& logs, const std::string& stage,
                std::vector<slow_worker>& slow) {
  std::map<file_id, worker_batches> of_file;
  // If the times change during the run, workers also differ by when they worked.
  const timed_work compared = at_the_same_time(work);
  for (std::size_t i = 0; i < compared.files.size(); ++i) {
    of_file[compared.files[i]].times_ns.push_back(compared.times_ns[i]);
  }
  double squares = 0;
  double freedom = 0;
  for (auto& [file, w] : of_file) {
    w.sum_up();
    squares += w.squares;
    freedom += static_cast<double>(w.times_ns.size() - 1);
  }
  for (const auto& [file, w] : of_file) {
    std::vector<std::int64_t> others;
    std::vector<double> most_of_others;
    for (const auto& [other, of] : of_file) {
      if (other == file) continue;
      others.push_back(std::llround(of.mean_ns));
      most_of_others.push_back(of.most_ns);
    }
    if (others.empty()) return;
    const double median_ns = describe(others).p50_ns;
    const auto n = static_cast<double>(w.times_ns.size());
    const std::uint64_t number = logs[file.value()].number;
    // One or two batches are too few to judge a worker, and short threads may share a log.
    if (n < 3 || number > lotus::detail::largest_thread_id) continue;
    if (w.most_ns < 1.1 * quantile(most_of_others, 0.5)) continue;
    // A few batches of one worker often underestimate the variance, so use at least the pooled
    // variance of all workers.
    const double variance = std::max(squares / freedom, w.squares / (n - 1));
    if (w.mean_ns > 1.25 * median_ns && w.mean_ns - median_ns > 3 * std::sqrt(variance / n)) {
      slow.push_back({number, stage, mean_of(work, file), w.mean_ns / median_ns});
    }
  }
}

}  // namespace

std::optional<time_change> find_change(const std::vector<double>& times_ns) {
  if (times_ns.size() < fewest_times) return std::nullopt;
  const std::size_t n = times_ns.size();
  const std::size_t at = split_of(times_ns);
  const std::size_t least = std::max<std::size_t>(8, n / 20);
  if (at >= least && at + least <= n) {
    time_change found;
    found.at = at;
    found.before_ns = part_quantile(times_ns, 0, at, 0.5);
    found.after_ns = part_quantile(times_ns, at, n, 0.5);
    // Both parts must differ clearly: three quarters of the times of one part are shorter than
    // three quarters of the times of the other.
    const bool apart =
        found.before_ns < found.after_ns
            ? part_quantile(times_ns, 0, at, 0.75) < part_quantile(times_ns, at, n, 0.25)
            : part_quantile(times_ns, at, n, 0.75) < part_quantile(times_ns, 0, at, 0.25);
    if (apart && differ(found.before_ns, found.after_ns)) {
      // A step has hardly any change within its parts; a trend has most of it there.
      const double way = found.before_ns < found.after_ns ? 1 : -1;
      const double first = way * log_growth(times_ns, 0, at);
      const double second = way * log_growth(times_ns, at, n);
      const double jump = way * std::log(found.after_ns / found.before_ns) - (first + second) / 2;
      constexpr double hardly = 0.1;
      const bool goes_on = first > -hardly && second > -hardly;
      if (goes_on && first + second > jump) {
        found.is = time_change::shape::trend;
        found.before_ns = part_quantile(times_ns, 0, n / 8, 0.5);
        found.after_ns = part_quantile(times_ns, n - n / 8, n, 0.5);
        return found;
      }
      // Times that rise and fall again have no step either.
      if (std::max(std::abs(first), std::abs(second)) < jump) return found;
    }
  }
  return find_rare(times_ns);
}

bool has_equal_calls(std::vector<time_span> calls, const time_change& change) {
  constexpr std::size_t fewest = 16;
  if (calls.size() < fewest) return false;
  std::sort(calls.begin(), calls.end(),
            [](const time_span& a, const time_span& b) { return a.start_ns < b.start_ns; });
  std::vector<double> times_ns;
  times_ns.reserve(calls.size());
  for (const time_span& call : calls) times_ns.push_back(static_cast<double>(call.duration_ns()));
  const std::size_t some = calls.size() / 4;
  const auto log_of = [&](std::size_t begin) {
    return std::log(std::max(1.0, part_quantile(times_ns, begin, begin + some, 0.5)));
  };
  const double of_calls = log_of(calls.size() - some) - log_of(0);
  return std::abs(of_calls) < 0.25 * std::abs(std::log(change.after_ns / change.before_ns));
}

std::vector<slow_worker> slow_workers_of(const run_data& run, const std::vector<bool>& counted) {
  std::map<stage_id, timed_work> by_stage;
  const run_batches& batches = run.batches;
  std::vector<const batch_record*> whole;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch_record* const r = batches.record(batches.all()[i].preprocessed);
    if (r != nullptr && counted[i]) whole.push_back(r);
  }
  sort_runs(whole.begin(), whole.end(),
            [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  for (const batch_record* const r : whole) {
    by_stage[preprocess_stage].add(r->file, r->duration_ns);
  }
  std::vector<const preprocessing_span*> spans;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (s.stage != preprocess_stage && s.file && s.batch && counted[s.batch->value()]) {
      spans.push_back(&s);
    }
  }
  sort_runs(spans.begin(), spans.end(),
            [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  for (const preprocessing_span* const s : spans) by_stage[s->stage].add(*s->file, s->duration_ns);
  std::vector<slow_worker> slow;
  for (auto& [stage, work] : by_stage) {
    const std::string name =
        stage == preprocess_stage ? "" : shown_name(run.names.name(stage.value()));
    slow_among(work, run.files->files, name, slow);
  }
  std::sort(slow.begin(), slow.end(),
            [](const slow_worker& a, const slow_worker& b) { return a.mean_ns > b.mean_ns; });
  return slow;
}

}  // namespace lotus::tool
