// What a picture of a run consists of; every output format is one implementation.
#ifndef LOTUS_TOOL_TRACE_SINK_HPP
#define LOTUS_TOOL_TRACE_SINK_HPP

#include <cstdint>
#include <string_view>

namespace lotus::tool {

/// Where a slice is drawn. Both numbers are unique in an output, also across runs.
struct track {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};

/// Which end of an arrow leaves from, or arrives at, a slice.
enum class flow_end : std::uint8_t { none, leaves, arrives };

/// A slice, or with `instant` a moment, that belongs to a batch. Times are ns since the Unix
/// epoch. The texts live for the call only.
struct batch_event {
  track where;
  std::string_view name;
  std::string_view family;  ///< the name without the batch's number
  std::int64_t index = 0;
  std::uint32_t epoch = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool instant = false;
  flow_end flow = flow_end::none;
  std::uint64_t flow_id = 0;  ///< the same at both ends, unique in an output
};

/// Receives a picture. Order of the calls: begin, then every process and thread before the
/// first slice, then slices, track by track, in order of start and the longer first, so that a
/// parent comes before its children; then counters; finish. Errors: input_error when the output
/// cannot be written.
class trace_sink {
 public:
  trace_sink() = default;
  trace_sink(const trace_sink&) = delete;
  trace_sink& operator=(const trace_sink&) = delete;
  virtual ~trace_sink() = default;

  /// @param base_ns  no time in the output is earlier.
  virtual void begin(std::int64_t base_ns) = 0;
  virtual void process(std::uint32_t pid, std::string_view name, std::uint32_t order) = 0;
  virtual void thread(track where, std::string_view name, std::uint32_t order) = 0;
  /// @param name  number in the name_table that the sink was made with.
  virtual void operation(track where, std::uint32_t name, std::int64_t start_ns,
                         std::int64_t duration_ns) = 0;
  virtual void batch(const batch_event& event) = 0;
  /// From `at_ns` on the counter has this value; the calls of one counter are in order of time.
  virtual void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
                       std::int64_t value) = 0;
  virtual void finish() = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_TRACE_SINK_HPP
