// Operations that belong to no batch: those of the consumer's steps, and what threads do before
// their first batch.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_OUTSIDE_BATCHES_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_OUTSIDE_BATCHES_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "model/times/intervals.hpp"

namespace lotus::tool {

struct operation_sum {
  std::string name{};  ///< as shown, without the S that begins it in logs
  double self_ns = 0;  ///< without the operations inside it
  std::size_t calls = 0;
};

/// Returns the operations in the consumer's steps, the one with the most time first.
std::vector<operation_sum> operations_in_steps(const run_data& run);

/// Returns the operation with the most time of those in times_of_late_waits().
std::optional<operation_sum> largest_in_late_waits(const run_data& run);

/// Returns when consumers are between two epochs, by the numbers of their logs.
std::map<std::uint64_t, intervals> consumers_between_epochs(const run_data& run);

/// Returns the operation with the most time of those that consumers execute between two epochs.
std::optional<operation_sum> largest_between_epochs(const run_data& run);

/// Returns when consumers wait for batches that are ready, by the numbers of their logs. An
/// operation that begins before its batch is ready, such as one around a whole wait, is not in it.
std::map<std::uint64_t, intervals> times_of_late_waits(const run_data& run);

/// Returns the operation with the most time of those that threads which build batches execute
/// between two of these; nullopt if none was recorded.
std::optional<operation_sum> largest_between_batches(const run_data& run);

/// Returns the operation with the most time of those that end before the first batch of their
/// thread or, in threads that build none, before that of the run; nullopt if none was recorded.
std::optional<operation_sum> largest_at_start(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_OUTSIDE_BATCHES_HPP
