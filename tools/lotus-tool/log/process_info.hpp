// What the processes of a run report about themselves, if they do.
#ifndef LOTUS_TOOL_LOG_PROCESS_INFO_HPP
#define LOTUS_TOOL_LOG_PROCESS_INFO_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace lotus::tool {

/// How much was recorded, as processes reported at their end. Killed processes do not report.
struct record_counts {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;           ///< found by recovery: only in the memory of killed processes
  std::uint64_t deleted_bytes = 0;  ///< of logs, by limits
  std::int64_t whole_from_ns = 0;   ///< nothing is missing since then; 0: nothing is missing at all

  std::uint64_t all() const noexcept { return written + dropped; }
};

/// "1,024 of 4,096 records were dropped: figures are of the rest"
std::string dropped_text(const record_counts& records);
/// "1,024 records of killed processes were in their memory only and are lost"
std::string lost_text(std::uint64_t records);
/// "limits have deleted 8.7 MB of logs: figures are of what began after 2026-11-23 01:51:54 UTC"
std::string deleted_text(const record_counts& records);

/// How a process measured the time that its threads were off the CPU.
enum class cpu_measure : std::uint8_t {
  unknown,   ///< not reported: an older run
  off,       ///< not measured
  batches,   ///< measured for whole batches only
  switches,  ///< measured for every switch
};

/// The CPUs that a process may use.
struct usable_cpus {
  std::uint32_t affinity = 0;     ///< number that it may run on
  std::optional<double> limit{};  ///< of the cgroup, in CPUs; missing if there is none

  /// How many threads can run at once.
  double count() const noexcept;
};

/// A process that has recorded.
struct process_info {
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;  ///< its parent's pid
  std::uint64_t forked = 0;  ///< likewise, if the parent runs the same program; else 0
  std::string run;           ///< equal for all processes that one `lotus-tool run` started; or ""
  std::string host;
  std::string command;  ///< its arguments, separated by blanks
  std::optional<std::uint64_t> rank;
  std::map<std::uint64_t, std::string> threads;  ///< names by thread id
  record_counts records;
  cpu_measure cpu = cpu_measure::unknown;
  std::optional<usable_cpus> cpus;
  std::int64_t back_ns = 0;  ///< by which a line of a text log may end before one above it
  std::map<std::uint64_t, std::uint64_t>
      log_tid;  ///< thread ids by the logs' numbers, if they differ

  /// The id of the thread of this process whose log has this number.
  std::uint64_t thread_of(std::uint64_t number) const;

  /// "node17, rank 3, pid 4711"
  std::string title() const;
};

/// The processes of one directory, by their logs' numbers. These are thread ids, unless another
/// container used the same id; if an id recurred, the process that used it last. Unknown lines and
/// damaged files are ignored, because nothing depends on them. The amount read is limited to what
/// many processes write; left() reports what was not read.
class run_processes {
 public:
  /// Reads the information files of `dir`; there may be none.
  /// @param without  names of files to leave out.
  static run_processes read(const std::string& dir, const std::set<std::string>& without = {});

  /// All processes, by the paths of their information files.
  const std::map<std::string, process_info>& by_file() const noexcept { return by_file_; }

  /// The process whose logs have this number, or null.
  const process_info* process_of(std::uint64_t number) const;
  /// What was measured for all of the logs with this number: the least, if several recordings wrote
  /// to them.
  cpu_measure cpu_of(std::uint64_t number) const;
  /// The process of this run that is its parent, or null.
  const process_info* parent_of(const process_info& process) const;
  /// The sum of all processes and all their recordings.
  record_counts records() const;
  /// The largest time by which a line of a text log ends before a line above it, as far as
  /// processes report it.
  std::int64_t back_ns() const;
  /// The process whose information file's name ends like this, as its ring file's does, or null.
  const process_info* process_named(const std::string& ending) const;
  /// The CPUs of the process that may use the most; missing if no process reports any.
  std::optional<usable_cpus> cpus() const;
  /// "run: 3 .lotus_info_ files are not, or not wholly, read: ..."; empty if all were read.
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
  std::uint64_t left_ = 0;   // files that were not read, or not completely
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_PROCESS_INFO_HPP
