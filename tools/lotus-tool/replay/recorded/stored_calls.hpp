// Stores the calls of one operation compactly, in the order of their ends.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_STORED_CALLS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_STORED_CALLS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/packed_operations.hpp"

namespace lotus::tool {

/// A call of an operation, or all work of a stage on one batch or item. If the call waited for a
/// CPU, `start_ns` is moved later by this time, because it was not a wait for a server.
struct operation_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t file = 0;  ///< index of the log of the call's thread
  std::uint32_t work = 0;  ///< index of the work in recorded_pipeline::works
  double cpu_ns = 0;
  double queued_ns = 0;  ///< time in ns during which the call waited for a CPU
};

/// Returns how long a call was served, in ns, if the server became free at `free_ns`.
inline double service_ns(const operation_call& c, std::int64_t free_ns) noexcept {
  return static_cast<double>(std::max<std::int64_t>(0, c.end_ns - std::max(c.start_ns, free_ns)));
}

/// Returns how long each call was served, in ns, if there were `servers` servers.
/// @param calls  the calls, sorted by their ends.
std::vector<double> service_times(const std::vector<operation_call>& calls, std::size_t servers);

/// The calls of one operation, except those inside another call of the same operation (recursion).
/// A run may have many millions of calls. Each takes about 20 bytes, and 10 more if CPU times are
/// known.
class stored_calls {
 public:
  /// @param cpu_known  whether the CPU times of calls are known; otherwise they are not stored.
  explicit stored_calls(bool cpu_known);

  /// Adds a call. Add the calls of each log one after another, not mixed with those of other logs.
  void add(const operation_call& call);
  /// Call this after all calls were added. The other functions may be called only after it.
  void finish();

  std::size_t size() const noexcept { return size_; }
  double all_ns() const noexcept { return all_ns_; }  ///< duration of all calls
  double cpu_ns() const noexcept { return cpu_ns_; }  ///< CPU time of all calls

  /// Calls `on_call(const operation_call&)` for each call, in the order of their ends.
  /// operation_call::file is not set.
  template <class OnCall>
  void for_each(OnCall&& on_call) const {
    packed_operations::reader times(times_);
    by_end_.for_each([&](const operation& op) {
      operation_call c;
      c.start_ns = op.start_ns;
      c.end_ns = op.end_ns();
      c.work = op.name;
      if (cpu_known_) add_times(c, *times.next());
      on_call(c);
    });
  }

  /// Calls `on_call(const operation_call&, service_ns, has_waited)` for each call, in the order of
  /// their ends. `service_ns` is how long the call was served if there were `servers` servers;
  /// `has_waited` is whether it waited for one of them.
  template <class OnCall>
  void for_each_served(std::size_t servers, OnCall&& on_call) const {
    // The ends of the last `servers` calls. The oldest of these ends is the time when a server
    // became free for the next call.
    std::vector<std::int64_t> ends(servers > size_ ? 1 : servers, INT64_MIN);
    std::size_t oldest = 0;
    for_each([&](const operation_call& c) {
      const std::int64_t free_ns = servers > size_ ? INT64_MIN : ends[oldest];
      on_call(c, service_ns(c, free_ns), free_ns > c.start_ns);
      ends[oldest] = c.end_ns;
      if (++oldest == ends.size()) oldest = 0;
    });
  }

  /// Consecutive calls from the middle of the run, because the calls at its start and end are not
  /// typical; sorted by their ends.
  const std::vector<operation_call>& window() const noexcept { return window_; }

  /// Readers of the starts and durations of all calls, in the order of their ends and starts.
  packed_operations::reader by_end() const { return packed_operations::reader(by_end_); }
  packed_operations::reader by_start() const { return packed_operations::reader(by_start_); }

 private:
  /// The calls of one log, sorted by their ends and also by their starts.
  struct log_calls {
    std::uint32_t file = 0;
    std::size_t count = 0;
    packed_operations spans;  // operation::name is the index of the work
    packed_operations times;  // CPU times; see add_times()
  };
  class log_reader;

  static void add_times(operation_call& to, const operation& times) {
    to.cpu_ns = static_cast<double>(times.start_ns);
    to.queued_ns = static_cast<double>(times.duration_ns);
  }
  void begin_log(std::uint32_t file);
  void end_log();
  void push(const operation_call& call);
  void store(const operation_call& call, packed_operations& spans, packed_operations& times) const;
  template <class Before, class OnCall>
  void merge(Before before, OnCall on_call) const;

  bool cpu_known_;
  std::vector<log_calls> logs_;  // empty after finish()
  operation_call last_;          // the call that was stored last
  // All calls of the last log, if they are not in the order of their starts and ends.
  std::vector<operation_call> unsorted_;

  std::size_t size_ = 0;
  double all_ns_ = 0;
  double cpu_ns_ = 0;
  packed_operations by_end_;    // operation::name is the index of the work
  packed_operations times_;     // the CPU times of these calls; see add_times()
  packed_operations by_start_;  // without names
  std::vector<operation_call> window_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_STORED_CALLS_HPP
