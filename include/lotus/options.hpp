// What a program may choose when it starts recording.
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN

/// What a thread does whose ring is full.
enum class full_ring {
  drain,  ///< it writes its records to the log itself: nothing is lost
  drop,   ///< it drops the new record and counts it in dropped(): it never waits for the disk
};

/// What start() takes. Strings are copied.
struct options {
  /// Directory and name with which all logs of the run begin: "run/lotustrace_log" makes
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, N being a thread's id.
  std::string log_file = "lotustrace_log";
  /// What a thread does whose ring is full.
  full_ring when_full = full_ring::drain;
  /// Records a thread's ring holds, 24 bytes each; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// The longest that a record lies in its ring before it is text, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Memory for records that the disk does not take at the moment; beyond it they are dropped and
  /// counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Mode of logs, rings and information, as for open(2): less the process's umask. A collector's
  /// samples are always made with 0666 less the umask.
  mode_t file_mode = 0666;
  /// Whether the time that operations spend off the CPU is recorded: a record for each context
  /// switch that a scope notices. Noticing costs the scope nothing that can be measured.
  bool cpu_time = true;
  /// Receives each message as one line without newline, those of collectors too; null: stderr,
  /// behind "lotus: ". Called on any thread, with the library's locks held and signals blocked:
  /// must not record, start or stop.
  void (*on_message)(const char* message) = nullptr;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP
