// Stores how operations and processes used the heap, and what they did not free, if
// liblotus_memory.so counted allocations.
#ifndef LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
#define LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "log/operation_names.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {

/// How an operation used the heap, summed over all of its calls. Includes everything that happened
/// inside a call on its thread, also in functions that the operation called. Bytes are the
/// requested sizes.
struct heap_use {
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t max_allocated_bytes = 0;  ///< maximum number of bytes that a single call allocated
  std::uint64_t freed_bytes = 0;  ///< bytes freed, including blocks that other operations allocated
  std::uint64_t frees = 0;
  /// Bytes allocated in the calls and not freed when the calls ended.
  std::uint64_t retained_bytes = 0;
  std::uint64_t retained_blocks = 0;
  std::uint64_t peak_bytes = 0;  ///< largest growth of the thread's heap during one call

  /// Adds what a line says about one call.
  void add(const side_line& line);
};

/// Bytes that one operation had allocated and that the process had not freed at a certain moment.
struct held_bytes {
  std::uint32_t name = 0;  ///< name of the operation, as a number in run_data::names
  /// First unit (such as a batch) of the range of units in which the bytes were allocated.
  std::uint64_t first_unit = 0;
  std::uint64_t bytes = 0;
};

/// The latest known state of a process's heap.
struct process_heap {
  std::int64_t time_ns = INT64_MIN;  ///< time of by_operation and of the totals
  std::uint64_t held = 0;            ///< bytes of the heap in use
  /// Maximum number of bytes that the process held. It is sampled only at the ends of units
  /// (batches), so the true peak may be higher.
  std::uint64_t max_held = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t units = 0;      ///< number of units (such as batches) that had begun
  std::uint32_t unit_name = 0;  ///< name of the units, as a number in run_data::names
  std::vector<held_bytes> by_operation;

  /// Stores that the process held `bytes` when `begun` units with the name `unit` had begun.
  void take_heap(std::uint32_t unit, std::uint64_t bytes, std::uint64_t begun) noexcept;
  // The next two functions store values of the moment `at_ns`. Values of a later moment replace all
  // stored values; values of an earlier moment are ignored.
  void add_held(std::int64_t at_ns, std::uint32_t name, std::uint64_t bytes,
                std::uint64_t first_unit);
  /// @param which  0 if `total` is a number of bytes, otherwise it is a number of allocations.
  void take_total(std::int64_t at_ns, std::uint64_t total, std::uint64_t which) noexcept;

 private:
  /// Returns whether to store values of the moment `at_ns`: false if later values are stored
  /// already. If the stored values are earlier, clears by_operation.
  bool continues(std::int64_t at_ns) noexcept;
};

struct heap_data {
  /// For each operation, which is a number in run_data::names, its use of the heap.
  std::map<std::uint32_t, heap_use> operations;
  /// The heap of each process, by process id. Processes whose id is unknown share one entry.
  std::map<std::uint64_t, process_heap> processes;

  /// Whether allocations were counted at all.
  bool known() const noexcept { return !processes.empty(); }

  /// Returns the use of the heap by an operation; all zeros if it never used the heap.
  heap_use of(std::uint32_t name) const {
    const auto found = operations.find(name);
    return found == operations.end() ? heap_use{} : found->second;
  }
};

/// Bytes that an operation allocates for each unit (batch) and that are never freed.
struct leak {
  /// Innermost operation at the allocation, as a number in run_data::names.
  std::uint32_t name = 0;
  std::uint32_t unit_name = 0;  ///< name of the units, as in process_heap::unit_name
  double bytes_per_unit = 0;
  double low = 0;  ///< lower end of the 99 % confidence interval
  double high = 0;
  std::uint64_t units = 0;  ///< number of units from which the rate was calculated
};

/// Returns the statistically significant leaks; the largest comes first.
///
/// A growing heap is no proof of a leak, because a pipeline also holds batches in flight and
/// caches. So liblotus_memory.so counts for each generation (a range of batches, see
/// lotus/heap/heap_hook.hpp) the bytes that were allocated in it and are not freed. At the end of a
/// run, the allocations of its first half should be freed, except those of the first tenth, which
/// is the setup. A leak's bytes per batch are the mean of the unfreed bytes over these generations,
/// weighted by their length, with Student's interval. An array that grew is no leak: it leaves
/// memory in only a few generations. So at least three generations in each half of the tested ones
/// must have unfreed memory.
std::vector<leak> find_leaks(const heap_data& heap);

/// Returns "Decode leaves 256 B behind with every batch (99 %: 250 B to 262 B, from 40 batches)".
std::string leak_text(const leak& found, const name_table& names);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
