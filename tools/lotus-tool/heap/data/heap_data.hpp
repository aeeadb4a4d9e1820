// What operations and processes did to the heap, if the run was recorded with its allocations.
#ifndef LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
#define LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP

#include <cstdint>
#include <map>
#include <vector>

namespace lotus::tool {

/// Sums over all calls of an operation, including everything that it called. Bytes are those that
/// were requested. Each call counts only what its own thread did.
struct heap_use {
  std::uint64_t told = 0;  ///< calls that allocated or freed anything
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t most_allocated_bytes = 0;  ///< maximum of a single call
  std::uint64_t freed_bytes = 0;           ///< also counts blocks that other operations allocated
  std::uint64_t frees = 0;
  std::uint64_t retained_bytes = 0;  ///< allocated in the calls and not freed when they ended
  std::uint64_t retained_blocks = 0;
  std::uint64_t peak_bytes = 0;  ///< largest growth of the thread's heap during one call
};

/// Bytes that a process held at one moment and that one operation had allocated.
struct held_bytes {
  std::uint32_t name = 0;        ///< number in run_data::names
  std::uint64_t first_unit = 0;  ///< the first unit of the generation in which they were allocated
  std::uint64_t bytes = 0;
};

/// The latest state of a process's heap.
struct process_heap {
  std::int64_t time_ns = INT64_MIN;  ///< time of by_operation and of the totals
  std::uint64_t held = 0;            ///< bytes
  std::uint64_t most_held = 0;       ///< maximum of the samples taken at units' ends: not the peak
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t units = 0;      ///< units that had begun
  std::uint32_t unit_name = 0;  ///< name of the units: number in run_data::names
  std::vector<held_bytes> by_operation;

  /// Stores the bytes held when `begun` units had begun; `unit` is the name of these units.
  void take_heap(std::uint32_t unit, std::uint64_t bytes, std::uint64_t begun) noexcept;
  // One thread records all values of one moment. Values of a later moment replace them.
  void take_held(std::int64_t at_ns, std::uint32_t name, std::uint64_t bytes,
                 std::uint64_t first_unit);
  /// @param which  0: `total` is a number of bytes; else a number of allocations.
  void take_total(std::int64_t at_ns, std::uint64_t total, std::uint64_t which) noexcept;

 private:
  /// Whether values of this moment are not older than those that are stored.
  bool goes_on(std::int64_t at_ns) noexcept;
};

struct heap_data {
  std::map<std::uint32_t, heap_use> operations;     ///< by number in run_data::names
  std::map<std::uint64_t, process_heap> processes;  ///< by pid; unknown pids share one entry

  /// Whether allocations were counted at all.
  bool known() const noexcept { return !processes.empty(); }

  /// Returns zeros if the operation never used the heap.
  heap_use of(std::uint32_t name) const {
    const auto found = operations.find(name);
    return found == operations.end() ? heap_use{} : found->second;
  }

  // Add the values of one call of operation `name` (number in run_data::names).
  void add_allocated(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls);
  void add_freed(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls);
  void add_retained(std::uint32_t name, std::uint64_t bytes, std::uint64_t blocks);
  void add_peak(std::uint32_t name, std::uint64_t bytes);
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
