// Writes the values after a change in Bencher Metric Format (https://bencher.dev).
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP

#include "base/formats/json_writer.hpp"
#include "comparison/comparison.hpp"

namespace lotus::tool {

/// Writes a benchmark for each operation ("Decode") and quantity of batches ("batch wait") with the
/// measure "latency" in ns, and the benchmark "run" with the measure "throughput" in batches per
/// second. Writes only values after the change. Their bounds, if known, are the value before,
/// changed by the ends of the confidence interval. The loader's name comes first: "val/Decode".
void write_bmf(const comparison& found, json_writer& to);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_BMF_HPP
