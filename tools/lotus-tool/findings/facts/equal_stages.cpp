#include "findings/facts/equal_stages.hpp"

#include <algorithm>
#include <cmath>

#include "findings/gains.hpp"

namespace lotus::tool {

std::vector<const stage_figures*> equal_stages(const diagnosis& d) {
  // With a larger difference, making the slowest one faster alone would be worth suggesting.
  constexpr double nearly = 1 + worthwhile;
  std::vector<const stage_figures*> slowest;
  double least = d.consumer_capacity.value_or(HUGE_VAL) / nearly;
  for (const stage_figures& s : d.stages) least = std::min(least, s.batches_per_s.value_or(least));
  for (const stage_figures& s : d.stages) {
    const bool is_own = !s.pool && s.stage != preprocess_stage;
    if (is_own && s.batches_per_s && *s.batches_per_s <= nearly * least) slowest.push_back(&s);
  }
  constexpr double roughly = 1.1;  // start and end of the run are slower
  const bool limit = !d.pushed && d.achieved && *d.achieved * roughly >= least;
  return limit && slowest.size() > 1 ? slowest : std::vector<const stage_figures*>();
}

std::vector<pipeline_change> changes_of_all(const std::vector<const stage_figures*>& stages) {
  pipeline_change faster;
  pipeline_change threads;
  for (const stage_figures* const s : stages) {
    faster.faster[s->name] = 2;
    threads.threads[s->name] = 2 * s->slots;
  }
  if (stages.empty()) return {};
  return {faster, threads};
}

}  // namespace lotus::tool
