// Reads PyTorch profiler traces, into which a run's events are merged.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_TORCH_TRACE_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_TORCH_TRACE_HPP

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/files/output_file.hpp"

namespace lotus::tool {

/// What one pass over a Chrome trace found: plain or gzip, an object with traceEvents or a bare
/// array. The trace itself stays on disk, because it may be larger than the memory.
struct torch_trace {
  std::string path;
  std::uint64_t key_at = 0;      ///< offset after the first '{' of an object
  std::uint64_t events_end = 0;  ///< offset of the ']' that ends the events
  bool is_object = false;
  bool has_keys = false;     ///< the object is not empty
  bool has_events = false;   ///< there is an event before that ']'
  std::int64_t base_ns = 0;  ///< baseTimeNanoseconds; 0 in the old form, which has absolute times
  std::set<std::uint64_t> numbers;  ///< used pids and tids

  /// Copies the trace up to where events can be added. Inserts `key` (such as "\"a\":1") as the
  /// object's first member, unless it is empty or the trace is an array. Throws input_error.
  void copy_head(output_file& out, std::string_view key) const;
  void copy_rest(output_file& out) const;
};

/// What kind of JSON a file contains.
enum class json_kind : std::uint8_t {
  trace,      ///< a trace to merge into
  ours,       ///< written by this tool or by the original tool's script: never an input
  not_trace,  ///< valid JSON, or its beginning, without events
  broken      ///< not JSON
};

struct json_scan {
  json_kind kind = json_kind::broken;
  torch_trace trace;
  std::string what;  ///< if broken: what is wrong, and where
};

/// Reads the file as a stream, so memory does not grow with its size. Throws input_error if it
/// cannot be read.
json_scan scan_json(const std::string& path);

/// Finds the profiler trace in `dir`, among files whose names end in .json or .json.gz. Ignores our
/// own output; ignores files that are not traces, with a note, and broken ones, with a warning. If
/// there are several, returns the last one in natural order, with a warning. Throws input_error.
std::optional<torch_trace> find_torch_trace(const std::string& dir, diagnostic_log& diagnostics);

/// The path of the original tool's merged trace: "a.pt.trace.json" becomes "a.pt.trace_fine.json".
std::string merged_name(const std::string& path, bool coarse);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_TORCH_TRACE_HPP
