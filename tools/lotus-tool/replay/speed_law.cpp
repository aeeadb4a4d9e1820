#include "replay/speed_law.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace lotus::tool {

double speed_law::longer(double busy) const noexcept {
  if (cpus <= 1 || busy <= 1) return 1;
  return 1 + slowing * (std::min(busy, cpus) - 1) / (cpus - 1);
}

double speed_law::speed(double running) const noexcept {
  if (cpus <= 0 || running <= 0) return 1;
  const double all = running + others;
  return std::min(1.0, cpus / all) / longer(all);
}

namespace {

struct point {
  double others_busy = 0;  // share of the other CPUs that were busy, 0..1
  double at_first = 0;     // the same share, measured over the first moments of the work
  double cpu_ns = 0;
};

/// Sums for a regression with an instrumental variable (see estimate_speed()). For each work, x is
/// the share of other CPUs that were busy, y is the CPU time, and z, the instrument, is the share
/// of other CPUs that were busy in the first moments. All values are relative to the mean of their
/// stage.
struct centered_sums {
  double zz = 0;
  double zx = 0;
  double zy = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double x_mean = 0;
  std::size_t count = 0;
  std::size_t groups = 0;

  void add(const std::vector<point>& group) {
    double x = 0;
    double y = 0;
    double z = 0;
    for (const point& p : group) {
      x += p.others_busy;
      y += p.cpu_ns;
      z += p.at_first;
    }
    const auto n = static_cast<double>(group.size());
    x /= n;
    y /= n;
    z /= n;
    if (y <= 0) return;
    for (const point& p : group) {
      const double dx = p.others_busy - x;
      const double dy = p.cpu_ns / y - 1;
      const double dz = p.at_first - z;
      zz += dz * dz;
      zx += dz * dx;
      zy += dz * dy;
      xx += dx * dx;
      xy += dx * dy;
      yy += dy * dy;
    }
    x_mean += n * x;
    count += group.size();
    ++groups;
  }
};

/// Returns the mean number of busy CPUs during the tenth of the work with the most busy CPUs.
/// Counts by CPU time: while a short work ran, a thread that had just lost its CPU may seem to run
/// as well.
double max_busy(const std::vector<const recorded_pipeline*>& pipelines) {
  std::vector<std::pair<double, double>> busy;  // number of busy CPUs, and CPU time of the work
  double all_ns = 0;
  for (const recorded_pipeline* p : pipelines) {
    for (const measured_work& w : p->works) {
      if (w.cpu_ns <= 0) continue;
      busy.emplace_back(w.others_busy + w.on_cpu(), w.cpu_ns);
      all_ns += w.cpu_ns;
    }
  }
  std::sort(busy.rbegin(), busy.rend());
  double sum = 0;
  double left_ns = 0.1 * all_ns;
  for (const auto& [cpus, ns] : busy) {
    const double counted_ns = std::min(ns, left_ns);
    sum += counted_ns * cpus;
    left_ns -= counted_ns;
  }
  return all_ns > 0 ? sum / (0.1 * all_ns) : 0;
}

}  // namespace

estimated_law estimate_speed(const std::vector<const recorded_pipeline*>& pipelines, double cpus) {
  constexpr double usual = 0.06;
  constexpr double usual_sd = 0.08;
  estimated_law found;
  found.max_busy = max_busy(pipelines);
  // If clearly more than `cpus` CPUs were busy at the same time, `cpus` must be wrong.
  if (cpus > 0 && found.max_busy > 1.5 * cpus) cpus = std::ceil(found.max_busy);
  found.law = {cpus, cpus > 1 ? usual : 0};
  found.slowing_sd = cpus > 1 ? usual_sd : 0;
  if (cpus <= 1) return found;
  std::map<std::string, std::vector<point>> by_stage;
  for (const recorded_pipeline* p : pipelines) {
    for (const planned_unit& u : p->units) {
      for (std::uint32_t s = u.first_stage; s < u.end_stage; ++s) {
        const measured_work& w = p->works[u.first_work + (s - u.first_stage)];
        if (w.cpu_ns <= 0) continue;
        const auto share = [cpus](double others) { return std::min(others / (cpus - 1), 1.0); };
        by_stage[p->stages[s].name].push_back(
            {share(w.others_busy), share(w.others_at_first), w.cpu_ns});
      }
    }
  }
  centered_sums sums;
  for (const auto& [name, points] : by_stage) sums.add(points);
  // The slope can be estimated only if the load of the other CPUs varied, so the variance of the
  // load must be at least `min_variance`.
  constexpr double min_variance = 1e-4;
  const auto count = static_cast<double>(sums.count);
  if (sums.count < sums.groups + 8 || sums.zz < min_variance * count || sums.zx <= 0) {
    return found;
  }
  const auto freedom = static_cast<double>(sums.count - sums.groups - 1);
  const double slope = sums.zy / sums.zx;
  // The fitted line has the value 1 at the mean load, but the speed law has the value 1 if no other
  // CPU is busy. Therefore divide the slope by the value of the line at no load.
  const double at_none = std::max(0.5, 1 - slope * sums.x_mean / count);
  const double slowing = slope / at_none;
  const double left = std::max(0.0, sums.yy - 2 * slope * sums.xy + slope * slope * sums.xx);
  // Standard deviation of an error that the fit does not show: at times of a higher load, the work
  // itself may differ.
  constexpr double unseen_sd = 0.04;
  const double sd = std::hypot(std::sqrt(left / freedom * sums.zz) / sums.zx / at_none, unseen_sd);
  found.levels_seen = sd < usual_sd;
  const double weight = 1 / (sd * sd);
  const double usual_weight = 1 / (usual_sd * usual_sd);
  found.law.slowing =
      std::clamp((slowing * weight + usual * usual_weight) / (weight + usual_weight), 0.0, 1.0);
  found.slowing_sd = 1 / std::sqrt(weight + usual_weight);
  return found;
}

cpu_budget::cpu_budget(const recorded_pipeline& recorded, const replay_plan& planned,
                       double length_ns)
    : recorded_ns_(recorded.all_work().cpu_ns), unrecorded_ns_(recorded.unrecorded_cpu_ns) {
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
