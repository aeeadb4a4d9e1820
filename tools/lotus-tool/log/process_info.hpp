// Reads what the processes of a run report about themselves in their information files.
#ifndef LOTUS_TOOL_LOG_PROCESS_INFO_HPP
#define LOTUS_TOOL_LOG_PROCESS_INFO_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/cpu_usage.hpp"

namespace lotus::tool {

/// Numbers of records, as reported by processes when they ended. Killed processes report nothing.
struct record_counts {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;
  /// Number of records that are lost because they existed only in the memory of killed processes.
  std::uint64_t lost = 0;
  std::uint64_t deleted_bytes = 0;  ///< bytes of logs that were deleted to limit their size
  /// All records that began later than this time, in ns since 1970, exist; earlier records may have
  /// been deleted. 0: no records were deleted.
  std::int64_t whole_from_ns = 0;

  std::uint64_t all() const noexcept { return written + dropped; }
};

/// Returns a message that says how many of the program's records were dropped.
std::string dropped_text(const record_counts& records);
/// Returns a message that says how many records of killed processes are lost.
std::string lost_text(std::uint64_t records);
/// Returns a message that says how many bytes of logs were deleted to limit their size, and from
/// which time on the records are complete.
std::string deleted_text(const record_counts& records);

/// How a process measured the time that its threads were off the CPU.
enum class cpu_measure : std::uint8_t {
  unknown,   ///< not reported, as with older versions of the library
  off,       ///< times off the CPU are not measured
  batches,   ///< measured only at the beginning and end of batches
  switches,  ///< measured at every context switch
};

/// The CPUs that a process may use.
struct usable_cpus {
  std::uint32_t affinity = 0;  ///< number of CPUs in the process's affinity mask
  /// Limit of the process's cgroup, in CPUs; nullopt if there is no limit.
  std::optional<double> limit{};
  std::optional<std::uint32_t> first{};  ///< the lowest number of the CPUs in the mask, if known
  /// Number of CPUs in the mask of the process that started it, such as a shell; 0: unknown.
  std::uint32_t parents = 0;

  /// Returns how many threads can run at the same time.
  double count() const noexcept;
};

/// The CPUs on which a thread may run, if they are fewer than those of the program.
struct thread_cpus {
  std::uint32_t count = 0;
  std::uint32_t first = 0;  ///< the lowest number of these CPUs
};

/// Counts of the system about a process or a run.
struct system_counts {
  std::uint64_t periods = 0;    ///< periods in which a cgroup's CPU limit applied
  std::uint64_t stopped = 0;    ///< periods in which the limit stopped the process
  std::uint64_t system_ns = 0;  ///< CPU time in the kernel
  std::uint64_t faults = 0;     ///< page faults
  std::uint64_t cpu_ns = 0;     ///< CPU time over the same interval
};

/// What one recording process reports about itself.
struct process_info {
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;  ///< process id of the parent
  std::uint64_t forked = 0;  ///< process id of the parent if it runs the same program; otherwise 0
  /// A text that all processes started by the same `lotus-tool run` share; otherwise "".
  std::string run;
  std::string host;
  std::string command;  ///< command line: its arguments, separated by blanks
  std::optional<std::uint64_t> rank;
  std::map<std::uint64_t, std::string> threads;  ///< names of threads, by thread id
  record_counts records;
  cpu_measure cpu = cpu_measure::unknown;
  std::optional<usable_cpus> cpus;
  std::vector<cpu_reading> cpu_time;              ///< sorted by time
  std::map<std::uint64_t, thread_cpus> affinity;  ///< by thread id
  system_counts counts;                           ///< from the first to the last reading
  /// Maximum time in ns by which a record in a text log ends before a record on an earlier line.
  /// Text logs are nearly, but not exactly, sorted by the ends of records.
  std::int64_t back_ns = 0;
  /// When the process took the snapshot that this directory is, in ns since 1970; 0: it took none.
  std::int64_t snapshot_ns = 0;
  std::map<std::uint64_t, std::uint64_t>
      /// Thread ids by the numbers of their logs, only for logs whose number is not the thread id.
      log_tid;

  /// Returns the id of the thread of this process whose log has this number.
  std::uint64_t thread_of(std::uint64_t number) const;

  /// Returns a text such as "node17, rank 3, pid 4711".
  std::string title() const;
};

/// The processes of one run directory. They can be found by the numbers of their logs: the number
/// of a log is the id of its thread, unless a thread in another container has the same id. If
/// several processes used the same number, the last one is found. Ignores lines of unknown kinds
/// and damaged files, because results do not depend on them. Reads only a limited number of files
/// and bytes; left() reports the files that were not read.
class run_processes {
 public:
  /// Reads the information files in `dir`; there may be none.
  /// @param without  names of files that are not read.
  static run_processes read(const std::string& dir, const std::set<std::string>& without = {});

  /// Returns all processes, by the paths of their information files.
  const std::map<std::string, process_info>& by_file() const noexcept { return by_file_; }

  /// Returns the process whose logs have this number; null if there is none.
  const process_info* process_of(std::uint64_t number) const;
  /// Returns how the CPU times of the thread whose logs have this number were measured. If several
  /// recordings wrote to these logs, returns the least detailed of their measurements.
  cpu_measure cpu_of(std::uint64_t number) const;
  /// Returns the parent process of `process` if the parent also recorded into this run; otherwise
  /// null.
  const process_info* parent_of(const process_info& process) const;
  /// Returns the numbers of records, summed over all recordings of all processes.
  record_counts records() const;
  /// Returns the maximum of process_info::back_ns over all processes.
  std::int64_t back_ns() const;
  /// Returns the process whose information file's name ends in `ending`; null if there is none. The
  /// ring file of a process has the same ending.
  const process_info* process_named(const std::string& ending) const;
  /// Returns the CPUs of the process that may use the most CPUs; nullopt if no process reports any.
  std::optional<usable_cpus> cpus() const;
  /// Returns the CPUs on which the thread whose logs have this number may run; nullopt if these are
  /// all CPUs of its process, and no other process on its host may use more.
  std::optional<thread_cpus> cpus_of_thread(std::uint64_t number) const;
  /// Returns the sums over all processes; of periods, the counts of the process stopped most often.
  system_counts counts() const;
  /// Returns the readings of CPU time that all processes recorded.
  lotus::tool::cpu_usage cpu_time() const;
  /// Returns a message about the information files that were not read completely; "" if all were.
  std::string left(const std::string& dir) const;

 private:
  void read_file(const std::string& path);
  void take_lines(const std::string& text, process_info& process);
  void assign_logs(const std::string& path);

  std::map<std::string, process_info> by_file_;
  std::map<std::uint64_t, const process_info*> by_number_;
  std::map<std::uint64_t, cpu_measure> cpu_by_number_;
  std::uint64_t bytes_ = 0;  // bytes read of all files
  std::uint64_t lines_ = 0;  // lines read of all files
  std::uint64_t left_ = 0;   // number of files that were not read completely
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_PROCESS_INFO_HPP
