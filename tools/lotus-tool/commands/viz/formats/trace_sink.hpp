// The interface that every output format implements to write a picture of a run.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

/// Which end of an arrow a slice has: the arrow leaves it or arrives at it.
enum class flow_end : std::uint8_t { none, leaves, arrives };

struct flow_point {
  flow_end end = flow_end::none;
  std::uint64_t id = 0;  ///< the same at both ends, unique in an output
};

struct event_argument {
  std::string_view name;
  std::uint64_t value = 0;
};

/// A slice that is not an operation, or a point in time if `instant` is true. Times are ns since
/// the Unix epoch. The texts are valid only during the call.
struct slice_event {
  track where;
  std::string_view category;  ///< one of trace_sink::categories
  std::string_view name;
  std::string_view family;  ///< the name without its number
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool instant = false;
  std::vector<event_argument> arguments{};
  std::vector<flow_point> flows{};
};

/// An operation that can pause and continue, perhaps on another thread.
struct async_event {
  std::uint32_t pid = 0;
  std::string_view name;
  std::uint64_t id = 0;    ///< unique in an output
  std::uint32_t lane = 0;  ///< events with the same name and lane do not overlap, and come in order
  time_span life;
  std::vector<time_span> running{};  ///< in order, within `life`, without overlaps
};

/// Receives a picture. Order of the calls: begin; every process; every thread before its first
/// slice; slices track by track, nested, in order of start and the longer first, so that a parent
/// comes before its children; asynchronous operations and counters only between tracks; finish.
/// Throws input_error if the output cannot be written.
class trace_sink {
 public:
  trace_sink() = default;
  trace_sink(const trace_sink&) = delete;
  trace_sink& operator=(const trace_sink&) = delete;
  virtual ~trace_sink() = default;

  /// Categories of operations, batch records, stage spans, time off the CPU, asynchronous
  /// operations, and ranges that the program named.
  static constexpr std::string_view categories[] = {"op",  "batch", "stage",
                                                    "cpu", "async", "range"};

  /// @param base_ns  the earliest time in the output.
  virtual void begin(std::int64_t base_ns) = 0;
  virtual void process(std::uint32_t pid, std::string_view name, std::uint32_t order) = 0;
  virtual void thread(track where, std::string_view name, std::uint32_t order) = 0;
  /// A further track of the thread `of`, with its own number.
  virtual void thread_below(track where, track of, std::string_view name, std::uint32_t order) = 0;
  /// @param name  number in the name_table that the sink was created with.
  virtual void operation(track where, std::uint32_t name, std::int64_t start_ns,
                         std::int64_t duration_ns) = 0;
  virtual void slice(const slice_event& event) = 0;
  virtual void async(const async_event& event) = 0;
  /// The counter has this value from `at_ns` on; the calls for one counter are in order of time.
  virtual void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
                       std::int64_t value) = 0;
  virtual void finish() = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP
