// What a program may choose when it starts recording.
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/base/folder_listener.hpp"
#include "lotus/base/owned_text.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// What a thread does whose ring is full.
enum class full_ring {
  drain,  ///< it writes its records to the log itself: nothing is lost
  drop,   ///< it drops the new record and counts it in dropped(): it never waits for the disk
};

/// How records stand in files.
enum class log_format {
  text,     ///< logs of Lotus' format, which other programs read too
  compact,  ///< hidden blocks of a sixth of the size, for lotus-tool, which also makes text of them
};

/// What start() takes. It crosses shared objects as it is: bump hub_name with each change.
struct options {
  /// Directory and name with which all logs of the run begin: "run/lotustrace_log" makes
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, N being a thread's id.
  /// Takes a std::string, a std::string_view, a std::filesystem::path or a literal, and copies it.
  detail::owned_text log_file = "lotustrace_log";
  /// How records stand in files. Where it is text, LOTUS_FORMAT=compact in the environment counts.
  log_format format = log_format::text;
  /// What a thread does whose ring is full.
  full_ring when_full = full_ring::drain;
  /// Records a thread's ring holds, 24 bytes each; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// The longest that a record lies in its ring before it is text, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Memory for records that the disk does not take at the moment; beyond it they are dropped and
  /// counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// The most that the logs of the directory may have together, in bytes, those of other processes
  /// of the run included; 0: any. A log that has grown goes on in a new file then, and the oldest
  /// such parts are deleted, counted, and told of by lotus-tool. Kept to within an eighth, about,
  /// in blocks of the disk. Threads that follow one another then share logs.
  std::uint64_t max_bytes = 0;
  /// The age from which on parts of logs are deleted, in seconds; 0: any. Kept to within an eighth.
  std::uint32_t max_age_s = 0;
  /// A flight recorder: only the newest records are kept, in compact logs, at most so many bytes;
  /// 0: any, or LOTUS_KEEP_BYTES in the environment. As max_bytes; lotus::snapshot() puts aside
  /// what is worth keeping.
  std::uint64_t keep_bytes = 0;
  /// The same by age, in milliseconds; 0: any.
  std::uint32_t keep_ms = 0;
  /// A wait for a batch that takes longer, in milliseconds, or does not end, is worth a snapshot,
  /// one a minute at most; 0: none is.
  std::uint32_t snapshot_when_wait_ms = 0;
  /// A signal that makes a snapshot, as SIGUSR2; 0: none. What handled it before is called too.
  int snapshot_signal = 0;
  /// The most that snapshots of this run may have together, in bytes; the oldest are deleted.
  std::uint64_t snapshots_bytes = std::uint64_t{1} << 30;
  /// Mode of logs, rings and information, as for open(2): less the process's umask. A collector's
  /// samples are always made with 0666 less the umask.
  std::uint32_t file_mode = 0666;
  /// Whether the time that operations spend off the CPU is recorded: a record for each context
  /// switch that a scope notices. Noticing costs the scope nothing that can be measured.
  bool cpu_time = true;
  /// Receives each message as one line without newline, those of collectors too; null: stderr,
  /// behind "lotus: ". Called on any thread, with the library's locks held and signals blocked:
  /// must not record, start or stop.
  void (*on_message)(const char* message) = nullptr;
};

/// Numbers of steps, as those of torch.profiler.schedule: `wait` and `warmup` steps that are not
/// recorded, then `active` ones that are, and again, `repeat` times (0: for as long as there are
/// steps); before all this `skip_first` steps that are not. Recording needs no warming up: those
/// steps are left out so that what is recorded is a program that has warmed up. Crosses shared
/// objects too.
struct schedule {
  std::uint32_t wait = 0;        ///< in every cycle, not recorded
  std::uint32_t warmup = 0;      ///< behind them, not recorded either
  std::uint32_t active = 1;      ///< recorded; at least one
  std::uint32_t repeat = 0;      ///< cycles; 0: no end
  std::uint32_t skip_first = 0;  ///< before the first cycle
  /// Called on the thread that calls step() or stop(), when the active steps are over and all that
  /// was recorded of them is in the logs, with the folder of these. May do anything. Not called
  /// where the program exits amid active steps: what they have recorded is written all the same.
  /// It takes a const std::string&, a std::string_view or a const char*.
  detail::folder_listener on_trace_ready{};
  /// Other than 0: the first cycle has no `wait`.
  std::uint32_t skip_first_wait = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP
