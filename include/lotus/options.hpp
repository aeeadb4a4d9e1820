// Settings that a program can choose when it starts recording.
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/base/folder_listener.hpp"
#include "lotus/base/owned_text.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// What a thread does if its ring is full.
enum class full_ring {
  drain,  ///< the thread writes its records to the log itself: nothing is lost
  drop,   ///< drops the new record and counts it in dropped(): the thread never waits for the disk
};

/// How records are stored in files.
enum class log_format {
  text,     ///< logs of Lotus' format, which other programs can read too
  compact,  ///< hidden binary blocks, a sixth of the size, for lotus-tool, which can convert them
            ///< to text
};

/// The argument of start(). It is passed between shared objects as it is: bump hub_name with each
/// change.
struct options {
  /// Directory and name with which all logs of the run begin: "run/lotustrace_log" gives
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, where N is a thread's id.
  /// Accepts and copies a std::string, a std::string_view, a std::filesystem::path or a literal.
  detail::owned_text log_file = "lotustrace_log";
  /// How records are stored in files. If this is text, LOTUS_FORMAT=compact in the environment
  /// overrides it.
  log_format format = log_format::text;
  /// What a thread does if its ring is full.
  full_ring when_full = full_ring::drain;
  /// Number of records in a thread's ring, 24 bytes each; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// Maximum time that a record stays in its ring before it is written to the log, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Memory for records that cannot be written to the disk at the moment; if it is full, further
  /// records are dropped and counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Maximum total size of the logs in the directory, in bytes, including those of other processes
  /// of the run; 0: unlimited. A log that has grown continues in a new file, and the oldest such
  /// parts are deleted and counted; lotus-tool reports them. Accurate to about an eighth, in blocks
  /// of the disk. With a limit, threads that run one after another share logs.
  std::uint64_t max_bytes = 0;
  /// Age at which parts of logs are deleted, in seconds; 0: unlimited. Accurate to an eighth.
  std::uint32_t max_age_s = 0;
  /// Flight recorder: keeps only the newest records, in compact logs, up to this many bytes; 0:
  /// unlimited, or LOTUS_KEEP_BYTES in the environment. Otherwise like max_bytes; call
  /// lotus::snapshot() to save what is worth keeping.
  std::uint64_t keep_bytes = 0;
  /// The same limit by age, in milliseconds; 0: unlimited.
  std::uint32_t keep_ms = 0;
  /// Takes a snapshot if a wait for a batch lasts longer than this, in milliseconds, even if it
  /// never ends; at most one a minute. 0: never.
  std::uint32_t snapshot_when_wait_ms = 0;
  /// Signal that triggers a snapshot, such as SIGUSR2; 0: none. The previous handler is called too.
  int snapshot_signal = 0;
  /// Maximum total size of the snapshots of this run, in bytes; the oldest are deleted.
  std::uint64_t snapshots_bytes = std::uint64_t{1} << 30;
  /// Mode of logs, rings and information files, as for open(2): reduced by the process's umask. A
  /// collector's sample files always get 0666 reduced by the umask.
  std::uint32_t file_mode = 0666;
  /// Whether to record the time that operations spend off the CPU: one record for each context
  /// switch that a scope notices. The check adds no measurable cost to a scope.
  bool cpu_time = true;
  /// Receives each message, also those of collectors, as one line without a newline; null: stderr,
  /// after the prefix "lotus: ". Called on any thread, with the library's locks held and signals
  /// blocked: it must not record, start or stop.
  void (*on_message)(const char* message) = nullptr;
};

/// Numbers of steps, as in torch.profiler.schedule: first `skip_first` steps that are not recorded;
/// then cycles of `wait` and `warmup` steps that are not recorded and `active` steps that are,
/// `repeat` times (0: for as long as there are steps). Recording itself needs no warm-up: these
/// steps are skipped so that the recorded program has warmed up. It is passed between shared
/// objects too.
struct schedule {
  std::uint32_t wait = 0;        ///< not recorded, in every cycle
  std::uint32_t warmup = 0;      ///< not recorded either, after `wait`
  std::uint32_t active = 1;      ///< recorded; at least one
  std::uint32_t repeat = 0;      ///< number of cycles; 0: unlimited
  std::uint32_t skip_first = 0;  ///< before the first cycle
  /// Called when the active steps are over and all their records are in the logs, on the thread
  /// that calls step() or stop(), with the folder of these logs. It may do anything. It is not
  /// called if the program exits during active steps; their records are written all the same. The
  /// callable receives a const std::string&, a std::string_view or a const char*.
  detail::folder_listener on_trace_ready{};
  /// If not 0, the first cycle has no `wait`.
  std::uint32_t skip_first_wait = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP
