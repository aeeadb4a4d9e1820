// Provides the functions that start and stop recording, and that control a running recording.
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

/// Starts recording. From then on all scopes that end are recorded: on every thread, in all shared
/// objects of this process, and in the processes that it forks. Takes at most 5 ms; the recovery of
/// records that dead processes left may continue in the background.
/// @return true if the process is now recording with the log_file of `chosen`, even if an earlier
/// call started the recording. false if it is not, for example because the directory cannot be
/// written; a message reports the reason, and the program can continue without being recorded.
/// Thread safety: any thread may call all functions in this file.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`, with default
/// options; see start(options). Throws std::bad_alloc if there is no memory for a copy of the text.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Starts recording according to a schedule, at step 0. Only active steps are recorded. Each range
/// of consecutive active steps gets a run directory of its own, `steps_<first>_<last>`, in the
/// directory of `log_file`. That run directory contains all spans that begin and end within the
/// range. A process forked within the range records to the same directory until it calls step()
/// itself.
/// @return false, after one message with the reason, if the schedule has no active steps, or if
/// step 0 is active and start(options) would return false. Both structs are copied; copies share
/// the function of on_trace_ready, which is never destroyed.
inline bool start(const options& chosen, const schedule& steps) {
  steps.on_trace_ready.keep();
  return detail::join_session(false).start_steps(chosen, steps);
}

/// Starts recording according to a schedule, with default options except for `log_file`.
inline bool start(std::string_view log_file, const schedule& steps) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen, steps);
}

/// Ends the current step of the schedule and begins the next one; does nothing without a schedule.
/// At the end of a range of active steps, writes all records and calls on_trace_ready, whose
/// exceptions propagate. Thread safety: any thread; the calls of all threads are counted together.
inline void step() {
  detail::step_notice notice;
  if (detail::join_session(true).step(notice)) notice.listener(notice.folder);
}

/// Writes all records that have been stored so far to the logs, on the calling thread, and waits
/// for the disk as write(2) does. A program need not call this function before it exits. Errors:
/// none thrown; if the disk is full, records stay in memory, after a message.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Copies the records so far to a new run directory, `<run>.snapshot-<UTC>-<reason>`, next to the
/// directory of the run. The copy contains all records that this process has stored, and those
/// records of the run's other processes that are in their logs. No recording thread has to wait. If
/// the total size of the snapshots exceeds options::snapshots_bytes, the oldest ones are deleted.
/// @param reason  part of the directory's name: letters, digits, '.', '-' and '_'; other characters
/// become '-'. Only the first 64 bytes are used.
/// @return false, after a message with the reason, if nothing is being recorded, if the disk has no
/// room, or if another snapshot is being taken.
inline bool snapshot(std::string_view reason) noexcept {
  return detail::join_session(true).snapshot(reason.data(), reason.size());
}

/// Ends recording and writes all records to the logs. Scopes that are still open are not recorded.
/// If active steps of a schedule are being recorded, calls on_trace_ready, whose exceptions
/// propagate. Does nothing if nothing is being recorded. After this call, start() may be called
/// again.
inline void stop() {
  detail::step_notice notice;
  if (detail::join_session(false).stop(notice)) notice.listener(notice.folder);
}

/// Returns how many records this process has lost: because the program chose full_ring::drop,
/// because neither the disk nor memory could hold them, because a batch number was 2^56 or more, or
/// because more signal handlers interrupted one aggregated call than can be kept until it ends.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP
