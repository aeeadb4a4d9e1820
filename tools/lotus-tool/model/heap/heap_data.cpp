#include "model/heap/heap_data.hpp"

#include <algorithm>
#include <cstdint>

namespace lotus::tool {
namespace {

/// What is told of one moment comes on one thread, and a later moment's replaces it.
void take_of_process(const side_line& line, std::uint32_t name, process_heap& of) {
  const auto bytes = static_cast<std::uint64_t>(line.a);
  const auto number = static_cast<std::uint64_t>(line.b);
  if (line.kind == side_kind::heap) {
    of.most_held = std::max(of.most_held, bytes);
    if (number < of.units) return;
    of.units = number;
    of.unit_name = name;
    of.held = bytes;
    return;
  }
  if (line.time_ns < of.time_ns) return;
  if (line.time_ns > of.time_ns) {
    of.time_ns = line.time_ns;
    of.by_operation.clear();
  }
  if (line.kind == side_kind::held) {
    of.by_operation.push_back({name, number, bytes});
  } else {
    (number == 0 ? of.allocated_bytes : of.allocations) = bytes;
  }
}

}  // namespace

void heap_data::take(const side_line& line, std::uint32_t name, std::uint64_t process) {
  const auto bytes = static_cast<std::uint64_t>(line.a);
  const auto number = static_cast<std::uint64_t>(line.b);
  switch (line.kind) {
    case side_kind::allocated: {
      heap_use& of = operations[name];
      ++of.told;
      of.allocated_bytes += bytes;
      of.allocations += number;
      of.most_allocated_bytes = std::max(of.most_allocated_bytes, bytes);
      return;
    }
    case side_kind::freed:
      operations[name].freed_bytes += bytes;
      operations[name].frees += number;
      return;
    case side_kind::retained:
      operations[name].retained_bytes += bytes;
      operations[name].retained_blocks += number;
      return;
    case side_kind::peak:
      operations[name].peak_bytes = std::max(operations[name].peak_bytes, bytes);
      return;
    default:
      return take_of_process(line, name, processes[process]);
  }
}

}  // namespace lotus::tool
