// Draws random samples of a run's batches, to estimate how uncertain a prediction is.
#ifndef LOTUS_TOOL_REPLAY_BLOCK_SAMPLER_HPP
#define LOTUS_TOOL_REPLAY_BLOCK_SAMPLER_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "replay/change.hpp"
#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_BLOCK_SAMPLER_HPP
