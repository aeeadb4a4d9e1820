// What the processes of a run tell about themselves, where they do.
#ifndef LOTUS_TOOL_LOG_PROCESS_INFO_HPP
#define LOTUS_TOOL_LOG_PROCESS_INFO_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace lotus::tool {

/// How much was recorded, by what processes said as they stopped. Nothing is known of those that
/// were killed.
struct record_counts {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;           ///< in the memory of processes that were killed, by recovery
  std::uint64_t deleted_bytes = 0;  ///< of logs, by limits
  std::int64_t whole_from_ns = 0;   ///< since when nothing of that is missing; 0: nothing is

  std::uint64_t all() const noexcept { return written + dropped; }
};

/// "1,024 of 4,096 records were dropped: figures are of the rest"
std::string dropped_text(const record_counts& records);
/// "1,024 records of killed processes were in their memory only and are lost"
std::string lost_text(std::uint64_t records);
/// "limits have deleted 8.7 MB of logs: figures are of what began after 2026-11-23 01:51:54 UTC"
std::string deleted_text(const record_counts& records);

/// What a process measured of the time that its threads were off the CPU.
enum class cpu_measure : std::uint8_t {
  unknown,   ///< it does not say: an older run
  off,       ///< nothing
  batches,   ///< known of whole batches only
  switches,  ///< every switch
};

/// The CPUs that a process might use.
struct usable_cpus {
  std::uint32_t affinity = 0;     ///< how many it may run on
  std::optional<double> limit{};  ///< the cgroup's, in CPUs; missing where there is none

  /// How much can run at once.
  double count() const noexcept;
};

/// A process that recorded.
struct process_info {
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;  ///< its parent's pid
  std::uint64_t forked = 0;  ///< likewise, where that one runs the same program; else 0
  std::string run;           ///< the same text for all that one `lotus-tool run` started; or ""
  std::string host;
  std::string command;  ///< its arguments, blanks between them
  std::optional<std::uint64_t> rank;
  std::map<std::uint64_t, std::string> threads;  ///< names by thread id
  record_counts records;
  cpu_measure cpu = cpu_measure::unknown;
  std::optional<usable_cpus> cpus;
  std::int64_t back_ns = 0;  ///< at most, by which a line of a text log ends before one above it
  std::map<std::uint64_t, std::uint64_t>
      log_tid;  ///< ids by their logs' number, where that differs

  /// Whose log of this process has the number.
  std::uint64_t thread_of(std::uint64_t number) const;

  /// "node17, rank 3, pid 4711"
  std::string title() const;
};

/// The processes of one directory by their logs' numbers, which are the thread ids that they used
/// where no container's had been the same; where an id recurred, the process that used it last.
/// Unknown lines and damaged files are passed over: nothing depends on them. Nor is more read than
/// many processes write: left() tells of it.
class run_processes {
 public:
  /// Reads the information files of `dir`; none is fine.
  /// @param without  names of files that are left out.
  static run_processes read(const std::string& dir, const std::set<std::string>& without = {});

  /// All processes, by the paths of their files.
  const std::map<std::string, process_info>& by_file() const noexcept { return by_file_; }

  /// The process whose logs have this number, or null.
  const process_info* process_of(std::uint64_t number) const;
  /// What was measured for the whole of the logs that have this number: the least, where several
  /// recordings went on in them.
  cpu_measure cpu_of(std::uint64_t number) const;
  /// The process of this run that it came from, or null.
  const process_info* parent_of(const process_info& process) const;
  /// Of all processes, and of each time that one recorded.
  record_counts records() const;
  /// The largest step back from the end of one line of a text log to that of another below it, as
  /// far as processes tell.
  std::int64_t back_ns() const;
  /// The process whose information file's name ends in this, as its ring file's does, or null.
  const process_info* process_named(const std::string& ending) const;
  /// Of the process that might use the most; missing where none tells.
  std::optional<usable_cpus> cpus() const;
  /// "run: 3 .lotus_info_ files are not, or not wholly, read: ..."; empty where all are.
  std::string left(const std::string& dir) const;

 private:
  void take(const std::string& path);
  void take_lines(const std::string& text, process_info& process);
  void place_logs(const std::string& path);

  std::map<std::string, process_info> by_file_;
  std::map<std::uint64_t, const process_info*> by_number_;
  std::map<std::uint64_t, cpu_measure> cpu_by_number_;
  std::uint64_t bytes_ = 0;  // of all files
  std::uint64_t lines_ = 0;  // of all files
  std::uint64_t left_ = 0;   // files that were not, or not wholly, read
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_PROCESS_INFO_HPP
