// What the threads that build batches do with a batch before they pass it on.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_KEPT_BATCHES_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_KEPT_BATCHES_HPP

#include <string>

#include "model/run_data.hpp"

namespace lotus::tool {

/// How the threads that built batches spent the time in which the consumer waited for these,
/// although they were ready.
struct kept_batches {
  double share = 0;        ///< share (0..1) of it in which they had not begun another batch
  double cpu_share = 0;    ///< share (0..1) of it in which they had not, and used a CPU
  std::string function{};  ///< the one that used most CPU time then; "" if not sampled
};

kept_batches find_kept_batches(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_KEPT_BATCHES_HPP
