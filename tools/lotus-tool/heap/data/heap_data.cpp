#include "heap/data/heap_data.hpp"

#include <algorithm>
#include <cstdint>

namespace lotus::tool {

void process_heap::take_heap(std::uint32_t unit, std::uint64_t bytes,
                             std::uint64_t begun) noexcept {
  max_held = std::max(max_held, bytes);
  if (begun < units) return;
  units = begun;
  unit_name = unit;
  held = bytes;
}

bool process_heap::continues(std::int64_t at_ns) noexcept {
  if (at_ns < time_ns) return false;
  if (at_ns > time_ns) by_operation.clear();
  time_ns = at_ns;
  return true;
}

void process_heap::add_held(std::int64_t at_ns, std::uint32_t name, std::uint64_t bytes,
                            std::uint64_t first_unit) {
  if (continues(at_ns)) by_operation.push_back({name, first_unit, bytes});
}

void process_heap::take_total(std::int64_t at_ns, std::uint64_t total,
                              std::uint64_t which) noexcept {
  if (continues(at_ns)) (which == 0 ? allocated_bytes : allocations) = total;
}

void heap_data::add_allocated(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls) {
  heap_use& of = operations[name];
  ++of.allocating_calls;
  of.allocated_bytes += bytes;
  of.allocations += calls;
  of.max_allocated_bytes = std::max(of.max_allocated_bytes, bytes);
}

void heap_data::add_freed(std::uint32_t name, std::uint64_t bytes, std::uint64_t calls) {
  operations[name].freed_bytes += bytes;
  operations[name].frees += calls;
}

void heap_data::add_retained(std::uint32_t name, std::uint64_t bytes, std::uint64_t blocks) {
  operations[name].retained_bytes += bytes;
  operations[name].retained_blocks += blocks;
}

void heap_data::add_peak(std::uint32_t name, std::uint64_t bytes) {
  operations[name].peak_bytes = std::max(operations[name].peak_bytes, bytes);
}

}  // namespace lotus::tool
