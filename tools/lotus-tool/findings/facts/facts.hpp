// Everything that the rules know about a run: what was recorded, without any simulation.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_FACTS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_FACTS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/facts/batch_threads.hpp"
#include "findings/facts/changes.hpp"
#include "findings/facts/idle_workers.hpp"
#include "findings/facts/item_buffer.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/facts/wait_parts.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"
#include "model/times/intervals.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// How the time of the critical path, or of one part of it, was spent, as shares (0..1) of the run.
struct path_states {
  double all = 0;
  double cpu = 0;
  double queue = 0;    ///< waited for a CPU
  double blocked = 0;  ///< blocked or asleep
};

/// Returns the states of the whole path.
path_states states_of(const critical_path& path);
path_states states_of(const critical_path& path, path_kind kind);
/// Returns the states of an operation or stage.
path_states states_of(const critical_path& path, std::string_view name);

/// Returns the share (0..1) of the path in which threads worked on batches: in operations and
/// stages, and, where programs mark hardly any, in the rest of the time in which a batch is built.
double work_on_batches(const critical_path& path);

/// Returns the share (0..1) of the time, without waits for a CPU, in which threads were blocked.
double blocked_share(const cpu_split& of);

/// What a program did outside of a run.
struct outside_work {
  double all_ns = 0;       ///< how long it took; 0 if it is unknown
  double cpu_ns = 0;       ///< CPU time; 0 if it is unknown
  std::string function{};  ///< the function that used most of it; "" if not sampled
};

/// Threads that began in the same function and were many and short.
struct short_threads {
  std::size_t count = 0;  ///< 0: there are none, or they were not sampled
  std::string shown{};    ///< such as "1200 threads in `resize`"
  double cpu_ns = 0;      ///< mean CPU time of one of them
};

/// The threads that used most of the unmarked CPU time.
struct unmarked_use {
  /// Whether threads with records used it, outside of these. Then `function` is empty unless
  /// samples show what they do there.
  bool have_markers = false;
  thread_activity group{};     ///< otherwise with only those threads that have no records
  bool others_marked = false;  ///< whether threads with records began in the same function
  /// Name of the other loader of the program that has the records of these threads; "" if they have
  /// none there either.
  std::string loader{};
  std::string function{};  ///< the function that used most of it; "" if not sampled
};
phrase words_of(const unmarked_use& use);

/// Threads that sleep between two of their batches: they poll, or do work without markers.
struct sleeping_threads {
  std::string of;     ///< such as "the threads of Decode"
  std::string place;  ///< where they mostly do; see own_calls()
  double asleep_ns = 0;
};

struct run_facts {
  const run_data& run;
  const diagnosis& d;  ///< the measured figures
  const critical_path& path;
  wait_parts waits{};
  /// Changes over time of the parts that have a tenth of the critical path, largest part first.
  std::vector<time_change> changes{};
  double run_ns = 0;
  double cpus = 0;                            ///< CPUs that the process may use; 0: unknown
  double used_cpus = 0;                       ///< mean number of CPUs that the process used
  double unmarked_cpus = 0;                   ///< the part of used_cpus outside of recorded work
  double unmarked_share = 0;                  ///< unmarked_cpus / used_cpus
  std::optional<double> others_cpus{};        ///< mean number of CPUs that other programs used
  std::optional<unmarked_use> unmarked_in{};  ///< nullopt if not sampled
  short_threads started{};
  batch_threads for_each_batch{};
  idle_workers idle{};
  item_buffer buffer{};  ///< empty if the consumer does not wait much
  /// The operation with at least half of the time in which the consumer waits for batches that are
  /// ready; nullopt if there is none.
  std::optional<operation_sum> in_late_waits{};
  std::optional<sleeping_threads> asleep{};  ///< nullopt if batches are always being built
  /// What the program did before the run's first work, and after its last.
  outside_work before{};
  outside_work after{};

  path_states states() const { return tool::states_of(path); }
  path_states states(path_kind kind) const { return tool::states_of(path, kind); }
  path_states states_of(std::string_view name) const { return tool::states_of(path, name); }
  /// The operation or stage with the largest share of the path; nullptr if there is none.
  const path_share* largest_work() const;
};

