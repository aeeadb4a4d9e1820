// Estimates a rate from the times of events by fitting a line.
#ifndef LOTUS_TOOL_BASE_STATISTICS_TREND_HPP
#define LOTUS_TOOL_BASE_STATISTICS_TREND_HPP

namespace lotus::tool {

/// Estimates the mean time between successive events: the slope of the least-squares line through
/// the times of the events. Events may be in several groups, such as epochs, which have lines of
/// their own with one common slope.
///
/// For example, w workers that begin together finish batches in bursts of w. For n such events, the
/// relative error of the slope is about (w / n)^2. The time between the first and the last event,
/// divided by the number of intervals, would have a relative error of w / n.
class trend {
 public:
  /// Adds the next event of the current group. Within a group, times must be in ascending order.
  void add(double time_ns) noexcept {
    if (count_ == 0) first_ns_ = time_ns;
    const double later_ns = time_ns - first_ns_;
    sum_ns_ += later_ns;
    weighted_ns_ += count_ * later_ns;
    ++count_;
  }

  /// Ends a group, so that the next event begins another one.
  void end_group() noexcept {
    const double middle = 0.5 * (count_ - 1);
    if (count_ > 1) {
      together_ns_ += weighted_ns_ - middle * sum_ns_;
      squares_ += count_ * (count_ * count_ - 1) / 12;
    }
    count_ = sum_ns_ = weighted_ns_ = 0;
  }

  /// Adds the groups of another trend. Call end_group() for both objects before.
  trend& operator+=(const trend& other) noexcept {
    together_ns_ += other.together_ns_;
    squares_ += other.squares_;
    return *this;
  }

  /// Multiplies the times of all events by `factor`. Call end_group() for the last group before.
  void stretch(double factor) noexcept { together_ns_ *= factor; }

  /// Returns the mean time between events; 0 if no group has two events at different times.
  double interval_ns() const noexcept { return squares_ > 0 ? together_ns_ / squares_ : 0; }
  /// Returns events per second; 0 if interval_ns() is 0.
  double per_s() const noexcept { return together_ns_ > 0 ? squares_ * 1e9 / together_ns_ : 0; }

 private:
  // For the current group: the number of events and the time of the first event. Then two sums over
  // its events, with times relative to the first event: of the times, and of index * time.
  double count_ = 0;
  double first_ns_ = 0;
  double sum_ns_ = 0;
  double weighted_ns_ = 0;
  // Sums over the events of all groups that have ended: of x * time, and of x * x, where x is the
  // event's index in its group minus the mean of these indices.
  double together_ns_ = 0;
  double squares_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_STATISTICS_TREND_HPP
