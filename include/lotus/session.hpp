// Start and stop, at once or by steps.
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

/// Starts recording; see options. Records what ends from now on, on every thread, also of other
/// shared objects of this process and of children it forks. At most 5 ms: what processes that died
/// left, and takes longer to put into the logs, is put there meanwhile.
/// @return false, after saying why once, when the directory cannot be written; the program can go
/// on and just is not recorded. True also when this very recording runs already. Thread safety: all
/// of these functions.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Starts with step 0 of a schedule: records its active steps only, each such stretch of steps into
/// a folder of its own, `steps_<first>_<last>` beside where the logs would be, a run for
/// lotus-tool. What begins and ends within the stretch is recorded, on every thread; a process that
/// was forked within it records into that folder until it calls step() itself.
/// @return false, after saying why once, for a schedule without active steps, or, where step 0 is
/// active, as above.
inline bool start(const options& chosen, const schedule& steps) {
  steps.on_trace_ready.keep();
  return detail::join_session(false).start_steps(chosen, steps);
}

/// The same with a `log_file` only.
inline bool start(std::string_view log_file, const schedule& steps) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen, steps);
}

/// One step is over, the next begins; nothing without a schedule. Where recorded steps are over,
/// everything is written and on_trace_ready called. Thread safety: all; steps of all threads count.
inline void step() {
  detail::step_notice notice;
  if (detail::join_session(true).step(notice)) notice.listener(notice.folder);
}

/// Writes every record that is complete by now to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Puts what is recorded by now aside, in a run folder of its own beside the run's,
/// `<run>.snapshot-<UTC>-<reason>`, for lotus-tool: of this process all that is complete, of others
/// of the run what they have drained. No thread waits for it that records. What an older snapshot
/// holds is deleted where all would be more than options::snapshots_bytes.
/// @param reason  letters, digits, '.', '-' and '_'; others become '-'. At most 64 bytes count.
/// @return false, after saying why, where there is no recording, no room, or one is being made.
inline bool snapshot(std::string_view reason) noexcept {
  return detail::join_session(true).snapshot(reason.data(), reason.size());
}

/// Ends recording, everything written. Scopes still open are not recorded. Of a schedule whose
/// steps are being recorded it calls on_trace_ready. start() may follow.
inline void stop() {
  detail::step_notice notice;
  if (detail::join_session(false).stop(notice)) notice.listener(notice.folder);
}

/// How many records this process has lost: dropped by choice (full_ring::drop), because neither
/// disk nor memory could take them, or for a batch number of 2^56 or more.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP
