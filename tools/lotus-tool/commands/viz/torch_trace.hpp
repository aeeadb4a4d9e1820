// A PyTorch profiler trace, into which a run's events are merged.
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

/// What one reading of a Chrome trace found; the trace itself stays on disk, because it may be
/// larger than the memory. Plain or gzip, an object with traceEvents or a bare array.
struct torch_trace {
  std::string path;
  std::uint64_t key_at = 0;      ///< byte behind the first '{' of an object
  std::uint64_t events_end = 0;  ///< byte of the ']' that ends the events
  bool is_object = false;
  bool has_keys = false;     ///< the object is not empty
  bool has_events = false;   ///< there is an event before that ']'
  std::int64_t base_ns = 0;  ///< baseTimeNanoseconds; 0 in the old form, whose times are absolute
  std::set<std::uint64_t> numbers;  ///< pids and tids in use

  /// Copies the trace up to where events can be added; `key` (such as "\"a\":1") is put in as the
  /// object's first member, unless it is empty or the trace an array. Throws input_error.
  void copy_head(output_file& out, std::string_view key) const;
  void copy_rest(output_file& out) const;
};

/// What a .json file turned out to be.
enum class json_kind : std::uint8_t {
  trace,      ///< a trace to merge into
  ours,       ///< written by this tool or by the original's script: never input
  not_trace,  ///< valid JSON, or the beginning of it, that holds no events
  broken      ///< no JSON
};

struct json_scan {
  json_kind kind = json_kind::broken;
  torch_trace trace;
  std::string what;  ///< of a broken one: what is wrong, and where
};

/// Reads the file as a stream; memory does not grow with it. Throws input_error when it cannot
/// be read.
json_scan scan_json(const std::string& path);

/// The profiler trace in `dir`: files whose names end in .json or .json.gz. Ours are passed over,
/// files that are no trace too, with a note, broken ones with a warning. Of several the last in
/// natural order is taken, with a warning. Throws input_error.
std::optional<torch_trace> find_torch_trace(const std::string& dir, diagnostic_log& diagnostics);

/// Where the original writes the merged trace: "a.pt.trace.json" becomes "a.pt.trace_fine.json".
std::string merged_name(const std::string& path, bool coarse);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_TORCH_TRACE_HPP
