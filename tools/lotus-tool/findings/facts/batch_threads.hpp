// What the threads that build batches do with these: whether each builds only one, and what it does
// before it passes one on.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_BATCH_THREADS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_BATCH_THREADS_HPP

#include <cstddef>
#include <string>

#include "model/run_data.hpp"

namespace lotus::tool {

/// Threads that each built only one batch.
struct batch_threads {
  std::size_t threads =
      0;  ///< how many are known; 0: the program does not start one for each batch
  std::size_t batches = 0;  ///< that were built in all
  double mean_ns = 0;       ///< mean time of a batch
  /// Whether as many threads as batches are known, so that each batch had one of its own.
  bool all_known = false;
  bool shares_logs = false;  ///< whether several of them share a log
};

/// Finds threads that end after one batch. Threads that ended share logs later on; then the first
/// ones, which had logs of their own, and the samples of `lotus-tool run` tell. Throws input_error.
batch_threads find_batch_threads(const run_data& run);

/// How the threads that built batches spent the time in which the consumer waited for these,
/// although they were ready.
struct kept_batches {
  double share = 0;        ///< share (0..1) of it in which they had not begun another batch
  double cpu_share = 0;    ///< share (0..1) of it in which they had not, and used a CPU
  std::string function{};  ///< the one that used most CPU time then; "" if not sampled
};

kept_batches find_kept_batches(const run_data& run);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_BATCH_THREADS_HPP
