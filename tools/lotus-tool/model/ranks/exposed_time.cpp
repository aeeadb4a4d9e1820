#include "model/ranks/exposed_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "describe/description.hpp"
#include "model/quantities.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

constexpr const char* link_names[] = {"workers", "cpu",   "run-queue",
                                      "blocked", "build", "hand-over"};

/// The steps of one rank, without those that another rank does not have.
using rank_series = std::vector<rank_step>;

std::vector<rank_series> common_steps(const std::vector<rank_times>& ranks) {
  std::vector<rank_series> common(ranks.size());
  std::size_t epochs = SIZE_MAX;
  for (const rank_times& rank : ranks) epochs = std::min(epochs, rank.epochs.size());
  for (std::size_t e = 0; e < epochs; ++e) {
    std::size_t steps = SIZE_MAX;
    for (const rank_times& rank : ranks) steps = std::min(steps, rank.epochs[e].size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const rank_series& of = ranks[r].epochs[e];
      common[r].insert(common[r].end(), of.begin(),
                       of.begin() + static_cast<rank_series::difference_type>(steps));
    }
  }
  return common;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Whether each fifth of a series is at least 0.4 of its mean.
bool is_lasting(const std::vector<double>& series) {
  constexpr std::size_t parts = 5;
  const double least = 0.4 * mean_of(series);
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t from = p * series.size() / parts;
    const std::size_t to = (p + 1) * series.size() / parts;
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += series[i];
    if (sum < least * static_cast<double>(to - from)) return false;
  }
  return true;
}

/// Compares the steps of all ranks.
class comparison_of_ranks {
 public:
  explicit comparison_of_ranks(const std::vector<rank_times>& ranks)
      : ranks_(ranks), all_(common_steps(ranks)), caused_(ranks.size()) {
    found_.steps = all_.front().size();
    if (found_.steps == 0) return;
    add_means();
    follow_steps();
    find_cause();
    find_others();
  }

  exposed_time take() { return std::move(found_); }

 private:
  double count() const { return static_cast<double>(found_.steps); }

