// Determines what each operation was blocked on. To do so, assigns each sample of a waiting thread
// (wait_sample) to the operations that the thread had open at that time.
#ifndef LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP
#define LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/diagnostics.hpp"
#include "describe/described.hpp"
#include "model/identifiers.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {

/// How often a stack was seen.
struct seen_stack {
  std::size_t process = 0;   ///< index in run_blocked_on::processes
  std::uint64_t number = 0;  ///< as wait_sample::stack
  std::uint64_t samples = 0;
};

/// What a thread waited for; empty if it is unknown.
struct wait_object {
  std::string name{};         ///< of a variable, file, network peer or system call
  std::uint64_t address = 0;  ///< of a lock or condition variable; 0: none
  std::size_t files = 0;      ///< how many files of the folder `name` these are; 0: no such files

  auto parts() const noexcept { return std::tie(name, address, files); }
  bool operator==(const wait_object& other) const noexcept { return parts() == other.parts(); }
  bool operator<(const wait_object& other) const noexcept { return parts() < other.parts(); }
};

/// blocked_on::held_by if a thread that has no operation open holds a lock.
inline constexpr const char* unmarked_code = "code outside of all operations";

/// blocked_on::held_by if a thread holds a lock that has logs only of other loaders of the program.
inline constexpr const char* other_loader_code = "code of another loader";

/// How the consumer's step is named where operations are.
inline constexpr const char* step_word = "the consumer's step";

/// One thing that an operation waited for, such as a lock or a file.
struct blocked_on {
  wait_reason reason = wait_reason::other;
  wait_object what{};
  /// The operation that held the lock most often, without S, or "code outside of all operations";
  /// "": unknown.
  std::string held_by;
  double held_share = 0;  ///< share (0..1) of the lock's samples in which `held_by` held it
  /// The operation that held it next to `held_by`, in more than a third of these samples; "": none.
  std::string also_held_by{};
  /// The function in which the holder itself waited in most samples; "": it was mostly running, or
  /// it is unknown. Set by name_stacks().
  std::string held_in{};
  /// The thread that held the lock in most samples, if its records do not say in which operation;
  /// 0: none.
  std::uint64_t holder_thread = 0;
  /// The function in which this thread used most CPU time, with its line; set by `diagnose` if the
  /// thread was mostly running.
  std::string runs_in{};
  /// The function that takes a lock whose variable has no symbol; "" if it has one, or if the
  /// function is unknown. Set by name_locks().
  std::string taken_in{};
  std::uint64_t samples = 0;
  /// Blocked time in ns, estimated or scaled to the measured time, see blocked_list::of().
  std::int64_t ns = 0;
  double share = 0;                  ///< share (0..1) of the operation's samples
  std::vector<seen_stack> stacks{};  ///< stacks of the samples, the most frequent first
  /// Stacks of the lock's holder, the most frequent first. Number 0 means that it was running.
  std::vector<seen_stack> holder_stacks{};
  /// The calls in which a thread waits most often, the innermost first; set by name_stacks().
  std::vector<std::string> calls{};
  double calls_share = 0;  ///< share (0..1) of the samples with a stack that have these calls
};

/// What the calls of one operation were blocked on, or all waits for batches, or all preprocessing.
struct blocked_list {
  std::vector<blocked_on> by;  ///< what was waited for; the entry with the most samples comes first
  std::uint64_t samples = 0;
  std::int64_t ns = 0;  ///< blocked time in ns, estimated from the rate of samples

  bool empty() const noexcept { return by.empty(); }
  /// Returns the list `by` of this object, with its times scaled so that their sum is the measured
  /// time `blocked_ns`. If `blocked_ns` is nullopt, the times are not scaled.
  std::vector<blocked_on> of(std::optional<std::int64_t> blocked_ns) const;
};

/// In how many samples of a lock the innermost operation that waited for it, and the one that held
/// it, had which name, without S. Other names are those of sampled_waits::name_of().
struct lock_samples {
  std::map<std::string, std::uint64_t> waits;
  std::map<std::string, std::uint64_t> holds;
};

