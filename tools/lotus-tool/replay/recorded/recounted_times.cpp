#include "replay/recorded/recounted_times.hpp"

#include <algorithm>

#include "replay/recorded/measured_work.hpp"
#include "replay/recorded/recorded_parts.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

recorded_pipeline on_cpus(recorded_pipeline p, double cpus) {
  const auto threads = static_cast<double>(p.threads());
  const double share = std::min(1.0, cpus / threads);
  for (measured_work& w : p.works) w = {share * w.blocked_ns, 0, 0, std::min(cpus, threads)};
  for (recorded_part& part : p.parts) {
    part.cpu_ns = share * part.blocked_ns;
    part.blocked_ns = 0;
  }
  p.shared.clear();  // assume that calls wait only for CPUs, not for each other
  return p;
}

recorded_pipeline with_queueing(recorded_pipeline p) {
  const auto keep = [](auto& what) { what.blocked_ns += what.queued_ns; };
  for (measured_work& w : p.works) keep(w);
  for (measured_work& w : p.steps) keep(w);
  return p;
}

}  // namespace lotus::tool
