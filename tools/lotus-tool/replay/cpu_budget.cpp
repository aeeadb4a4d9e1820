#include "replay/cpu_budget.hpp"

#include <algorithm>
#include <cmath>

#include "replay/plan.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/replay.hpp"

namespace lotus::tool {

cpu_budget::cpu_budget(const recorded_pipeline& recorded, const replay_plan& planned,
                       double length_ns)
    : recorded_ns_(recorded.recorded_cpu_ns()), unrecorded_ns_(recorded.unrecorded_cpu_ns) {
  // If the run used over 10 % more CPU time than these CPUs can provide, the number of CPUs is
  // wrong or unknown. In this case, leave out the unrecorded CPU time.
  constexpr double inexact = 1.1;
  if (recorded_ns_ + unrecorded_ns_ > inexact * planned.speed.cpus * length_ns) unrecorded_ns_ = 0;
  if (length_ns <= 0) return;
  busy_cpus_ = (recorded_ns_ + unrecorded_ns_) / length_ns;
  const double least_ns = least_length_ns(planned, unrecorded_cpu::stays);
  if (least_ns > length_ns) scale_ = length_ns / least_ns;
}

bool cpu_budget::much_is_unrecorded() const noexcept {
  constexpr double much = 0.05;
  return unrecorded_ns_ > much * recorded_ns_;
}

double cpu_budget::least_length_ns(const replay_plan& planned, unrecorded_cpu unrecorded) const {
  const speed_law& law = planned.speed;
  if (law.cpus <= 0) return 0;
  double alone_ns = planned.cpu_ns();
  if (unrecorded == unrecorded_cpu::stays) {
    alone_ns += planned.share_of_run * unrecorded_ns_ / law.longer(std::min(busy_cpus_, law.cpus));
  }
  return scale_ * alone_ns * law.longer(law.cpus) / law.cpus;
}

replay_result cpu_budget::replay_within(const replay_plan& planned,
                                        unrecorded_cpu unrecorded) const {
  replay_result result = replay(planned);
  const double least_ns = least_length_ns(planned, unrecorded);
  result.last_at_least(least_ns);
  result.busy_ns = std::min(result.whole_ns, least_ns);
  return result;
}

double loss_of_crowding(double threads, double recorded, double cpus) {
  constexpr double loss_of_doubling = 0.07;
  if (cpus <= 0) return 1;
  const double more = std::max(cpus, threads) / std::max(cpus, recorded);
  return more > 1 ? std::pow(1 - loss_of_doubling, std::log2(more)) : 1;
}

}  // namespace lotus::tool
