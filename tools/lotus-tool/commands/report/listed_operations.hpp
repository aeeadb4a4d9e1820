// Decides which operations the page names, if a run has very many.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_LISTED_OPERATIONS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_LISTED_OPERATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "log/operation_names.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

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

#endif  // LOTUS_TOOL_COMMANDS_REPORT_LISTED_OPERATIONS_HPP
