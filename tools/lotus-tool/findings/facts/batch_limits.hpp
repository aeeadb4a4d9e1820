// Finds operations that wait because only so many batches may be between them and a later moment,
// such as buffers of a pool that the consumer gives back.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_BATCH_LIMITS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_BATCH_LIMITS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/run_data.hpp"

namespace lotus::tool {

/// The number of batches between the end of an operation and a later moment, which lets the next
/// call of the operation end.
struct batch_limit {
  /// What the moment is the end of: the consumer's step or its wait for a batch, an operation of
  /// the consumer, or work on the same thread as the operation: another operation, or the batch.
  enum class until : std::uint8_t { step, reception, consumer_operation, operation, batch };
  until ends = until::step;
  std::string of;        ///< name of the operation that ends, without S; else ""
  std::size_t most = 0;  ///< the number
};

/// Returns this number if calls of the operation that wait nearly all end directly after such a
/// moment, and the number is then mostly the same and never larger. Returns nullopt otherwise, and
/// if a thread waits for a moment that another thread brings about with one batch at a time, as
/// with a lock.
/// @param run  a run that was read with run_parts::operations.
std::optional<batch_limit> batch_limit_of(const run_data& run, std::string_view operation);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_BATCH_LIMITS_HPP
