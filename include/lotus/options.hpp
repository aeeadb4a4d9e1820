// Provides the settings of lotus::start().
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/base/folder_listener.hpp"
#include "lotus/base/owned_text.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Selects what a thread does when its ring, the buffer for its records, is full.
enum class full_ring {
  drain,  ///< the thread itself writes the ring's records to its log, so no record is lost
  drop,   ///< records that do not fit are dropped and counted; no thread waits for the disk
};

/// The format in which records are stored in files.
enum class log_format {
  text,  ///< log lines in Lotus' text format, which other programs can read too
  /// Hidden binary files, a sixth as large; only lotus-tool can read them or convert them to text.
  compact,
  automatic,  ///< compact if options::keep_bytes or keep_ms is set, otherwise text
};

namespace detail {

/// A member of options that the next version no longer has.
template <class T>
struct former_option {
  [[deprecated("use keep_bytes or keep_ms, with format = log_format::text")]] former_option&
  operator=(T chosen) noexcept {
    value = chosen;
    return *this;
  }

  T value = 0;
};

}  // namespace detail

/// The options of a recording. Shared objects of one process pass this struct to each other. So if
/// you change its layout, increase LOTUS_ABI in version.hpp; then shared objects with different
/// layouts do not share data.
struct options {
  /// Directory of the logs, and prefix of their names: "run/lotustrace_log" results in
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, where N is the id of a
  /// thread. The name of an existing directory alone means that directory, with the prefix
  /// "lotustrace_log". Copied from a std::string, std::string_view, std::filesystem::path or
  /// literal.
  detail::owned_text log_file = "lotustrace_log";
  /// Format of the logs. LOTUS_FORMAT=compact in the environment overrides `text`, and
  /// LOTUS_FORMAT=text overrides `automatic`.
  log_format format = log_format::automatic;
  /// What a thread does when its ring is full.
  full_ring when_full = full_ring::drain;
  /// Number of records, of 24 bytes, that a thread's ring holds; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// Maximum time that a record stays in its ring before it is written to the log, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Maximum memory in bytes for records that cannot be written to the disk at the moment. If this
  /// memory is full, records are dropped and counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  detail::former_option<std::uint64_t> max_bytes{};  ///< the former name of keep_bytes
  detail::former_option<std::uint32_t> max_age_s{};  ///< the former form of keep_ms, in seconds
  /// Keeps only the newest records (a flight recorder): the maximum total size in bytes of the logs
  /// in the directory, including logs of other processes of the run. 0: the value of
  /// LOTUS_KEEP_BYTES, or else unlimited. A log that has grown long is renamed, which makes it a
  /// part, and the log continues in a new file. The oldest parts are deleted; lotus-tool reports
  /// how many. Sizes are counted in disk blocks; the limit is accurate to an eighth, if it has room
  /// for the logs to which threads append: up to 8 KiB each, one log per running thread in the
  /// compact format, up to three as text. With a limit, a new thread may continue the logs of a
  /// thread that has ended. Call lotus::snapshot() to save the records of an interesting moment.
  std::uint64_t keep_bytes = 0;
  /// Keeps only records younger than this, in milliseconds: older parts of logs are deleted.
  /// Accurate to about an eighth of the value; 0: unlimited.
  std::uint32_t keep_ms = 0;
  /// Takes a snapshot when a wait for a batch lasts longer than this, in milliseconds, even if the
  /// wait never ends; at most one snapshot per minute. 0: never.
  std::uint32_t snapshot_when_wait_ms = 0;
  /// Signal, such as SIGUSR2, that triggers a snapshot; 0: none. A handler that the program
  /// installed before start() is called too.
  int snapshot_signal = 0;
  /// Maximum total size in bytes of this run's snapshots; older snapshots are deleted to make room.
  std::uint64_t snapshots_bytes = std::uint64_t{1} << 30;
  /// Permissions of the files of a run, as for open(2), before the process's umask applies. The
  /// files of the built-in sampler always use 0666 instead.
  std::uint32_t file_mode = 0666;
  /// Whether to record how long operations were off the CPU. If its thread was switched out before
  /// or during a scope, the scope reads the CPU clock and stores one more record, which takes about
  /// as long as a system call; other scopes take no measurable extra time.
  bool cpu_time = true;
  /// How often per second a background thread of each process samples what one of the recording
  /// threads waits for. lotus-tool then shows which locks, files or sockets operations wait for. A
  /// sample takes about 20 us of CPU time and does not delay the sampled thread. 0: never, not even
  /// in snapshots; -1: the value of LOTUS_WAIT_SAMPLES_PER_S, or else 100.
  std::int32_t wait_samples_per_s = -1;
  /// Function that receives each message of the library, as one line without a newline. Null:
  /// messages go to stderr, after the prefix "lotus: ". The function may be called on any thread,
  /// also on several threads at the same time. It must not record, start or stop, because the
  /// library holds locks during the call.
  void (*on_message)(const char* message) = nullptr;
};

/// Selects steps to record, like torch.profiler.schedule. The first `skip_first` steps are not
/// recorded. Then follow `repeat` cycles, in each of which first `wait` and then `warmup` steps are
/// not recorded, and then `active` steps are. (Recording itself needs no warm-up; the `warmup`
/// steps let the program warm up.) Shared objects pass this struct to each other, like `options`.
struct schedule {
  std::uint32_t wait = 0;        ///< number of unrecorded steps at the start of each cycle
  std::uint32_t warmup = 0;      ///< number of unrecorded steps after the `wait` steps
  std::uint32_t active = 1;      ///< number of recorded steps in each cycle; at least one
  std::uint32_t repeat = 0;      ///< number of cycles; 0: unlimited
  std::uint32_t skip_first = 0;  ///< number of unrecorded steps before the first cycle
  /// Function that is called with the folder of the logs when the active steps of a cycle are over
  /// and all their records are in the logs. It runs on the thread that calls step() or stop(), may
  /// take a const std::string&, a std::string_view or a const char*, and may call any function of
  /// lotus. It is not called if the program exits during active steps.
  detail::folder_listener on_trace_ready{};
  /// If not 0, the first cycle has no `wait` steps.
  std::uint32_t skip_first_wait = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP
