// Starts and stops recording, for the whole run or for selected steps.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/options.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/record/hub.hpp"
#else
  #include "lotus/record/unsupported.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Starts recording; see options. Records all scopes that end from now on, on every thread, also
/// those of other shared objects of this process and of children it forks. Takes at most 5 ms: if
/// recovering the records of processes that died takes longer, it continues in the background.
/// @return false, after one message with the reason, if the directory cannot be written; the
/// program can go on and is just not recorded. Also true if the same recording is running already.
/// Thread safety: all functions here may be called on any thread.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Starts recording with step 0 of a schedule. Only its active steps are recorded: each range of
/// consecutive active steps goes into a folder of its own, `steps_<first>_<last>`, in the directory
/// of `log_file`; lotus-tool reads it as a run. On every thread, what begins and ends within the
/// range is recorded. A process forked within the range records into that folder until it calls
/// step() itself.
/// @return false, after one message with the reason, if the schedule has no active steps; if step 0
/// is active, also for the reasons given above.
inline bool start(const options& chosen, const schedule& steps) {
  steps.on_trace_ready.keep();
  return detail::join_session(false).start_steps(chosen, steps);
}

/// The same with only a `log_file`.
inline bool start(std::string_view log_file, const schedule& steps) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen, steps);
}

/// Ends the current step and begins the next; does nothing without a schedule. When a range of
/// active steps ends, writes all its records and calls on_trace_ready. Thread safety: any thread;
/// the steps of all threads are counted together.
inline void step() {
  detail::step_notice notice;
  if (detail::join_session(true).step(notice)) notice.listener(notice.folder);
}

/// Writes all records that are complete so far to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Stores a copy of what is recorded so far in a run folder of its own next to the run's,
/// `<run>.snapshot-<UTC>-<reason>`, which lotus-tool reads. It holds all complete records of this
/// process, and what other processes of the run have drained. No recording thread has to wait. The
/// oldest snapshots are deleted if all together would exceed options::snapshots_bytes.
/// @param reason  letters, digits, '.', '-' and '_'; others become '-'. Only the first 64 bytes
/// count.
/// @return false, after a message with the reason, if nothing is being recorded, if there is no
/// room, or if another snapshot is being taken.
inline bool snapshot(std::string_view reason) noexcept {
  return detail::join_session(true).snapshot(reason.data(), reason.size());
}

/// Ends recording and writes all records. Scopes that are still open are not recorded. Calls
/// on_trace_ready if active steps of a schedule are being recorded. start() may be called again.
inline void stop() {
  detail::step_notice notice;
  if (detail::join_session(false).stop(notice)) notice.listener(notice.folder);
}

/// Returns how many records this process has lost: dropped by choice (full_ring::drop), because
/// neither disk nor memory could hold them, or because the batch number was 2^56 or more.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP
