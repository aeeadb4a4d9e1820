#include <algorithm>

#include "base/terminal/table.hpp"
#include "commands/top/live_runs.hpp"
#include "describe/description.hpp"

namespace lotus::tool {
namespace {

std::optional<std::string> ago(std::int64_t looked_ns, std::optional<std::int64_t> ns) {
  if (!ns) return std::nullopt;
  return human_time(std::max<std::int64_t>(looked_ns - *ns, 0)) + " ago";
}

/// Returns the operation's time as a share of the window: eight busy threads are 800 %. A call
/// counts in full even if it began before the window, so the result is limited to 100 % per thread.
double share_of_the_time(const live_operation& op) {
  const double of = static_cast<double>(op.self_ns) / 1e9 / op.interval_s;
  return of < 1 || op.threads == 0 ? of : std::min(of, static_cast<double>(op.threads));
}

std::optional<double> last_batch_s(const live_run& run) {
  if (!run.last_batch_ns) return std::nullopt;
  return static_cast<double>(*run.last_batch_ns) / 1e9;
}

double mean_ns(const live_operation& op) {
  return static_cast<double>(op.total_ns) /
         static_cast<double>(std::max<std::uint64_t>(op.calls, 1));
}

}  // namespace

std::string_view words_of(run_state state) {
  constexpr std::string_view words[] = {"-", "running", "was killed", "has ended"};
  return words[static_cast<std::size_t>(state)];
}

const description<live_operation>& description_of(const live_operation*) {
  using op = const live_operation&;
  constexpr unit time = unit::time_ns;
  static const description<live_operation> all(
      "live_operation", "an operation in the last seconds",
      {
          {"", &live_operation::self_ns, "time of its own", column{"self time", time}},
          {"", share_of_the_time, "the same, as a share", column{"% of", unit::whole_share, 5}},
          {"", [](op of) { return value_of(of, live_order::calls); }, "calls per second",
           column{"calls/s", unit::three_digits, 4}},
          {"", &live_operation::total_ns, "time of all calls", column{"total", time, 3}},
          {"", mean_ns, "mean time of a call", column{"mean", time, 1}},
          {"", &live_operation::max_ns, "time of the longest call", column{"max", time, 2}},
      });
  return all;
}

const description<live_stage>& description_of(const live_stage*) {
  using s = const live_stage&;
  constexpr unit share = unit::whole_share;
  static const description<live_stage> all(
      "live_stage", "a stage in the last seconds",
      {
          {"", &live_stage::threads, "its threads", column{"threads"}},
          {"", &live_stage::per_s, "results per second", column{"finished/s", unit::three_digits}},
          {"", [](s of) { return of.shares.busy; }, "time with work", column{"busy", share}},
          {"", [](s of) { return of.shares.starved; }, "time without input",
           column{"no input", share}},
          {"", [](s of) { return of.shares.blocked; }, "time without room for results",
           column{"queue full", share}},
          {"", &live_stage::queued, "results that wait", column{"queued results"}},
      });
  return all;
}

const description<live_batch>& description_of(const live_batch*) {
  using b = const live_batch&;
  constexpr unit time = unit::time_ns;
  static const description<live_batch> all(
      "live_batch", "a batch of the last seconds",
      {
          {"", &live_batch::preprocessing_ns, "time to build it", column{"preprocess", time}},
          {"", &live_batch::wait_ns, "the consumer's wait for it", column{"consumer waited", time}},
          {"", [](b of) { return ago(of.looked_ns, of.received_ns); }, "when it was received",
           column{"received"}},
      });
  return all;
}

const description<live_run>& description_of(const live_run*) {
  using r = const live_run&;
  const column none;  // only metrics have the value
  static const description<live_run> all(
      "live_run", "the last seconds of a run",
      {
          {"lotus_recording", [](r of) { return of.state() == run_state::running; },
           "Whether a process of the run is recording, 1 or 0.", none},
          {"lotus_window_seconds", [](r of) { return of.now.window_s; },
           "Length of the period that rates and shares are about.", none},
          {"lotus_batches_per_second", [](r of) { return of.now.batches_per_s; },
           "Batches that the consumer received.", column{"batches/s", unit::three_digits}},
          {"lotus_wait_ratio", [](r of) { return of.now.wait_share; },
           "Share of the consumer's time in which it waited for a batch, 0 to 1.",
           column{"consumer waits", unit::whole_share}},
          {"lotus_ready_batches", [](r of) { return static_cast<double>(of.now.ready); },
           "Batches that are ready and not yet received.", column{"batches ready", unit::plain, 2}},
          {"lotus_operations_per_second", [](r of) { return of.now.operations_per_s; },
           "Operations that were recorded.", none},
          {"lotus_aggregated_calls_per_second", [](r of) { return of.now.aggregated_per_s; },
           "Operations that were counted instead of recorded.", none},
          {"lotus_last_batch_timestamp_seconds", last_batch_s,
           "When the last batch was received, since the epoch.", none},
          {"", [](r of) { return ago(of.looked_ns, of.last_batch_ns); },
           "when the last batch was received", column{"last batch", unit::plain, 3}},
          {"lotus_hanging", [](r of) { return of.hang().has_value(); },
           "Whether a wait or pause is much longer than is usual, 1 or 0.", none},
          {"lotus_dropped_records", [](r of) { return static_cast<double>(of.records.dropped); },
           "Records that the run's processes dropped, counted when they end.", none},
          {"lotus_lost_records", [](r of) { return static_cast<double>(of.records.lost); },
           "Records that were only in the memory of killed processes.", none},
          {"", [](r of) { return words_of(of.state()); }, "state of its process",
           column{"process", unit::plain, 1}},
      });
  return all;
}

}  // namespace lotus::tool
