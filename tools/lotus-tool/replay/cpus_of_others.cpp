// How many CPUs a run gets while other programs use the rest.
#include <algorithm>

#include "replay/change.hpp"
#include "replay/fitted_model.hpp"
#include "replay/speed_law.hpp"

namespace lotus::tool {

double fitted_model::fewest_cpus() const {
  // If other programs used less than this share of the CPUs, assume that they were only the system
  // processes that run on every machine.
  constexpr double many = 0.1;
  const double others = pipeline.others_cpus.value_or(0);
  if (others < many * speed.law.cpus) return 0;
  return std::max(speed.law.cpus - others, many * speed.law.cpus);
}

double fitted_model::wants_more(pipeline_change change) const {
  if (change == pipeline_change{} || threads_after(change) != pipeline.threads()) return 1;
  speed_law law = speed.law;
  law.cpus = change.cpus.value_or(all_cpus);
  change.cpus.reset();
  return replayed_per_s > 0 ? std::max(1.0, replayed_with(change, law, {}).per_s() / replayed_per_s)
                            : 1;
}

fitted_model::cpu_range fitted_model::cpus_with(const pipeline_change& change) const {
  const double recorded_cpus = speed.law.cpus;
  if (share_of_others <= 0) return {recorded_cpus, recorded_cpus};
  const double all = change.cpus.value_or(all_cpus);
  if (speed.law.others > 0) return {all, all};
  const double more =
      static_cast<double>(threads_after(change)) / static_cast<double>(pipeline.threads());
  const double wants = (workers_want * more + consumer_wants) * wants_more(change);
  const double others = (workers_want + consumer_wants) * (all_cpus / recorded_cpus - 1);
  const double obtained = recorded_cpus * all / all_cpus;
  const double fair = all * wants / (wants + others);
  return {std::min(obtained, fair), std::max(obtained, fair)};
}

}  // namespace lotus::tool