/// What all operations of a run were blocked on. The keys are names with the leading S of the logs.
struct run_blocked_on {
  std::map<std::string, blocked_list, std::less<>> ops;
  blocked_list waits;          ///< what consumers were blocked on while they waited for a batch
  blocked_list preprocessing;  ///< what threads were blocked on while they preprocessed a batch
  blocked_list steps;          ///< what consumers were blocked on in their steps
  /// What consumers were blocked on between two epochs, outside of all operations.
  blocked_list between_epochs;
  /// What the threads of a stage were blocked on outside of all operations, waits and steps. The
  /// threads that build whole batches have preprocess_stage.
  std::map<stage_id, blocked_list> between_batches;
  /// The operation that another thread, which builds no batches, runs while the steps wait, and
  /// that ends before the step does; "" if there is none. Without S.
  std::string during_steps;
  std::map<wait_object, lock_samples> locks;
  std::vector<std::string> processes;  ///< process_waits::ending of each process with samples

  bool empty() const noexcept { return ops.empty() && waits.empty() && preprocessing.empty(); }
  /// Returns the list of an operation; null if no sample shows that the operation waited.
  const blocked_list* of(std::string_view name) const;
};

/// Combines the wait samples of a run with its operations. A sample counts for each operation that
/// its thread had open, so an operation includes the operations inside it. The holder of a lock is
/// the innermost operation on the thread that held it. Throws input_error.
/// @param run  a run that was read with run_parts::operations.
run_blocked_on join_waits(const run_data& run, diagnostic_log& diagnostics);

wait_object what_of(const wait_sample& sample);

const description<blocked_on>& description_of(const blocked_on*);
const description<run_blocked_on>& description_of(const run_blocked_on*);

/// Returns the first entries of a list, as JSON outputs contain them; none if `list` is null.
/// @param blocked_ns  as in blocked_list::of().
std::vector<blocked_on> listed(const blocked_list* list, std::optional<std::int64_t> blocked_ns);

/// A step that waits so does not wait for work of other threads: locks have sentences of their own,
/// and a sleep may stand for work of a device.
bool is_lock_or_sleep(wait_reason reason) noexcept;

/// Whether the variable of a lock has a symbol; on the heap or in a library, it has none.
bool has_name(const blocked_on& lock);

/// Whether a lock belongs to Lotus: new threads wait for it when they make their first record,
/// which limits no run.
bool is_of_lotus(const blocked_on& lock);

/// Whether a function of the C library allocates or frees memory, such as "malloc".
bool is_allocation(std::string_view function);

/// Returns a text such as "decoder_mutex (0x55d0c0de)" or a path; "" if the object is unknown.
std::string object_text(const wait_object& of);

/// Returns a text such as "the lock decoder_mutex", "the file lock /data/cache" or "the lock taken
/// in malloc"; "a lock" if nothing is known.
std::string lock_name(const blocked_on& of);

/// Returns who held a lock, such as "Decode" or "Decode and Augment"; "" if it is unknown.
std::string lock_holders(const blocked_on& of);

/// Returns a text such as " (its holder waits in write_all)"; "" if it is unknown.
std::string what_holder_does(const blocked_on& of);

/// Returns a text such as "waits for the lock decoder_mutex held by Decode on other threads".
/// @param name  name of the operation that waits, without the S that logs put before it.
std::string wait_phrase(const blocked_on& of, const std::string& name);

/// Returns in which functions of the program a thread waits mostly, such as "retry, called by
/// Client::get"; "" if they are unknown. See blocked_on::calls.
std::string own_calls(const blocked_on& of);

/// Returns a text such as "sleeps during 52 % of its time and waits for the network: a socket
/// during 43 % of its time". It contains the most frequent reason, and all others above 10 % of the
/// time.
/// @param blocked  the share (0..1) of the operation's time during which it was blocked.
std::string wait_phrases(const blocked_list& list, const std::string& name, double blocked);

/// Returns a text such as "Read waits for the disk: /data/train.tar during 71 % of its time".
/// Returns "" if the operation is blocked for less than the share `min_blocked` (0..1) of its time,
/// or if fewer than 10 samples show that it waited.
/// @param name  name of the operation, without the S that logs put before it.
/// @param blocked_ns  the measured blocked time; nullopt: estimated from the samples.
std::string waiting_text(const run_blocked_on& joined, const std::string& name,
                         std::optional<std::int64_t> blocked_ns, std::int64_t total_ns,
                         double min_blocked);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP
