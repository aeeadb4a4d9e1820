// Determines what each operation was blocked on: assigns the samples of waiting threads
// (wait_sample) to the operations that were open at the time.
#ifndef LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP
#define LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/formats/json_writer.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {

/// One thing that an operation waited for.
struct blocked_on {
  wait_reason reason = wait_reason::other;
  std::string what;       ///< such as "decoder_mutex (0x55d0c0de)" or a path; "" if unknown
  std::string held_by;    ///< operation that held the lock most often, without S; "": unknown
  double held_share = 0;  ///< share of the samples of the lock in which `held_by` held it, 0..1
  std::uint64_t samples = 0;
  std::int64_t ns = 0;  ///< blocked time in ns; see blocked_list::of()
  double share = 0;     ///< share of the operation's samples, 0..1
};

/// All things that one operation, all waits or all preprocessing were blocked on.
struct blocked_list {
  std::vector<blocked_on> by;  ///< what was waited for; the entry with the most samples first
  std::uint64_t samples = 0;
  std::int64_t ns = 0;  ///< blocked time in ns, estimated from the rate of samples

  bool empty() const noexcept { return by.empty(); }
  /// Returns `by` with times that are scaled to the sum `blocked_ns`; unscaled if it is nullopt.
  std::vector<blocked_on> of(std::optional<std::int64_t> blocked_ns) const;
};

/// What all operations of a run were blocked on. The keys are names with their leading S.
struct run_blocked_on {
  std::map<std::string, blocked_list, std::less<>> ops;
  blocked_list waits;          ///< what consumers were blocked on while they waited for a batch
  blocked_list preprocessing;  ///< what threads were blocked on while they preprocessed a batch

  bool empty() const noexcept { return ops.empty() && waits.empty() && preprocessing.empty(); }
  /// Returns the list of an operation; null if no sample saw the operation wait.
  const blocked_list* of(std::string_view name) const;
};

/// Joins a run with its wait samples. A sample counts for every operation that its thread had open,
/// so an operation's times include the operations inside it. A lock is held by the operation that
/// was innermost on the holder's thread. Throws input_error.
/// @param run  read with run_parts::operations.
run_blocked_on join_waits(const run_data& run, diagnostic_log& diagnostics);

/// Writes the JSON member "blocked_on"; nothing if `list` is null or empty.
void write_blocked_on(json_writer& json, const blocked_list* list,
                      std::optional<std::int64_t> blocked_ns);

/// Writes the JSON member "blocked_on" with a list for each operation, for waits and for
/// preprocessing; nothing if there are no samples.
void write_all_blocked_on(json_writer& json, const run_blocked_on& joined);

/// Returns a text such as "waits for the lock decoder_mutex held by Decode on other threads".
/// @param name  name of the operation that waits, without S.
std::string wait_phrase(const blocked_on& of, const std::string& name);

/// Returns a text such as "sleeps during 52 % of its time and waits for the network: a socket
/// during 43 % of its time": the most frequent reason, and the others above a tenth of the time.
/// @param blocked  the share of the operation's time during which it was blocked, 0 to 1.
std::string wait_phrases(const blocked_list& list, const std::string& name, double blocked);

/// Returns a text such as "Read waits for the disk: /data/train.tar during 71 % of its time."; ""
/// unless the operation is mostly blocked, and at least 10 samples saw the operation wait.
/// @param name  name of the operation, without S.
std::string waiting_text(const run_blocked_on& joined, const std::string& name,
                         std::int64_t blocked_ns, std::int64_t wall_ns);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_BLOCKED_ON_HPP
