// Estimates how many calls of an operation are served at the same time.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sorting.hpp"
#include "replay/recorded/shared_operations.hpp"

namespace lotus::tool {
namespace {

struct call {
  double start = 0;
  double end = 0;
};

constexpr std::size_t statistics = 8;
// A number of servers is rejected if the recording deviates from the simulations with this number
// by more than `far_off` standard deviations.
constexpr double far_off = 3.2;
constexpr double min_sd = 0.02;
using statistic_values = std::array<double, statistics>;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double correlation(const std::vector<double>& a, const std::vector<double>& b, std::size_t shift) {
  const std::size_t n = a.size() - shift;
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mean_a += a[i];
    mean_b += b[i + shift];
  }
  mean_a /= static_cast<double>(n);
  mean_b /= static_cast<double>(n);
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < n; ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i + shift] - mean_b) * (b[i + shift] - mean_b);
    ab += (a[i] - mean_a) * (b[i + shift] - mean_b);
  }
  constexpr double nothing = 1e-12;
  return aa < nothing || bb < nothing ? 0 : ab / std::sqrt(aa * bb);
}

double quantile_of(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// Computes the statistics that are compared between the recording and a simulation.
/// @param calls  the calls, sorted by their ends; not empty.
statistic_values statistics_of(const std::vector<call>& calls) {
  const std::size_t n = calls.size();
  std::vector<double> starts(n);
  std::vector<double> durations(n);
  std::vector<double> logs(n);
  for (std::size_t i = 0; i < n; ++i) {
    starts[i] = calls[i].start;
    durations[i] = calls[i].end - calls[i].start;
    logs[i] = std::log(std::max(1e-6, durations[i]));
  }
  std::sort(starts.begin(), starts.end());
  const auto ended_by = [&](double time) {
    return std::upper_bound(calls.begin(), calls.end(), time,
                            [](double t, const call& c) { return t < c.end; }) -
           calls.begin();
  };
  std::vector<double> found(n);  // for each call: number of calls that were open when it began
  for (std::size_t i = 0; i < n; ++i) {
    const auto began = std::lower_bound(starts.begin(), starts.end(), calls[i].start);
    found[i] =
        static_cast<double>(began - starts.begin()) - static_cast<double>(ended_by(calls[i].start));
  }
  std::vector<double> gaps;  // times between successive ends of calls while another call was open
  for (std::size_t i = 1; i < n; ++i) {
    const auto begun = std::upper_bound(starts.begin(), starts.end(), calls[i - 1].end);
    const double gap = calls[i].end - calls[i - 1].end;
    if (begun - starts.begin() > static_cast<std::ptrdiff_t>(i) && gap > 0) gaps.push_back(gap);
  }
  const double median = std::max(1e-9, quantile_of(durations, 0.5));
  // This share of the median is added to each gap before its logarithm is taken, so that
  // differences between very short gaps hardly count.
  constexpr double least = 0.003;
  const auto gap = [&](double share) {
    return std::log(quantile_of(gaps, share) / median + least);
  };
  const double mean_log = mean_of(logs);
  double squares = 0;
  for (const double l : logs) squares += (l - mean_log) * (l - mean_log);
  const double whole = std::max(1e-9, calls.back().end - calls.front().end);
  return {correlation(found, logs, 0),
          correlation(logs, logs, 1),
          gap(0.05),
          gap(0.25),
          gap(0.5),
          std::sqrt(squares / static_cast<double>(n)),
          std::log(static_cast<double>(n) / whole * median),
          mean_of(found)};
}

/// Simulates threads that alternate between a pause, of a random length from `thinks`, and a call.
/// At most `servers` calls are served at the same time, each for a random time from `services`; the
/// other calls wait.
class closed_loop {
 public:
  closed_loop(std::size_t threads, std::size_t servers, const std::vector<double>& services,
              const std::vector<double>& thinks, std::mt19937_64& random)
      : threads_(threads), free_(servers), services_(services), thinks_(thinks), random_(random) {}

  std::vector<call> play(std::size_t calls, bool first_come_first_served) {
    std::vector<double> began(threads_);
    std::vector<std::size_t> waiting;
    for (std::size_t t = 0; t < threads_; ++t) {
      events_.emplace(draw(thinks_) * std::uniform_real_distribution<double>(0, 1)(random_), t,
                      false);
    }
    std::vector<call> made;
    made.reserve(calls);
    while (made.size() < calls) {
      const auto [now, thread, ends] = events_.top();
      events_.pop();
      if (!ends) {
        began[thread] = now;
        if (free_ > 0) {
          --free_;
          events_.emplace(now + draw(services_), thread, true);
        } else {
          waiting.push_back(thread);
        }
        continue;
      }
      made.push_back({began[thread], now});
      events_.emplace(now + draw(thinks_), thread, false);
      if (waiting.empty()) {
        ++free_;
        continue;
      }
      const std::size_t next = first_come_first_served ? 0
                                                       : std::uniform_int_distribution<std::size_t>(
                                                             0, waiting.size() - 1)(random_);
      events_.emplace(now + draw(services_), waiting[next], true);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(next));
    }
    return made;
  }

 private:
  double draw(const std::vector<double>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random_)];
  }

  std::size_t threads_;
  std::size_t free_;
  const std::vector<double>& services_;
  const std::vector<double>& thinks_;
  std::mt19937_64& random_;
  using event = std::tuple<double, std::size_t, bool>;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
};

struct time_span_ns {
  std::int64_t start_ns;
  std::int64_t end_ns;
};

std::vector<time_span_ns> sorted_by_start(const std::vector<operation_call>& calls) {
  std::vector<time_span_ns> spans;
  spans.reserve(calls.size());
  for (const operation_call& c : calls) spans.push_back({c.start_ns, c.end_ns});
  sort_runs(spans.begin(), spans.end(), [](const time_span_ns& a, const time_span_ns& b) {
    return std::tie(a.start_ns, a.end_ns) < std::tie(b.start_ns, b.end_ns);
  });
  return spans;
}

/// Returns the pauses of the threads between their calls. If most threads make only few calls,
/// distributes the calls to `at_once` virtual threads and returns the pauses of the virtual
/// threads.
std::vector<double> think_times(const std::vector<operation_call>& calls, std::size_t at_once) {
  std::vector<operation_call> by_start = calls;
  std::sort(by_start.begin(), by_start.end(), [](const operation_call& a, const operation_call& b) {
    return a.start_ns < b.start_ns;
  });
  std::map<std::uint32_t, std::int64_t> ended;
  for (const operation_call& c : calls) ended[c.file] = 0;
  std::vector<double> thinks;
  if (calls.size() >= 4 * ended.size()) {
    for (const operation_call& c : by_start) {
      std::int64_t& before = ended[c.file];
      if (before != 0) thinks.push_back(static_cast<double>(c.start_ns - before));
      before = c.end_ns;
    }
  } else {
    // For each virtual thread without an open call: when its last call ended.
    std::deque<std::int64_t> free;
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> open;
    for (const operation_call& c : by_start) {
      while (!open.empty() && open.top() <= c.start_ns) {
        free.push_back(open.top());
        open.pop();
      }
      if (!free.empty() && free.size() + open.size() >= at_once) {
        thinks.push_back(static_cast<double>(c.start_ns - free.front()));
        free.pop_front();
      }
      open.push(c.end_ns);
    }
  }
  for (double& t : thinks) t = std::max(0.0, t);
  if (thinks.empty()) thinks.push_back(0);
  return thinks;
}

/// Returns a measure of how much values differ: the interquartile range divided by the median.
double spread_of(std::vector<double> values) {
  const double median = quantile_of(values, 0.5);
  if (median <= 0) return HUGE_VAL;
  return (quantile_of(values, 0.75) - quantile_of(values, 0.25)) / median;
}

/// Returns the numbers of servers to try: 1, 2, 3, 4, and then in growing steps up to `most`.
std::vector<std::size_t> candidates_up_to(std::size_t most) {
  std::vector<std::size_t> all;
  for (std::size_t c = 1; c < most; c += std::max<std::size_t>(1, c / 3)) all.push_back(c);
  all.push_back(most);
  return all;
}

