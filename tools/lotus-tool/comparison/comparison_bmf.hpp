// Writes, in Bencher Metric Format (https://bencher.dev), the values of the second of two compared
// runs: those after the change.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP

#include "base/formats/json_writer.hpp"
#include "comparison/comparison.hpp"

namespace lotus::tool {

/// Writes a benchmark for each operation ("Decode") and quantity of batches ("batch wait") with the
/// measure "latency" in ns, and the benchmark "run" with the measure "throughput" in batches per
/// second. A name begins with the loader, if it has one: "val/Decode". The value is that after the
/// change. If a confidence interval of the relative change is known, also writes a lower and an
/// upper bound: the value before the change, changed by the lower and by the upper end of the
/// interval.
void write_bmf(const comparison& found, json_writer& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP
