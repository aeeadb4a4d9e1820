#include "model/pipeline/off_cpu.hpp"

#include <algorithm>
#include <utility>

namespace lotus::tool {

cpu_split& cpu_split::operator+=(const cpu_split& other) {
  cpu_ns += other.cpu_ns;
  const auto add = [](std::optional<std::int64_t>& to, const std::optional<std::int64_t>& n) {
    to = to && n ? std::optional(*to + *n) : std::nullopt;
  };
  add(run_queue_ns, other.run_queue_ns);
  add(blocked_ns, other.blocked_ns);
  return *this;
}

off_cpu_time::off_cpu_time(std::vector<off_cpu_interval> lines, cpu_measure measure)
    : intervals_(std::move(lines)), measure_(measure) {
  std::sort(
      intervals_.begin(), intervals_.end(),
      [](const off_cpu_interval& a, const off_cpu_interval& b) { return a.end_ns < b.end_ns; });
  std::int64_t last_ns = INT64_MIN;
  for (off_cpu_interval& s : intervals_) {
    s.start_ns = std::max(s.start_ns, last_ns);
    s.run_queue_ns = std::min(s.run_queue_ns, s.duration_ns());
    last_ns = s.end_ns;
  }
  sums at;
  sums_.reserve(intervals_.size() + 1);
  for (const off_cpu_interval& s : intervals_) {
    sums_.push_back(at);
    at.off_ns += s.duration_ns();
    (s.run_queue_ns < 0 ? at.unknown_ns : at.run_queue_ns) +=
        s.run_queue_ns < 0 ? s.duration_ns() : s.run_queue_ns;
  }
  sums_.push_back(at);
}

off_cpu_time::sums off_cpu_time::before(std::int64_t time_ns) const {
  // Find the first interval that ends after time_ns. Try the result of the last call and the
  // interval after it before searching all intervals.
  const std::size_t count = intervals_.size();
  const auto is_it = [&](std::size_t i) {
    return (i == 0 || intervals_[i - 1].end_ns <= time_ns) &&
           (i == count || intervals_[i].end_ns > time_ns);
  };
  std::size_t at = std::min(__atomic_load_n(&hint_, __ATOMIC_RELAXED), count);
  if (!is_it(at) && !(at < count && is_it(++at))) {
    at = static_cast<std::size_t>(
        std::upper_bound(intervals_.begin(), intervals_.end(), time_ns,
                         [](std::int64_t t, const off_cpu_interval& s) { return t < s.end_ns; }) -
        intervals_.begin());
  }
  __atomic_store_n(&hint_, at, __ATOMIC_RELAXED);
  sums sum = sums_[at];
  if (at == count || intervals_[at].start_ns >= time_ns) return sum;
  const off_cpu_interval& s = intervals_[at];
  const std::int64_t part_ns = time_ns - s.start_ns;
  sum.off_ns += part_ns;
  if (s.run_queue_ns < 0) {
    sum.unknown_ns += part_ns;
  } else {
    sum.run_queue_ns += std::max<std::int64_t>(0, s.run_queue_ns - (s.end_ns - time_ns));
  }
  return sum;
}

cpu_split off_cpu_time::split(std::int64_t start_ns, std::int64_t end_ns) const {
  const sums first = before(start_ns);
  const sums last = before(end_ns);
  cpu_split of;
  const std::int64_t off_ns = last.off_ns - first.off_ns;
  of.cpu_ns = end_ns - start_ns - off_ns;
  if (last.unknown_ns == first.unknown_ns) {
    of.run_queue_ns = std::min(last.run_queue_ns - first.run_queue_ns, off_ns);
    of.blocked_ns = off_ns - *of.run_queue_ns;
  }
  return of;
}

}  // namespace lotus::tool
