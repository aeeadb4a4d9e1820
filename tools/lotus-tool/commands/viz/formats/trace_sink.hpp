// The interface through which runs are drawn. Every output format implements it.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {

/// Whether an arrow leaves a slice or arrives at it.
enum class flow_end : std::uint8_t { none, leaves, arrives };

struct flow_point {
  flow_end end = flow_end::none;
  std::uint64_t id = 0;  ///< number of the arrow, the same at both ends and unique in an output
};

/// A range of points of arrows, which the owner of the points keeps in memory.
struct flow_points {
  const flow_point* first = nullptr;
  const flow_point* last = nullptr;

  const flow_point* begin() const noexcept { return first; }
  const flow_point* end() const noexcept { return last; }
};

struct event_argument {
  std::string_view name;  ///< a short word that needs no escapes in any format
  std::uint64_t value = 0;
};

/// The arguments of a slice that are numbers, at most three.
class event_arguments {
 public:
  void add(std::string_view name, std::uint64_t value) { all_.at(size_++) = {name, value}; }

  bool empty() const noexcept { return size_ == 0; }
  const event_argument* begin() const noexcept { return all_.data(); }
  const event_argument* end() const noexcept { return all_.data() + size_; }

 private:
  std::array<event_argument, 3> all_;
  std::size_t size_ = 0;
};

struct event_text {
  std::string_view name;
  std::string_view text;
};

/// Describes what trace_sink::slice() draws: an operation with arguments, an interval that is no
/// operation or, if `instant` is true, a point in time. All slices of one kind have the same name,
/// because viewers add up slices by name; numbers are given as arguments. Times are ns since the
/// Unix epoch. The texts are valid only during the call of slice().
struct slice_event {
  track where;
  std::string_view category;  ///< one of trace_sink::categories
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool instant = false;
  event_arguments arguments{};
  flow_points flows{};
  std::vector<event_text> texts{};  ///< further arguments of the slice
};

/// An operation that can pause and continue, perhaps on another thread.
struct async_event {
  std::uint32_t pid = 0;
  std::string_view name;
  std::uint64_t id = 0;  ///< number that is unique in an output
  /// Number of the row in a viewer. Events with the same name and lane do not overlap, and are
  /// written in order of time.
  std::uint32_t lane = 0;
  time_span extent;
  std::vector<time_span>
      running{};  ///< disjoint intervals within `extent` in which it ran, in order
};

/// Receives the contents of a trace. Functions must be called in this order: begin(); every
/// process; every thread before its first slice; the slices track by track; finish(). The slices of
/// a track must nest; they come in order of start, with the longer first, so that a parent comes
/// before its children. Asynchronous operations and counters may be written between two tracks.
/// Throws input_error if the output cannot be written.
class trace_sink {
 public:
  trace_sink() = default;
  trace_sink(const trace_sink&) = delete;
  trace_sink& operator=(const trace_sink&) = delete;
  virtual ~trace_sink() = default;

  /// Categories, in this order: operations, batch records, stage spans, time off the CPU,
  /// asynchronous operations, ranges that the program named, the critical path, the verdict.
  static constexpr std::string_view categories[] = {"op",    "batch", "stage", "cpu",
                                                    "async", "range", "path",  "verdict"};

  /// Begins the output.
  /// @param base_ns  the earliest time in the output, in ns since the Unix epoch.
  virtual void begin(std::int64_t base_ns) = 0;
  virtual void process(std::uint32_t pid, std::string_view name, std::uint32_t order) = 0;
  virtual void thread(track where, std::string_view name, std::uint32_t order) = 0;
  /// Adds a further track of the thread `of`; the track has a number of its own.
  virtual void thread_below(track where, track of, std::string_view name, std::uint32_t order) = 0;
  /// Adds a track that belongs to the process and to no thread; the track has a number of its own.
  virtual void process_track(track where, std::string_view name, std::uint32_t order) = 0;
  /// Writes a call of an operation without arguments.
  /// @param name  number of the name in the name_table that the sink was created with.
  virtual void operation(track where, std::uint32_t name, std::int64_t start_ns,
                         std::int64_t duration_ns) = 0;
  virtual void slice(const slice_event& event) = 0;
  virtual void async(const async_event& event) = 0;
  /// Sets a counter to a value from `at_ns` on. The calls for one counter are in order of time.
  virtual void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
                       std::int64_t value) = 0;
  virtual void finish() = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_TRACE_SINK_HPP
