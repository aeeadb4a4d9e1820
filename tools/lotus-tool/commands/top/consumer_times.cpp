#include "commands/top/consumer_times.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/log_line.hpp"
#include "log/log_reader.hpp"

namespace lotus::tool {

consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns) {
  consumer_times found;
  std::vector<std::int64_t> waits_ended;
  std::int64_t waited_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  for (const log_file& file : run.files) {
    if (file.role == file_role::worker) continue;
    read_log(file, nullptr, [&](const log_line& line) {
      const bool wait = line.kind == record_kind::wait;
      if ((!wait && line.kind != record_kind::consumed) || line.end_ns() < begin_ns) return;
      const std::int64_t start_ns = std::max(line.start_ns, begin_ns);
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, wait ? line.end_ns() : line.start_ns);
      if (!wait) found.received_ns.push_back(line.start_ns);
      if (!wait || line.duration_ns == marker_ns) return;
      waits_ended.push_back(line.end_ns());
      waited_ns += std::max<std::int64_t>(line.end_ns() - start_ns, 0);
    });
  }
  if (found.received_ns.empty()) found.received_ns = waits_ended;
  std::sort(found.received_ns.begin(), found.received_ns.end());
  if (!waits_ended.empty() && last_ns > first_ns) {
    found.wait_share =
        std::min(static_cast<double>(waited_ns) / static_cast<double>(last_ns - first_ns), 1.0);
  }
  return found;
}

}  // namespace lotus::tool