  void add_means() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      exposed_rank& rank = found_.ranks.emplace_back();
      rank.name = ranks_[r].name;
      rank.host = ranks_[r].host;
      rank.dir = ranks_[r].dir;
      rank.workers = ranks_[r].workers;
      double steps = 0;
      for (const rank_step& s : all_[r]) {
        rank.mean.wait_ns += s.wait_ns / count();
        rank.mean.ready_ns += s.ready_ns / count();
        rank.mean.build_ns += s.build_ns / count();
        rank.mean.step_ns += s.step_ns;
        if (s.step_ns > 0) ++steps;
      }
      if (steps > 0) rank.mean.step_ns /= steps;
      if (!ranks_[r].cpu) continue;
      double batches = 0;
      for (const rank_series& epoch : ranks_[r].epochs)
        batches += static_cast<double>(epoch.size());
      const cpu_split& cpu = *ranks_[r].cpu;
      rank.cpu_ns = static_cast<double>(cpu.cpu_ns) / batches;
      if (cpu.run_queue_ns) rank.queue_ns = static_cast<double>(*cpu.run_queue_ns) / batches;
      if (cpu.blocked_ns) rank.blocked_ns = static_cast<double>(*cpu.blocked_ns) / batches;
    }
  }

  /// Finds the rank that waits longest in each step, and whether the ranks end steps together.
  void follow_steps() {
    double cycles = 0;
    double wait_spread_ns = 0;
    double cycle_spread_ns = 0;
    for (std::vector<double>& of : caused_) of.resize(found_.steps);
    for (std::size_t s = 0; s < found_.steps; ++s) {
      std::size_t longest = 0;
      double next_ns = 0;
      double least_ns = all_[0][s].wait_ns;
      double least_cycle_ns = std::numeric_limits<double>::max();
      double cycle_ns = 0;
      for (std::size_t r = 0; r < all_.size(); ++r) {
        const rank_step& of = all_[r][s];
        least_ns = std::min(least_ns, of.wait_ns);
        least_cycle_ns = std::min(least_cycle_ns, of.step_ns > 0 ? of.wait_ns + of.step_ns : 0);
        cycle_ns = std::max(cycle_ns, of.wait_ns + of.step_ns);
        if (r == 0) continue;
        const double before_ns = all_[longest][s].wait_ns;
        next_ns = std::max(next_ns, std::min(before_ns, of.wait_ns));
        if (of.wait_ns > before_ns) longest = r;
      }
      const double wait_ns = all_[longest][s].wait_ns;
      found_.exposed_ns += wait_ns / count();
      caused_[longest][s] = wait_ns - next_ns;
      found_.ranks[longest].longest_share += 1 / count();
      found_.ranks[longest].caused_ns += (wait_ns - next_ns) / count();
      if (least_cycle_ns <= 0) continue;  // the last step of an epoch
      ++cycles;
      found_.cycle_ns += cycle_ns;
      wait_spread_ns += wait_ns - least_ns;
      cycle_spread_ns += cycle_ns - least_cycle_ns;
    }
    if (cycles > 0) found_.cycle_ns /= cycles;
    // A rank that waits longer for its batch ends its step with the others, so that the times of
    // steps with their waits differ less than the waits.
    found_.in_step = 2 * cycle_spread_ns <= wait_spread_ns;
  }

  void find_cause() {
    constexpr double named_share = 0.01;
    if (found_.ranks.size() < 2 || !found_.in_step) return;
    std::vector<std::size_t> order(found_.ranks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::partial_sort(order.begin(), order.begin() + 2, order.end(),
                      [this](std::size_t a, std::size_t b) {
                        return found_.ranks[a].caused_ns > found_.ranks[b].caused_ns;
                      });
    const std::size_t first = order[0];
    if (found_.ranks[first].caused_ns < named_share * found_.cycle_ns) return;
    std::vector<double> more = caused_[first];
    for (std::size_t s = 0; s < found_.steps; ++s) more[s] -= caused_[order[1]][s];
    if (!is_lasting(more) || !is_above_zero(more, 1)) return;
    if (const std::optional<rank_link> link = link_of(first)) {
      found_.cause = first;
      found_.link = *link;
    }
  }

  template <class Value>
  double median_of_others(std::size_t rank, Value value) const {
    std::vector<double> others;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (r != rank) others.push_back(value(r));
    }
    return median_of(std::move(others));
  }

  /// Returns what makes the rank wait, if this is longer than in the other ranks beyond chance.
  std::optional<rank_link> link_of(std::size_t rank) const {
    const double usual_workers = median_of_others(
        rank, [this](std::size_t r) { return static_cast<double>(ranks_[r].workers); });
    const exposed_rank& of = found_.ranks[rank];
    const bool hand_over = 2 * of.mean.ready_ns > of.mean.wait_ns;
    if (!hand_over && static_cast<double>(of.workers) < usual_workers) return rank_link::workers;
    const auto value = hand_over ? &rank_step::ready_ns : &rank_step::build_ns;
    std::vector<double> longer(found_.steps);
    for (std::size_t s = 0; s < found_.steps; ++s) {
      longer[s] = all_[rank][s].*value -
                  median_of_others(rank, [&](std::size_t r) { return all_[r][s].*value; });
    }
    if (!is_above_zero(longer, ranks_.size())) return std::nullopt;
    return hand_over ? rank_link::hand_over : largest_difference(rank);
  }

  /// Returns the part of the time to build a batch that differs most from the other ranks.
  rank_link largest_difference(std::size_t rank) const {
    using part_of_rank = std::pair<std::optional<double> exposed_rank::*, rank_link>;
    constexpr std::array<part_of_rank, 3> parts{{{&exposed_rank::cpu_ns, rank_link::cpu},
                                                 {&exposed_rank::queue_ns, rank_link::queue},
                                                 {&exposed_rank::blocked_ns, rank_link::blocked}}};
    rank_link largest = rank_link::build;
    double most_ns = 0;
    for (const part_of_rank& one : parts) {
      const auto part = [&](std::size_t r) { return (found_.ranks[r].*one.first).value_or(0); };
      const double more_ns = part(rank) - median_of_others(rank, part);
      if (more_ns <= most_ns) continue;
      most_ns = more_ns;
      largest = one.second;
    }
    return largest;
  }

  void find_others() {
    if (found_.ranks.size() < 2) return;
    const std::size_t without = found_.cause.value_or(SIZE_MAX);
    const auto median = [&](auto value) {
      return median_of_others(without, [&](std::size_t r) { return value(found_.ranks[r]); });
    };
    exposed_rank& o = found_.others;
    using rank = const exposed_rank&;
    o.mean.wait_ns = median([](rank r) { return r.mean.wait_ns; });
    o.mean.ready_ns = median([](rank r) { return r.mean.ready_ns; });
    o.mean.build_ns = median([](rank r) { return r.mean.build_ns; });
    o.mean.step_ns = median([](rank r) { return r.mean.step_ns; });
    o.workers =
        static_cast<std::size_t>(median([](rank r) { return static_cast<double>(r.workers); }));
    o.cpu_ns = median([](rank r) { return r.cpu_ns.value_or(0); });
    o.queue_ns = median([](rank r) { return r.queue_ns.value_or(0); });
    o.blocked_ns = median([](rank r) { return r.blocked_ns.value_or(0); });
  }

  const std::vector<rank_times>& ranks_;
  std::vector<rank_series> all_;
  /// For each rank: by how much it waited longer in a step than the next rank, if it waited
  /// longest.
  std::vector<std::vector<double>> caused_;
  exposed_time found_;
};

}  // namespace

rank_times times_of_rank(const run_data& run, std::size_t skip) {
  rank_times found;
  const run_batches& batches = run.batches;
  const std::vector<bool> counted = counted_batches(batches, skip);
  std::set<std::size_t> workers;
  std::optional<cpu_split> cpu = cpu_split{0, 0, 0};
  std::optional<std::uint32_t> epoch;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const batch& b = batches.all()[i];
    const std::optional<std::int64_t> wait_ns = batches.wait_ns(b);
    if (!counted[i] || !wait_ns) continue;
    if (epoch != b.epoch) found.epochs.emplace_back();
    epoch = b.epoch;
    rank_step step;
    step.wait_ns = static_cast<double>(*wait_ns);
    const std::int64_t delay_ns = batches.delay_ns(b).value_or(0);
    step.ready_ns = static_cast<double>(std::clamp<std::int64_t>(delay_ns, 0, *wait_ns));
    step.build_ns = static_cast<double>(batches.service_ns(b));
    step.step_ns = static_cast<double>(batches.step_ns(b.consumed).value_or(0));
    found.epochs.back().push_back(step);
    for (std::uint32_t s = b.first_span; s < b.first_span + b.spans; ++s) {
      const optional_file file = batches.preprocessing_spans()[s].file;
      if (file) workers.insert(file->value());
    }
    const std::optional<cpu_split> spent = preprocessing_cpu(run, b);
    if (!spent) cpu.reset();
    if (cpu) *cpu += *spent;
  }
  found.workers = workers.size();
  found.cpu = cpu;
  return found;
}

bool is_above_zero(const std::vector<double>& series, std::size_t tests) {
  if (series.size() < 2) return false;
  const double mean = mean_of(series);
  double partial = 0;
  double squares = 0;
  for (const double value : series) {
    partial += value - mean;
    squares += partial * partial;
  }
  const auto n = static_cast<double>(series.size());
  // The limit is that of the statistic's exact distribution, within 0.1, for 1 to 10,000 tests: its
  // tail falls by half whenever t grows by 2 ln 2.
  const double limit = 5.4 + 2 * std::log(static_cast<double>(tests));
  return mean > 0 && mean * n * std::sqrt(n) > limit * std::sqrt(squares);
}

exposed_time compare_exposed(const std::vector<rank_times>& ranks) {
  return comparison_of_ranks(ranks).take();
}

const description<exposed_rank>& description_of(const exposed_rank*) {
  using r = const exposed_rank&;
  static const description<exposed_rank> all(
      "exposed_rank", "a rank; times are means per step in ns",
      {
          {"name", &exposed_rank::name, "such as rank 3"},
          {"host", &exposed_rank::host, "its host", if_any},
          {"dir", &exposed_rank::dir, "folder of its logs"},
          {"wait_ns", [](r of) { return of.mean.wait_ns; }, "the consumer's wait for a batch"},
          {"ready_ns", [](r of) { return of.mean.ready_ns; },
           "part of it in which the batch was ready, but not received yet"},
          {"step_ns", [](r of) { return of.mean.step_ns; },
           "the step, in which it also waits for the other ranks"},
          {"longest_share", &exposed_rank::longest_share,
           "share of the steps in which it waited longest, 0 to 1"},
          {"caused_ns", &exposed_rank::caused_ns,
           "how much less would be exposed if it had waited as long as the next rank"},
          {"workers", &exposed_rank::workers, "threads that built batches"},
          {"build_ns", [](r of) { return of.mean.build_ns; }, "time to build a batch"},
          {"cpu_ns", &exposed_rank::cpu_ns, "part of build_ns on a CPU; null if not known"},
          {"run_queue_ns", &exposed_rank::queue_ns, "part of build_ns waiting for a CPU"},
          {"blocked_ns", &exposed_rank::blocked_ns, "part of build_ns blocked"},
      });
  return all;
}

const description<exposed_time>& description_of(const exposed_time*) {
  using e = const exposed_time&;
  static const description<exposed_time> all(
      "exposed_time", "the exposed preparation time of several ranks, with --ranks",
      {
          {"loader", &exposed_time::loader, "name of the loader; absent for the default loader",
           if_any},
          {"steps", &exposed_time::steps, "steps that all ranks have"},
          {"exposed_ns", &exposed_time::exposed_ns,
           "mean of each step's longest wait for a batch, over all ranks, in ns"},
          {"cycle_ns", &exposed_time::cycle_ns, "mean time of a step with its wait, in ns"},
          {"in_step", &exposed_time::in_step, "whether the ranks end their steps together"},
          {"cause",
           [](e of) { return of.cause ? std::optional(of.ranks[*of.cause].name) : std::nullopt; },
           "name of the rank that causes it; null if this may be chance"},
          {"link", [](e of) { return link_names[static_cast<std::size_t>(of.link)]; },
           "what differs there: fewer workers; in building a batch, time on a CPU, waiting for "
           "one, "
           "blocked, or not known which; or the hand-over of batches that are ready",
           words_of(link_names), [](e of) { return of.cause.has_value(); }},
          {"ranks", &exposed_time::ranks, "by rank"},
      });
  return all;
}

}  // namespace lotus::tool
