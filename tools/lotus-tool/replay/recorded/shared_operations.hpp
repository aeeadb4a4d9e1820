// Finds operations whose calls may have to wait for each other, for example for a lock or a device,
// and estimates how many of them are served at the same time.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/packed_operations.hpp"
#include "model/run_data.hpp"
#include "replay/recorded/measured_work.hpp"

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

/// Calls `on_call(call, service_ns, has_waited)` for each call, in the order of their ends.
/// `service_ns` is how long the call was served if there were `servers` servers; `has_waited` is
/// whether it waited for one of them.
/// @param for_each_call  calls its argument with each call, in the order of their ends.
template <class ForEachCall, class OnCall>
void for_each_served(std::size_t calls, const ForEachCall& for_each_call, std::size_t servers,
                     const OnCall& on_call) {
  // The ends of the last `servers` calls. The oldest of these ends is the time when a server became
  // free for the next call.
  std::vector<std::int64_t> ends(servers > calls ? 1 : servers, INT64_MIN);
  std::size_t oldest = 0;
  for_each_call([&](const operation_call& c) {
    const std::int64_t free_ns = servers > calls ? INT64_MIN : ends[oldest];
    const std::int64_t served_ns = c.end_ns - std::max(c.start_ns, free_ns);
    on_call(c, static_cast<double>(std::max<std::int64_t>(0, served_ns)), free_ns > c.start_ns);
    ends[oldest] = c.end_ns;
    if (++oldest == ends.size()) oldest = 0;
  });
}

/// How the calls of one operation overlapped.
struct call_overlap {
  std::size_t max_inside = 0;  ///< the maximum number of calls that were open at the same time
  /// alone_ns is the mean duration of the calls that began while no other call was open, with the
  /// ends of its 90 % confidence interval. shared_ns is the mean duration of all other calls. 0: no
  /// such calls.
  double alone_ns = 0;
  double alone_low_ns = 0;
  double alone_high_ns = 0;
  double shared_ns = 0;
  /// Mean time in ns between the ends of two successive calls, while another call was open.
  double gap_ns = 0;

  /// Returns whether calls took significantly longer while other calls were open.
  bool is_slower_when_shared() const { return alone_ns > 0 && shared_ns > 1.1 * alone_high_ns; }
};

/// The calls of one operation, in the order of their ends. A run may have many millions of calls.
/// Each takes about 10 bytes, and 10 more if CPU times are known.
class stored_calls {
 public:
  /// @param cpu_known  whether the CPU times of calls are known; otherwise they are not stored.
  explicit stored_calls(bool cpu_known) : cpu_known_(cpu_known) {}
  /// Adds the calls of one log, except those inside another call (recursion).
  void add_log(std::vector<operation_call> calls);
  /// Call this after all logs were added. The other functions may be called only after it.
  void finish();

  std::size_t size() const noexcept { return size_; }
  double all_ns() const noexcept { return all_ns_; }  ///< duration of all calls
  double cpu_ns() const noexcept { return cpu_ns_; }  ///< CPU time of all calls
  const call_overlap& overlap() const noexcept { return overlap_; }
  /// Consecutive calls from the middle of the run, because the calls at its start and end are not
  /// typical; sorted by their ends.
  const std::vector<operation_call>& window() const noexcept { return window_; }

  /// Calls `on_call(const operation_call&)` for each call. operation_call::file is not set.
  template <class OnCall>
  void for_each(const OnCall& on_call) const {
    reader calls(by_end_);
    while (const operation_call* const c = calls.next()) on_call(*c);
  }
  template <class OnCall>
  void for_each_served(std::size_t servers, const OnCall& on_call) const {
    tool::for_each_served(
        size_, [this](const auto& each) { this->for_each(each); }, servers, on_call);
  }

 private:
  struct packed_calls {
    std::uint32_t file = 0;
    packed_operations spans;  // operation::name is the index of the work
    packed_operations times;  // CPU times and waits for a CPU; empty if there are none

    void push(const operation_call& call, bool cpu_known);
    void finish();
  };
  class reader {
   public:
    explicit reader(const packed_calls& from)
        : file_(from.file), spans_(from.spans), times_(from.times) {}
    /// Moves to the next call; returns nullptr at the end.
    const operation_call* next();
    const operation_call& now() const noexcept { return now_; }  ///< what next() returned

   private:
    std::uint32_t file_;
    packed_operations::reader spans_;
    packed_operations::reader times_;
    operation_call now_;
  };
  template <class Before, class OnCall>
  void merge(Before before, const OnCall& on_call) const;

  bool cpu_known_;
  std::vector<packed_calls> logs_;  // sorted by starts and by ends; empty after finish()
  packed_calls by_end_;             // all calls
  std::size_t size_ = 0;
  double all_ns_ = 0;
  double cpu_ns_ = 0;
  call_overlap overlap_;
  std::vector<operation_call> window_;
};

/// An estimate of how many calls of one operation are served at the same time. A server is a model
/// of whatever a call may have to wait for, such as a lock or a channel of a device.
struct served_at_once {
  /// The numbers of servers, up to call_overlap::max_inside, that fit the recording, in ascending
  /// order. If max_inside is one of them, there may be more servers or no limit at all.
  std::vector<std::size_t> plausible;
  std::size_t likeliest = 0;
};

/// Estimates how many calls are served at the same time, by trying possible numbers of servers. For
/// each number, computes how long each call was served (from its start, or from the time when a
/// server became free, to its end), and the pauses between calls. With these times, simulates a
/// closed loop of threads that call and pause (Lazowska et al., Quantitative System Performance,
/// ch. 6), and compares eight statistics of the simulation with those of the recording. A number of
/// servers is plausible unless one of the statistics is far off. Three further criteria exclude
/// numbers. If all calls are served for about the same time, only the right number of servers leads
/// to computed times that are similar. Calls that were on the CPU at the same time were served at
/// the same time. If calls take much longer while others are open, there must be a limit. The
/// result is deterministic, although the simulations use random numbers.
served_at_once find_served_at_once(const stored_calls& all);

/// An operation that takes a large part of a stage's time, or a stage as a whole.
struct shared_operation {
  std::string name;  ///< name of the operation or stage, as in pipeline_change::faster
  /// Name of the stage in which the operation runs; equals `name` for a stage.
  std::string stage;
  bool is_stage = false;
  /// Calls of the operation; shared, because a recorded_pipeline may be copied.
  std::shared_ptr<const stored_calls> calls;
  /// Share (0..1) of the calls' time during which they were blocked, without waits for a CPU; 1 if
  /// CPU time is unknown.
  double blocked_share = 0;
};

/// Returns at most three operations that take at least a quarter of a stage's time. Adds the stage
/// itself in two cases: if no operation takes half of its time, and if only one thread at a time
/// worked in the stage. In the second case, the recording does not show whether two threads would
/// delay each other.
/// @param work_of    for each span of run_batches::preprocessing_spans(): the index of the work to
///   which the span belongs, if any.
/// @param stage      the stage as in preprocessing_span.
/// @param name       the name of the stage.
/// @param cpu_known  whether the threads' time off the CPU was recorded.
std::vector<shared_operation> shared_operations_of(const run_data& run,
                                                   const std::vector<optional_work>& work_of,
                                                   stage_id stage, const std::string& name,
                                                   bool cpu_known);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_SHARED_OPERATIONS_HPP
