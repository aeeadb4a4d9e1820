#include "replay/time_left.hpp"

namespace lotus::tool {

time_left left_of(const pipeline_change& change, const std::string& name, bool cached) {
  time_left left;
  const auto faster = change.faster.find(name);
  if (faster != change.faster.end()) left.cpu = left.blocked = 1 / faster->second;
  if (name == change.order.later) {
    left.cpu *= change.order.share;
    left.blocked *= change.order.share;
  }
  const auto disk = change.disk_waits.find(name);
  if (disk != change.disk_waits.end()) left.blocked *= 1 - disk->second;
  if (change.offload.count(name) != 0) {
    if (change.offload_waits) {
      left.waits = left.cpu;
    } else {
      left.blocked = 0;
    }
    left.cpu = 0;
  }
  if (cached && change.cached.count(name) != 0) left = {0, 0, 0};
  return left;
}

bool changes_parts(const pipeline_change& change) {
  return !change.faster.empty() || !change.cached.empty() || !change.disk_waits.empty() ||
         !change.offload.empty() || !change.order.later.empty();
}

measured_work with_left(measured_work work, const time_left& left) {
  work.blocked_ns = left.blocked * work.blocked_ns + left.waits * work.cpu_ns;
  work.cpu_ns *= left.cpu;
  return work;
}

}  // namespace lotus::tool
