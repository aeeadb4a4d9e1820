#include "accelerator/trace/device_trace.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace lotus::tool {
namespace {

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

bool begins_with(std::string_view text, std::string_view start) noexcept {
  return text.substr(0, start.size()) == start;
}

bool contains_one_of(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return contains(text, part); });
}

bool begins_with_one_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [text](std::string_view start) { return begins_with(text, start); });
}

}  // namespace

std::string_view copy_kind_name(copy_kind kind) noexcept {
  switch (kind) {
    case copy_kind::to_device:
      return "HtoD";
    case copy_kind::to_host:
      return "DtoH";
    case copy_kind::on_device:
      return "DtoD";
    case copy_kind::between_devices:
      return "PtoP";
    case copy_kind::none:
    case copy_kind::other:
      break;
  }
  return "other";
}

// The patterns in this function, and their order, are those of HolisticTraceAnalysis 0.5
// (hta/common/types.py), so that both tools classify work in the same way.
work_kind work_kind_of(std::string_view name) noexcept {
  const bool copies = begins_with_one_of(name, {"Memcpy", "hipMemcpy"});
  const bool sets = begins_with_one_of(name, {"Memset", "hipMemset"});
  if (begins_with_one_of(name, {"nccl", "hccl"}) || contains(name, "ncclKernel")) {
    return work_kind::communication;
  }
  if (copies || begins_with(name, "dma") || begins_with(name, "Copy")) return work_kind::copy;
  if (sets) return work_kind::set_memory;
  if (begins_with(name, "hip")) return work_kind::communication;
  const bool no_kernel =
      contains_one_of(name, {"Memcpy", "Memset", "dma", "Sync"}) ||
      begins_with_one_of(name, {"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe",
                                "cpum_exe_subgraph", "collective_subgraph_execution"});
  return no_kernel ? work_kind::other : work_kind::compute;
}

copy_kind copy_kind_of(std::string_view name) noexcept {
  if (contains_one_of(name, {"HtoD", "HostToDevice", "H2D"})) return copy_kind::to_device;
  if (contains_one_of(name, {"DtoH", "DeviceToHost", "D2H"})) return copy_kind::to_host;
  if (contains_one_of(name, {"DtoD", "DeviceToDevice", "D2D"})) return copy_kind::on_device;
  if (contains_one_of(name, {"PtoP", "PeerToPeer", "P2P"})) return copy_kind::between_devices;
  return copy_kind::other;
}

host_memory host_memory_of(std::string_view name) noexcept {
  if (contains(name, "Pageable")) return host_memory::pageable;
  return contains(name, "Pinned") ? host_memory::pinned : host_memory::unknown;
}

call_kind call_kind_of(std::string_view name) noexcept {
  if (contains_one_of(name, {"Memcpy", "memcpy"})) return call_kind::copy;
  if (contains(name, "Synchronize")) return call_kind::synchronize;
  if (contains_one_of(name, {"Launch", "Memset", "memset", "runFunction"})) {
    return call_kind::launch;
  }
  return call_kind::other;
}

bool is_wait_of_loader(std::string_view name) noexcept {
  return begins_with(name, "enumerate(DataLoader)");
}

}  // namespace lotus::tool
