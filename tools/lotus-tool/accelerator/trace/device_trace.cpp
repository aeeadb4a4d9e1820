#include "accelerator/trace/device_trace.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <system_error>

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

call_starts::call_starts(const device_trace& trace) {
  calls_.reserve(trace.calls.size());
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    if (trace.calls[i].correlation == 0) continue;
    calls_.emplace_back(trace.calls[i].correlation, static_cast<std::uint32_t>(i));
  }
  std::sort(calls_.begin(), calls_.end());
}

std::size_t call_starts::call_of(const device_work& work) const noexcept {
  if (work.correlation == 0) return SIZE_MAX;
  const auto after =
      std::upper_bound(calls_.begin(), calls_.end(), std::pair(work.correlation, UINT32_MAX));
  if (after == calls_.begin() || std::prev(after)->first != work.correlation) return SIZE_MAX;
  return std::prev(after)->second;
}

std::string_view copy_kind_name(copy_kind kind) noexcept {
  static constexpr std::string_view names[] = {"other", "HtoD", "DtoH", "DtoD", "PtoP", "other"};
  return names[static_cast<std::size_t>(kind)];
}

// Most patterns are those of HolisticTraceAnalysis 0.5 (hta/common/types.py), so that both tools
// classify work in the same way. Different are ROCm's copies, which its runtime carries out with
// kernels of its own, "hip…", which begins the names of many kernels that compute, and waits.
work_kind work_kind_of(std::string_view name) noexcept {
  if (begins_with_one_of(name, {"nccl", "hccl", "rccl", "oneccl", "mscclKernel"}) ||
      contains_one_of(name, {"ncclKernel", "ncclDevKernel", "ncclSymDevKernel", "msccl_kernel",
                             "cross_device_reduce"})) {
    return work_kind::communication;
  }
  if (begins_with_one_of(name,
                         {"Memcpy", "hipMemcpy", "dma", "CopyHostTo", "CopyDeviceTo", "MEMORY_COPY",
                          "__amd_rocclr_copyBuffer", "__amd_rocclr_copyImage"})) {
    return work_kind::copy;
  }
  if (begins_with_one_of(name, {"Memset", "hipMemset", "MEMORY_SET", "MEMORY_FILL",
                                "__amd_rocclr_fillBuffer", "__amd_rocclr_fillImage"})) {
    return work_kind::set_memory;
  }
  if (begins_with_one_of(name, {"Stream Wait Event", "event_wait", "event_record"})) {
    return work_kind::wait;
  }
  const bool no_kernel =
      contains_one_of(name, {"Memcpy", "Memset", "dma", "Sync"}) ||
      begins_with_one_of(name, {"runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
                                "collective_subgraph_execution"});
  return no_kernel ? work_kind::other : work_kind::compute;
}

copy_kind copy_kind_of(std::string_view name) noexcept {
  if (contains_one_of(name, {"HtoD", "HostToDevice", "H2D", "HOST_TO_DEVICE"}))
    return copy_kind::to_device;
  if (contains_one_of(name, {"DtoH", "DeviceToHost", "D2H", "DEVICE_TO_HOST"}))
    return copy_kind::to_host;
  if (contains_one_of(name, {"DtoD", "DeviceToDevice", "D2D", "DEVICE_TO_DEVICE"}))
    return copy_kind::on_device;
  if (contains_one_of(name, {"PtoP", "P2P", "Peer", "PEER_TO_PEER"}))
    return copy_kind::between_devices;
  return copy_kind::other;
}

host_memory host_memory_of(std::string_view name) noexcept {
  if (contains(name, "Pageable")) return host_memory::pageable;
  return contains(name, "Pinned") ? host_memory::pinned : host_memory::unknown;
}

call_kind call_kind_of(std::string_view name) noexcept {
  if (contains_one_of(name, {"Memcpy", "memcpy"})) return call_kind::copy;
  if (contains_one_of(name, {"Synchronize", "synchronize"})) return call_kind::synchronize;
  if (contains_one_of(name, {"Memset", "memset"})) return call_kind::set_memory;
  return contains_one_of(name, {"Launch", "runFunction"}) ? call_kind::launch : call_kind::other;
}

bool is_wait_of_loader(std::string_view name) noexcept {
  return begins_with_one_of(name, {"enumerate(DataLoader)", "enumerate(DataPipe)"});
}

std::optional<std::uint64_t> profiler_step_of(std::string_view name) noexcept {
  constexpr std::string_view begin = "ProfilerStep#";
  if (!begins_with(name, begin)) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data() + begin.size(), end, number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

void add_wait_of_loader(device_trace& trace, const thread_range& range, std::string_view name) {
  trace.waits.push_back({range, std::nullopt, false});
  trace.loads_alone = trace.loads_alone || contains(name, "_SingleProcess");
}

}  // namespace lotus::tool
