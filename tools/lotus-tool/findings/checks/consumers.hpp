// Finds threads of one process that wait for batches at the same time.
#ifndef LOTUS_TOOL_FINDINGS_CHECKS_CONSUMERS_HPP
#define LOTUS_TOOL_FINDINGS_CHECKS_CONSUMERS_HPP

#include <cstddef>

#include "model/run_data.hpp"

namespace lotus::tool {

struct concurrent_consumers {
  std::size_t threads = 0;  ///< of the process that has most of them; 0: nowhere is more than one
  /// Whether they take their batches from one loader: threads that build batches do so for several
  /// of them.
  bool share_loader = false;
};

concurrent_consumers find_concurrent_consumers(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CHECKS_CONSUMERS_HPP
