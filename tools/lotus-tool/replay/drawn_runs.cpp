// Estimates how much a prediction depends on the batches that happened to be in the run.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "base/parallel.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

/// Draws random samples of a run's batches, with repetition (a block bootstrap). Predictions from
/// several samples show how much a prediction depends on chance. Draws blocks of successive
/// batches, because successive batches are similar and not independent.
class block_sampler {
 public:
  explicit block_sampler(const recorded_pipeline& p) : p_(p) {}

  /// Draws a sample for each epoch from the batches of the epoch.
  drawn_units draw() {
    drawn_units drawn(p_.units.size());
    for (const planned_epoch& e : p_.epochs) {
      draw_into(drawn, e.first_unit, e.end_unit, e.first_unit, e.end_unit);
    }
    return drawn;
  }

  /// Draws a sample of `count` batches, fewer than the run has, from all batches of the run.
  drawn_units draw(std::uint32_t count) {
    drawn_units drawn(count);
    draw_into(drawn, 0, count, 0, static_cast<std::uint32_t>(p_.units.size()));
    return drawn;
  }

 private:
  /// Fills the elements [begin, end) of `drawn` with blocks of the units [first, last).
  void draw_into(drawn_units& drawn, std::uint32_t begin, std::uint32_t end, std::uint32_t first,
                 std::uint32_t last) {
    if (first == last) return;
    const std::uint32_t count = end - begin;
    const auto length = std::max<std::uint32_t>(
        1, std::min<std::uint32_t>(count / 5, static_cast<std::uint32_t>(std::sqrt(count))));
    for (std::uint32_t at = 0; at < count; at += length) {
      const std::uint32_t from =
          std::uniform_int_distribution<std::uint32_t>(0, last - first - 1)(random_);
      for (std::uint32_t i = 0; i < length && at + i < count; ++i) {
        drawn[begin + at + i] = first + (from + i) % (last - first);
      }
    }
  }

  const recorded_pipeline& p_;
  std::mt19937_64 random_{1};
};

bool has_items(const recorded_pipeline& p) {
  return std::any_of(p.stages.begin(), p.stages.end(),
                     [](const recorded_stage& s) { return s.of_items; });
}

}  // namespace

drawn_runs::drawn_runs(const fitted_model& of) : of_(of) {
  const recorded_pipeline& pipeline = of.pipeline;
  const estimated_law& speed = of.speed;
  block_sampler blocks(pipeline);
  std::mt19937_64 random(2);
  std::normal_distribution<double> slowing(speed.law.slowing, speed.slowing_sd);
  std::uniform_real_distribution<double> slice_factor(0.8, 1.25);
  // Limits the time of all simulations. A sample of a longer run contains only a part of its
  // batches, so it varies more than the run; with so many batches, this makes little difference.
  constexpr std::size_t most_batches = 200'000;
  constexpr std::size_t least_draws = 8;
  constexpr std::uint32_t most_in_draw = most_batches / least_draws;
  const std::size_t draws = std::clamp<std::size_t>(
      most_batches / std::max<std::size_t>(1, pipeline.units.size()), least_draws, 100);
  const bool items = has_items(pipeline);
  for (std::size_t i = 0; i < draws; ++i) {
    drawn_run& run = drawn_.emplace_back();
    if (!items) {
      run.units = pipeline.units.size() > most_in_draw ? blocks.draw(most_in_draw) : blocks.draw();
    }
    run.law = speed.law;
    run.law.slowing = std::max(0.0, slowing(random));
    run.law.turn_ns *= slice_factor(random);
  }
  for_each_in_parallel(draws, unbounded, [&](std::size_t i) {
    drawn_run& run = drawn_[i];
    run.before_per_s = per_s({}, run.law, run.units);
  });
}

double drawn_runs::per_s(const pipeline_change& change, const speed_law& law,
                         const drawn_units& units) const {
  const auto& [assumed, base, queued] = of_.explanations.front();
  return of_.budget
      .replay_within(of_.plan(change, law, units, assumed, queued), unrecorded_cpu::stays)
      .per_s();
}

double drawn_runs::sd(const pipeline_change& change) const {
  const fitted_model::cpu_range cpus = of_.cpus_with(change);
  pipeline_change asked = change;
  if (of_.share_of_others > 0) asked.cpus.reset();
  std::vector<double> after_per_s(drawn_.size());
  for_each_in_parallel(drawn_.size(), unbounded, [&](std::size_t i) {
    speed_law law = drawn_[i].law;
    if (of_.share_of_others > 0) law.cpus = std::sqrt(cpus.low * cpus.high);
    after_per_s[i] = per_s(asked, law, drawn_[i].units);
  });
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    const double before = drawn_[i].before_per_s;
    if (before <= 0 || after_per_s[i] <= 0) continue;
    const double log_gain = std::log(after_per_s[i] / before);
    sum += log_gain;
    squares += log_gain * log_gain;
  }
  const auto n = static_cast<double>(drawn_.size());
  return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
}

double what_if::drawn_sd(const pipeline_change& change) const {
  std::call_once(drawing_, [this] {
    const fitted_model& model = *this;
    drawn_ = std::make_unique<drawn_runs>(model);
  });
  return drawn_->sd(change);
}

}  // namespace lotus::tool