/// Returns how much the recording deviates from simulations with `servers` servers: the largest
/// deviation of one of the statistics, in standard deviations.
double deviation_of(const std::vector<call>& calls, std::size_t servers, std::size_t at_once,
                    const std::vector<double>& services, const std::vector<double>& thinks) {
  constexpr std::size_t simulations = 20;
  constexpr std::size_t first_simulations = 6;
  // To save time, the remaining simulations are skipped if the deviation is larger than this after
  // the first ones.
  constexpr double max_deviation = 12;
  const statistic_values recorded = statistics_of(calls);
  std::mt19937_64 random(servers);
  double best = HUGE_VAL;
  for (const bool in_order : {true, false}) {
    if (!in_order && (servers >= at_once || best <= far_off)) break;
    statistic_values sum{};
    statistic_values squares{};
    double worst = 0;
    for (std::size_t i = 1; i <= simulations; ++i) {
      closed_loop loop(at_once, servers, services, thinks, random);
      const statistic_values one = statistics_of(loop.play(calls.size(), in_order));
      for (std::size_t s = 0; s < statistics; ++s) {
        sum[s] += one[s];
        squares[s] += one[s] * one[s];
      }
      if (i != first_simulations && i != simulations) continue;
      worst = 0;
      const auto n = static_cast<double>(i);
      for (std::size_t s = 0; s < statistics; ++s) {
        const double mean = sum[s] / n;
        const double sd = std::sqrt(std::max(0.0, squares[s] / n - mean * mean));
        worst = std::max(worst, std::abs(recorded[s] - mean) / std::max(min_sd, sd));
      }
      if (worst > max_deviation) break;
    }
    best = std::min(best, worst);
  }
  return best;
}

/// Returns the CPU time of all calls divided by the time in which at least one call was open. At
/// least this many calls were served at the same time, because a call on a CPU does not wait.
double busy_at_once(const std::vector<operation_call>& calls) {
  double cpu_ns = 0;
  for (const operation_call& c : calls) cpu_ns += c.cpu_ns;
  double open_ns = 0;
  std::int64_t until = INT64_MIN;
  for (const time_span_ns& c : sorted_by_start(calls)) {
    if (c.end_ns <= until) continue;
    open_ns += static_cast<double>(c.end_ns - std::max(c.start_ns, until));
    until = c.end_ns;
  }
  return open_ns > 0 ? cpu_ns / open_ns : 0;
}

/// Returns the maximum number of calls that were open at the same time; at least 1.
std::size_t max_open(const std::vector<operation_call>& calls) {
  std::size_t most = 1;
  std::size_t ended = 0;
  const std::vector<time_span_ns> by_start = sorted_by_start(calls);
  for (std::size_t i = 0; i < by_start.size(); ++i) {
    while (ended < calls.size() && calls[ended].end_ns <= by_start[i].start_ns) ++ended;
    most = std::max(most, i + 1 - std::min(ended, i));
  }
  return most;
}

/// Returns whether each call of one thread took much longer than most calls of the others. Then the
/// thread is slow, and its calls do not show that calls wait for each other.
bool has_slow_thread(const std::vector<operation_call>& calls) {
  constexpr double much_longer = 3;
  constexpr std::size_t fewest = 3;
  std::vector<std::int64_t> durations;
  std::map<std::uint32_t, std::pair<std::int64_t, std::size_t>> shortest;  // and count, by thread
  for (const operation_call& c : calls) {
    durations.push_back(c.end_ns - c.start_ns);
    auto& [ns, count] = shortest.try_emplace(c.file, durations.back(), 0).first->second;
    ns = std::min(ns, durations.back());
    ++count;
  }
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  const double limit_ns = much_longer * static_cast<double>(*middle);
  return std::any_of(shortest.begin(), shortest.end(), [&](const auto& of) {
    return of.second.second >= fewest && static_cast<double>(of.second.first) > limit_ns;
  });
}

/// Returns whether some calls took much longer than most, while others went on as usual. Then
/// these calls have more to do; they do not wait for each other.
bool has_rare_long_calls(const std::vector<operation_call>& calls) {
  constexpr double much_longer = 5;
  std::vector<double> durations;
  durations.reserve(calls.size());
  for (const operation_call& c : calls) {
    durations.push_back(static_cast<double>(c.end_ns - c.start_ns));
  }
  const double usual_ns = quantile_of(durations, 0.5);
  std::size_t rare = 0;
  std::size_t passed = 0;  // those in which a usual call began and ended
  for (const operation_call& c : calls) {
    if (static_cast<double>(c.end_ns - c.start_ns) < much_longer * usual_ns) continue;
    ++rare;
    const bool is_passed = std::any_of(calls.begin(), calls.end(), [&](const operation_call& o) {
      return o.start_ns > c.start_ns && o.end_ns < c.end_ns &&
             static_cast<double>(o.end_ns - o.start_ns) < 2 * usual_ns;
    });
    if (is_passed) ++passed;
  }
  return rare >= 3 && 5 * rare <= 2 * calls.size() && 2 * passed > rare;
}

