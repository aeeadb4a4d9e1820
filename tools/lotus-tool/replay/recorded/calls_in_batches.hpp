// Counts the calls of operations that built batches, and finds the order of the operations.
#ifndef LOTUS_TOOL_REPLAY_RECORDED_CALLS_IN_BATCHES_HPP
#define LOTUS_TOOL_REPLAY_RECORDED_CALLS_IN_BATCHES_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/run_data.hpp"

namespace lotus::tool {

/// The calls of operations on batches or items, compared with those of one operation. Names are
/// those in the program.
class calls_in_batches {
 public:
  /// @param last  the operation to compare with; "": none.
  calls_in_batches(const run_data& run, std::string last);

  /// Returns the operations that ended before the first call of `last` in most of the batches or
  /// items in which both ran, such as those inside `last`.
  std::set<std::string> up_to() const;
  /// Returns the calls of the operation that ran after `last` most often, divided by the calls of
  /// `last`; 1 if no operation did. Operations with one call per batch do not count if `last` has
  /// more.
  /// @param works  the number of batches and items.
  double share_passed_on(std::size_t works) const;
  /// Returns the number of calls of the operation with the most calls.
  double most_calls() const;
  /// Returns the bytes that up_to() and `last` allocated in the run and did not free; nullopt if
  /// allocations were not counted.
  std::optional<double> result_bytes() const;

 private:
  struct counted {
    double calls = 0;
    double before = 0;     // number of batches or items in which it ended before `last`
    double after = 0;      // number of those in which it only ended after `last`
    double outermost = 0;  // number of those before `last` in which no other operation contained it
    std::optional<double> kept_bytes;  // allocated and not freed
  };
  void count(const run_data& run, std::size_t file);

  std::string last_;
  std::map<std::string, counted> of_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_REPLAY_RECORDED_CALLS_IN_BATCHES_HPP
