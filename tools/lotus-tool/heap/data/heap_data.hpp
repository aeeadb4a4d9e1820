// What operations and processes did to the heap, where a run was recorded with its allocations.
#ifndef LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
#define LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP

#include <cstdint>
#include <map>
#include <vector>

namespace lotus::tool {

/// Of all calls of an operation; what it called is part of it. Bytes are those that were asked for.
/// Each is about the thread that it ran on.
struct heap_use {
  std::uint64_t told = 0;  ///< calls that did anything
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t most_allocated_bytes = 0;  ///< in one call
  std::uint64_t freed_bytes = 0;           ///< whoever had allocated it
  std::uint64_t frees = 0;
  std::uint64_t retained_bytes = 0;  ///< at the calls' ends, of what was allocated in them
  std::uint64_t retained_blocks = 0;
  std::uint64_t peak_bytes = 0;  ///< largest growth of the thread's heap within a call
};

/// What a process held of what one operation had allocated, freed by whatever thread.
struct held_bytes {
  std::uint32_t name = 0;        ///< of run_data::names
  std::uint64_t first_unit = 0;  ///< of the generation in which it was allocated
  std::uint64_t bytes = 0;
};

/// What a process last told of its heap.
struct process_heap {
  std::int64_t time_ns = INT64_MIN;  ///< when; also of the totals
  std::uint64_t held = 0;            ///< bytes
  std::uint64_t most_held = 0;       ///< of all samples, which are taken as units end: no peak
  std::uint64_t allocated_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t units = 0;      ///< that had begun
  std::uint32_t unit_name = 0;  ///< what they are: of run_data::names
  std::vector<held_bytes> by_operation;

  /// What is held, when so many units had begun; they are called `unit`.
  void take_heap(std::uint32_t unit, std::uint64_t bytes, std::uint64_t begun) noexcept;
  // What is told of one moment comes on one thread, and a later moment's replaces it.
  void take_held(std::int64_t at_ns, std::uint32_t name, std::uint64_t bytes,
                 std::uint64_t first_unit);
  /// @param which  0: the total is of bytes; else of allocations.
  void take_total(std::int64_t at_ns, std::uint64_t total, std::uint64_t which) noexcept;

 private:
  /// Whether what is told of this moment is not too late.
  bool goes_on(std::int64_t at_ns) noexcept;
};

struct heap_data {
  std::map<std::uint32_t, heap_use> operations;     ///< by number of run_data::names
  std::map<std::uint64_t, process_heap> processes;  ///< by pid; unknown ones are one

  /// Whether allocations were counted at all.
  bool known() const noexcept { return !processes.empty(); }

  /// Zeros of one that never did anything.
  heap_use of(std::uint32_t name) const {
    const auto found = operations.find(name);
    return found == operations.end() ? heap_use{} : found->second;
  }

  // Of one call of the operation `name`, which is of run_data::names.
  void add_allocated(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls);
  void add_freed(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls);
  void add_retained(std::uint32_t name, std::uint64_t bytes, std::uint64_t blocks);
  void add_peak(std::uint32_t name, std::uint64_t bytes);
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_HEAP_DATA_HEAP_DATA_HPP
