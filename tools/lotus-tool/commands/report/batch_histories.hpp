// Writes the histories of batches for the report's page, on which the user can select a batch.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_BATCH_HISTORIES_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_BATCH_HISTORIES_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "log/operation_names.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Writes {"all":count,"histories":base64}. `histories` contains LEB128 numbers for every batch, in
/// order of epoch and index:
/// - index (zigzag), epoch, 1 + index of the log that preprocessed the whole batch (0: unknown or
/// several logs), 1 + ns of the batch's preprocessing on the critical path (0: unknown), and
/// whether the batch arrived out of order;
/// - seven times: dispatch, begin and end of preprocessing, begin and end of the wait, arrival at
/// the consumer, end of the step. An unknown time is 0. A known time is 1, followed by its
/// difference (zigzag) to the previous known time; the first difference is to the beginning of the
/// run;
/// - number of stage spans; for each, 1 + number of its name on the page, 1 + index of its log,
/// whether it worked on one item and, if so, the item's number (zigzag), its start (encoded like
/// the times above) and its duration.
/// @param path  the critical path; null if unknown.
/// @param most  maximum number of batches; if there are more, evenly distributed ones are written.
/// @param names  the names of operations in all runs; names of stages are added.
void write_batch_histories(json_writer& json, const run_data& run, const critical_path* path,
                           std::size_t most, name_table& names);

/// The operations of a run that the page lists. If a program has put numbers into the names of its
/// operations, there may be a million, and a page with all of them would be too large for a
/// browser. Then the operations with the most total time are listed, and all others appear as one
/// operation in the timeline and in the call tree.
class listed_operations {
 public:
  /// @param most  the maximum number of listed operations.
  listed_operations(const run_data& run, std::size_t most);

  bool has(std::uint32_t name) const noexcept { return is_listed_.empty() || is_listed_[name]; }

  /// Returns a sentence about the operations that are not listed; "" if all are listed.
  std::string note() const { return note_; }

  /// Returns the number in `names` of each operation of the run, and adds the names that are
  /// missing there. All operations that are not listed get the same number.
  std::vector<std::uint32_t> numbers_in(name_table& names) const;

 private:
  const run_data& run_;
  std::vector<bool> is_listed_;  // indexed by the id of a name; empty: all are listed
  std::string note_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_BATCH_HISTORIES_HPP
