// Finds the logs that belong to a profiler's trace: those of the same rank (process of a
// distributed training).
#pragma once

#include <vector>

#include "accelerator/trace/device_trace.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {

/// The logs of all ranks in one or several runs. All ranks may record to one folder, or each rank
/// to its own.
class rank_logs {
 public:
  explicit rank_logs(const std::vector<run_files>& runs);

  /// Returns the logs that may belong to a trace. Searches the logs in the trace's folder or, if
  /// there are none, all logs. Among these, prefers logs of the trace's rank, and then logs of a
  /// process in the trace. The result points into this object.
  std::vector<const run_files*> of(const device_trace& trace) const;

 private:
  std::vector<consumer_logs> all_;
};

}  // namespace lotus::tool
