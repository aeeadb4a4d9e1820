// Lists what all operations of a run were blocked on, with times that sum up to the measured times.
#ifndef LOTUS_TOOL_WAITS_JOIN_SCALED_WAITS_HPP
#define LOTUS_TOOL_WAITS_JOIN_SCALED_WAITS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_SCALED_WAITS_HPP