/// Returns whether a part of the pipeline with this capacity could have done many more batches.
bool could_do_more(const run_facts& f, const std::optional<double>& per_s, double many_more = 1.5);

/// Returns whether all stages, and the consumer, could have done clearly more batches than they
/// did, so that what happens between them limits the run.
bool could_all_do_more(const run_facts& f);

/// @param d  has its figures, waits and blocked_on. All arguments must outlive the result.
run_facts facts_of(const run_data& run, const diagnosis& d, const critical_path& path);

/// Returns the lock that the calls of an operation wait for, if this is most of their blocked time;
/// nullptr if there is none, or too few samples show it.
const blocked_on* lock_of(const run_blocked_on& joined, std::string_view name);

/// Returns how the times of an operation change during the run; nullopt if they do not.
std::optional<time_change> change_of(const run_data& run, std::string_view name);

/// Returns the largest number of calls of an operation that overlap in time. A call that waits for
/// a lock inside its scope counts as well.
std::size_t most_at_once(const run_data& run, std::string_view name);

/// Returns how many calls of an operation are open on average, of the times when any is; 0 if there
/// are none.
double mean_open(const run_data& run, std::string_view name);

/// The calls of a longer run are not searched, because they would take much memory.
inline constexpr std::uint64_t most_searched_operations = 2'000'000;

/// Returns how many calls of an operation end per second, if they end at steady intervals however
/// many of them overlap; nullopt otherwise. Some calls must take hardly longer than an interval,
/// calls that begin together must end in turn, or calls that begin late must not end late. Neither
/// is true of threads that work in turn, but independently of each other.
/// @param operation  "" stands for the work on whole batches.
std::optional<double> steady_ends_per_s(const run_data& run, std::string_view operation);

/// Calls that end in bursts of the same size, at regular times.
struct call_bursts {
  double size = 0;
  double apart_ns = 0;
};

/// Returns how the calls of an operation end, if they end in regular bursts of more calls than are
/// ever open at once, while others wait from one burst to the next, whenever these began: something
/// allows so many in each interval. Returns nullopt otherwise.
std::optional<call_bursts> bursts_of(const run_data& run, std::string_view operation);

/// Returns nullopt if `lotus-tool run` did not sample the program's threads.
/// @param f  has its CPU times.
std::optional<unmarked_use> busiest_unmarked(const run_data& run, const run_facts& f);

/// Returns the threads of which the program started more than one for each batch, if starting them
/// takes a part of the run that is worth naming.
/// @param f  has its times.
short_threads started_threads_of(const run_data& run, const run_facts& f);

/// The function that uses most CPU time in some part of a run.
struct busy_function {
  std::string shown{};  ///< with its file and line; "" if too few samples show it
  bool reads = false;   ///< whether it does so in calls that read a file, a pipe or a socket
};

/// Returns the function in which threads with records use most CPU time in these spans of their
/// logs, but outside of all operations.
busy_function function_outside_operations(const run_data& run,
                                          std::map<std::uint64_t, intervals> spans);

/// Returns the function in which the consumer uses most CPU time in its steps, outside of all
/// operations; "" if too few samples show it.
std::string function_in_steps(const run_data& run);

/// The same of its time between two epochs.
std::string function_between_epochs(const run_data& run);

/// The same of the threads that build batches, in the time in which they do.
std::string function_in_batches(const run_data& run);

/// Returns the function in which threads that build batches use most CPU time, if it does so in
/// calls that read a file; "" otherwise.
std::string function_that_reads(const run_data& run);

/// Sets blocked_on::runs_in of locks that are held by a thread without records, if samples show it.
void name_running_holders(const run_data& run, run_blocked_on& joined);

/// Returns the function in which the program uses most CPU time while the consumer waits for the
/// first batches of epochs; "" if too few samples show it.
std::string function_in_first_waits(const run_facts& f);

/// Returns the threads of the stage before which batches stay longest, or of the first one, if they
/// sleep during most of the time in which nobody builds a batch.
std::optional<sleeping_threads> asleep_between_batches(const run_facts& f);

/// Sets `before` and `after`, unless only a part of the run is known.
void add_outside_work(const run_data& run, run_facts& f);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_FACTS_HPP
