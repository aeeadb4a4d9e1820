// Finds which operations were open when waiting threads were sampled, and for how long they waited.
#ifndef LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP
#define LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// The innermost span that a thread had open.
struct innermost_span {
  std::int64_t since_ns = INT64_MIN;
  std::uint32_t name = 0;
  bool known = false;

  /// Takes another span that was open at the same time, if it began later.
  void add(std::int64_t start_ns, std::uint32_t of) noexcept {
    if (start_ns >= since_ns) *this = {start_ns, of, true};
  }
};

/// A wait sample, with the operations that the waiting thread had open, and with the innermost span
/// of the thread that held the lock, if any.
struct sampled_wait {
  // Values used in place of the number of an operation's name: of_wait for a wait for a batch,
  // of_preprocessing for the preprocessing of a batch, and of_step for a consumer's step. Numbers
  // of names are much smaller.
  static constexpr std::uint32_t of_wait = UINT32_MAX;
  static constexpr std::uint32_t of_preprocessing = UINT32_MAX - 1;
  static constexpr std::uint32_t of_step = UINT32_MAX - 2;

  const wait_sample* sample = nullptr;
  std::size_t process = 0;          ///< index in sampled_waits::processes()
  std::set<std::uint32_t> open{};   ///< names of what the waiting thread had open
  innermost_span in{};              ///< the innermost of them
  std::vector<std::size_t> logs{};  ///< indexes of the logs of the waiting thread
  innermost_span holder{};          ///< the innermost span of the lock's holder
  bool holder_has_log = false;      ///< whether the lock's holder has a log of this loader
};

using on_operation = std::function<void(const operation&)>;

/// All wait samples of a run.
class sampled_waits {
 public:
  /// The threads whose open operations are found: waiting threads and holders of locks
  /// (all_threads), or only holders of locks (holders).
  enum class operations_of : std::uint8_t { all_threads, holders };

  /// Throws input_error.
  /// @param names  the names of the operations that `each_operation` passes; must outlive this
  ///               object.
  /// @param each_operation  calls a function for each operation of the log with the given index.
  sampled_waits(const run_data& run, operations_of of, const name_table& names,
                const std::function<void(std::size_t file, const on_operation&)>& each_operation,
                diagnostic_log& diagnostics);

  const std::vector<process_waits>& processes() const noexcept { return processes_; }
  const std::vector<sampled_wait>& all() const noexcept { return waits_; }

  /// Returns the name of a span: the name of an operation, without the S that logs put before it;
  /// "preprocessing"; or "waiting for a batch". Returns "" if unknown.
  std::string name_of(const innermost_span& span) const;

 private:
  /// The time of a sample, at which the open operations of a thread must be found.
  struct moment {
    std::int64_t time_ns = 0;
    std::size_t wait = 0;    ///< index in waits_
    bool of_holder = false;  ///< true: the thread holds the lock; false: the thread waits
  };

  void visit(const std::vector<moment>& moments, std::int64_t start_ns, std::int64_t end_ns,
             std::uint32_t name);

  const name_table& names_;
  std::vector<process_waits> processes_;
  std::vector<sampled_wait> waits_;
};

/// The samples of the waiting threads of a run, by log. Needs none of the run's operations in
/// memory: if samples show locks, it reads the logs of the threads that held them.
class log_waits {
 public:
  /// Creates an object without samples; use read() for a run with samples.
  log_waits() = default;
  /// Throws input_error.
  static log_waits read(const run_data& run, diagnostic_log& diagnostics);

  /// Returns what the thread of a log waited for in an interval, the most frequent first, such as
  /// "waits for the lock decoder_mutex held by Decode (3 samples), sleeps (1 sample)"; "" if no
  /// sample lies in the interval.
  /// @param name  name of the operation that waits, without the S that logs put before it.
  std::string text(std::size_t file, std::int64_t start_ns, std::int64_t end_ns,
                   const std::string& name) const;

  /// Whether a sample of the log's thread lies in an interval.
  bool has(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  struct moment {
    std::int64_t time_ns = 0;
    std::uint32_t entry = 0;  // index in entries_
  };
  /// Returns the first sample of the log that was taken at or after the time `ns`.
  std::vector<moment>::const_iterator first(std::size_t file, std::int64_t ns) const;

  std::vector<blocked_on> entries_;          // everything that a thread waited for, each once
  std::vector<std::vector<moment>> of_log_;  // sorted by time; by the log's index
};

/// What was blocked: an operation, consumers that waited for a batch, or threads that preprocessed
/// one.
enum class waiting_part : std::uint8_t { operation, wait, preprocess };

struct scaled_waits {
  waiting_part part = waiting_part::operation;
  std::string name;            ///< name of the operation, without S; "" for the other parts
  std::vector<blocked_on> by;  ///< as blocked_list::of() returns them
};

/// Returns the name of the enumerator, such as "operation".
const char* part_name(waiting_part part) noexcept;

/// Returns the lists of all operations in the order of their names, then the lists of waits for
/// batches and of preprocessing. Leaves out a list if no sample shows a wait for it. If the run was
/// read without run_parts::totals, the times of operations are estimated.
std::vector<scaled_waits> scale_waits(const run_data& run, const run_blocked_on& joined);

class thread_logs {
 public:
  explicit thread_logs(const run_data& run)
      : processes_(run_processes::read(run.files->info_dir, run.files->earlier_info)) {
    for (std::size_t f = 0; f < run.files->files.size(); ++f) {
      const std::uint64_t number = run.files->files[f].number;
      const process_info* const process = processes_.process_of(number);
      logs_[process != nullptr ? process->thread_of(number) : number].emplace_back(f, process);
    }
  }

  /// Returns the indices of a thread's logs. Threads in different containers may have the same id,
  /// so only logs of the given process are returned if there are any. If several threads had the
  /// same id one after another, returns the logs of all, because their times do not overlap.
  std::vector<std::size_t> of(std::uint64_t tid, const std::string& process_ending) const {
    const auto found = logs_.find(tid);
    if (found == logs_.end()) return {};
    const process_info* const own = processes_.process_named(process_ending);
    std::vector<std::size_t> all;
    std::vector<std::size_t> of_process;
    for (const auto& [file, process] : found->second) {
      all.push_back(file);
      if (process == own) of_process.push_back(file);
    }
    return of_process.empty() ? all : of_process;
  }

 private:
  run_processes processes_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::size_t, const process_info*>>> logs_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP
