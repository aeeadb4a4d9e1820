// Reads PyTorch profiler traces, so that a run's events can be merged into them.
#ifndef LOTUS_TOOL_ACCELERATOR_TRACE_TORCH_TRACE_HPP
#define LOTUS_TOOL_ACCELERATOR_TRACE_TORCH_TRACE_HPP

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/trace/device_trace.hpp"
#include "base/diagnostics.hpp"
#include "base/files/byte_stream.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_reader.hpp"

namespace lotus::tool {

/// The parts of a Chrome trace that merging needs, found by reading the file once. The trace is an
/// object with traceEvents or a bare array, perhaps compressed with gzip. It stays on disk, because
/// it may be larger than the memory.
struct torch_trace {
  std::string path;
  std::uint64_t key_at = 0;      ///< offset after the object's first '{', where a key may be added
  std::uint64_t events_end = 0;  ///< offset of the ']' that ends the events
  bool is_object = false;
  bool has_keys = false;     ///< whether the object is not empty
  bool has_events = false;   ///< whether there is an event before `events_end`
  std::int64_t base_ns = 0;  ///< baseTimeNanoseconds; 0 for old traces, which have absolute times
  std::set<std::uint64_t> numbers;  ///< pids and tids that the trace uses
  trace_faults faults;              ///< what is repaired in the copy
  std::vector<json_edit> edits;     ///< the changes that repair it

  /// Copies the trace, repaired, up to the position where events can be added. Inserts `key` (such
  /// as
  /// "\"a\":1") as the first member of the object, unless `key` is empty or the trace is an array.
  /// Throws input_error.
  void copy_head(output_file& out, std::string_view key) const;
  void copy_rest(output_file& out) const;

 private:
  void copy(byte_stream& in, std::uint64_t until, output_file& out) const;
};

enum class json_kind : std::uint8_t {
  trace,  ///< a trace that a run can be merged into
  /// Output of this tool or of the original Lotus (the Python tool of the paper), which is never
  /// used as input.
  ours,
  not_trace,  ///< JSON without events
  broken      ///< cannot be read, or is not valid JSON and cannot be repaired
};

struct json_scan {
  json_kind kind = json_kind::broken;
  torch_trace trace;
  std::string what;  ///< if the kind is `broken`: the path, and what is wrong where
};

/// Checks whether a file is a profiler's trace, and finds the parts that merging needs. Reads the
/// file as a stream, so that the memory used does not depend on its size. Throws nothing if the
/// file cannot be read, but says so.
json_scan scan_json(const std::string& path);

/// Finds the profiler trace in `dir` among the files whose names are those of traces. Ignores
/// lotus-tool's own output, files that are no traces (with a note) and broken files (with a
/// warning). If there are several traces, returns the last one in natural order and prints a
/// warning.
std::optional<torch_trace> find_torch_trace(const std::string& dir, diagnostic_log& diagnostics);

/// Returns the name of a merged trace, as in the original Lotus: "a.pt.trace_fine.json" for
/// "a.pt.trace.json".
std::string merged_name(const std::string& path, bool coarse);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_TRACE_TORCH_TRACE_HPP
