// Estimates how much a prediction depends on the batches that happened to be in the run.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/parallel.hpp"
#include "replay/block_sampler.hpp"
#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

bool has_items(const recorded_pipeline& p) {
  return std::any_of(p.stages.begin(), p.stages.end(),
                     [](const recorded_stage& s) { return s.of_items; });
}

}  // namespace

void what_if::draw_runs() const {
  block_sampler blocks(recorded_);
  std::mt19937_64 random(2);
  std::normal_distribution<double> slowing(law_.law.slowing, law_.slowing_sd);
  std::uniform_real_distribution<double> slice_factor(0.8, 1.25);
  // Limits the time of all simulations. A sample of a longer run contains only a part of its
  // batches, so it varies more than the run; with so many batches, this makes little difference.
  constexpr std::size_t most_batches = 200'000;
  constexpr std::size_t least_draws = 8;
  constexpr std::uint32_t most_in_draw = most_batches / least_draws;
  const std::size_t draws = std::clamp<std::size_t>(
      most_batches / std::max<std::size_t>(1, recorded_.units.size()), least_draws, 100);
  const bool items = has_items(recorded_);
  for (std::size_t i = 0; i < draws; ++i) {
    drawn_run& run = drawn_.emplace_back();
    if (!items) {
      run.units = recorded_.units.size() > most_in_draw ? blocks.draw(most_in_draw) : blocks.draw();
    }
    run.law = law_.law;
    run.law.slowing = std::max(0.0, slowing(random));
    run.law.turn_ns *= slice_factor(random);
  }
  for_each_in_parallel(draws, unbounded, [&](std::size_t i) {
    drawn_run& run = drawn_[i];
    run.before_per_s = drawn_per_s({}, run.law, run.units);
  });
}

double what_if::drawn_per_s(const pipeline_change& change, const speed_law& law,
                            const drawn_units& units) const {
  const auto& [assumed, base, queued] = explanations_.front();
  return budget_.replay_within(plan(change, law, units, assumed, queued), unrecorded_cpu::stays)
      .per_s();
}

double what_if::drawn_sd(const pipeline_change& change) const {
  if (drawn_.empty()) draw_runs();
  const cpu_range cpus = cpus_with(change);
  pipeline_change asked = change;
  if (others_share_ > 0) asked.cpus.reset();
  std::vector<double> after_per_s(drawn_.size());
  for_each_in_parallel(drawn_.size(), unbounded, [&](std::size_t i) {
    speed_law law = drawn_[i].law;
    if (others_share_ > 0) law.cpus = std::sqrt(cpus.low * cpus.high);
    after_per_s[i] = drawn_per_s(asked, law, drawn_[i].units);
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

}  // namespace lotus::tool