/// Returns whether the calls of one part of the run took so much longer than those of another that
/// waits for each other cannot be the cause: a call waits at most until all others that are open
/// have been served. Then the calls themselves have changed.
/// @param at_once  maximum number of calls that were open at the same time.
bool has_changed(const std::vector<operation_call>& calls, std::size_t at_once) {
  constexpr std::size_t parts = 4;
  double shortest_ns = HUGE_VAL;
  double longest_ns = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    std::vector<double> durations;
    for (std::size_t i = p * calls.size() / parts; i < (p + 1) * calls.size() / parts; ++i) {
      durations.push_back(static_cast<double>(calls[i].end_ns - calls[i].start_ns));
    }
    const double short_ns = quantile_of(durations, 0.1);
    shortest_ns = std::min(shortest_ns, short_ns);
    longest_ns = std::max(longest_ns, short_ns);
  }
  return longest_ns > static_cast<double>(at_once) * shortest_ns;
}

}  // namespace

served_at_once find_served_at_once(const stored_calls& all) {
  const call_overlap& overlap = all.overlap();
  served_at_once found;
  found.likeliest = overlap.max_inside;
  const std::vector<operation_call>& window = all.window();
  const std::size_t at_once = max_open(window);
  std::vector<std::size_t> candidates = candidates_up_to(overlap.max_inside);
  found.plausible = candidates;
  constexpr std::size_t fewest = 24;
  // If all calls were open at the same time, no call shows when a server was free again.
  if (at_once < 2 || window.size() < fewest || window.size() <= at_once) return found;
  if (has_slow_thread(window) || has_rare_long_calls(window) || has_changed(window, at_once)) {
    found.plausible = {overlap.max_inside};
    return found;
  }
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [&](std::size_t c) { return c > at_once; }),
                   candidates.end());
  if (candidates.back() != at_once) candidates.push_back(at_once);
  constexpr double surely = 1.1;
  const double busy = busy_at_once(window) / surely;
  const std::int64_t began_ns = window.front().start_ns;
  std::vector<call> calls;
  calls.reserve(window.size());
  for (const operation_call& c : window) {
    calls.push_back({static_cast<double>(c.start_ns - began_ns) * 1e-6,
                     static_cast<double>(c.end_ns - began_ns) * 1e-6});
  }
  std::vector<double> thinks = think_times(window, at_once);
  for (double& t : thinks) t *= 1e-6;
  std::vector<double> spreads;
  std::vector<double> deviations;
  for (const std::size_t c : candidates) {
    std::vector<double> services;
    const auto for_each = [&window](const auto& each) {
      std::for_each(window.begin(), window.end(), each);
    };
    for_each_served(window.size(), for_each, c, [&](const operation_call&, double ns, bool) {
      services.push_back(std::max(1e-6, ns * 1e-6));
    });
    services.erase(services.begin(), services.begin() + static_cast<std::ptrdiff_t>(c));
    spreads.push_back(spread_of(services));
    const bool too_few = static_cast<double>(c) < busy;
    deviations.push_back(too_few ? HUGE_VAL : deviation_of(calls, c, at_once, services, thinks));
  }
  constexpr double tight = 0.1;
  constexpr double much_wider = 4;
  const double tightest = *std::min_element(spreads.begin(), spreads.end());
  for (std::size_t i = 0; i < candidates.size() && tightest < tight; ++i) {
    if (spreads[i] > std::max(tight, much_wider * tightest)) deviations[i] = HUGE_VAL;
  }
  constexpr double far_slower = 1.5;
  if (overlap.is_slower_when_shared() && overlap.shared_ns > far_slower * overlap.alone_high_ns) {
    deviations.back() = HUGE_VAL;
  }
  const double best = *std::min_element(deviations.begin(), deviations.end());
  found.plausible.clear();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t c = candidates[i] == at_once ? overlap.max_inside : candidates[i];
    if (deviations[i] <= best) found.likeliest = c;
    // The candidate `at_once` (as many servers as calls that were ever open at the same time) means
    // that there is no limit. This is the usual case, so a larger deviation is required to reject
    // it than to reject other candidates, in particular if there are few calls.
    constexpr std::size_t many = 100;
    const double too_far = candidates[i] < at_once ? far_off
                           : window.size() < many  ? 2.5 * far_off
                                                   : 1.6 * far_off;
    if (deviations[i] <= std::max(too_far, 2 * best)) found.plausible.push_back(c);
  }
  return found;
}

}  // namespace lotus::tool
