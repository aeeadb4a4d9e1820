// Writes Chrome's JSON trace format for Perfetto's UI and chrome://tracing.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_CHROME_SINK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_CHROME_SINK_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/output_buffer.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "base/text.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/viewer_times.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

struct torch_trace;

/// Times are µs with three decimals, relative to baseTimeNanoseconds. Absolute times would be
/// rounded to 0.25 µs, because viewers read numbers as doubles. When a run is merged into a
/// profiler trace, times are relative to the base of that trace.
class chrome_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; all must outlive it. The caller commits `out`.
  /// @param torch  the trace to merge into; nullptr for none.
  chrome_sink(output_file& out, const name_table& names, const torch_trace* torch = nullptr)
      : file_(&out), out_(out), names_(names), torch_(torch) {}

  void begin(std::int64_t base_ns) override;
  void process(std::uint32_t pid, std::string_view name, std::uint32_t order) override;
  void thread(track where, std::string_view name, std::uint32_t order) override;
  void thread_below(track where, track of, std::string_view name, std::uint32_t order) override;
  void process_track(track where, std::string_view name, std::uint32_t order) override;
  void operation(track where, std::uint32_t name, std::int64_t start_ns,
                 std::int64_t duration_ns) override;
  void slice(const slice_event& event) override;
  void async(const async_event& event) override;
  void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
               std::int64_t value) override;
  void finish() override;
  std::size_t max_parts() const noexcept override;
  void draw_in_parts(std::size_t count,
                     const std::function<void(std::size_t, trace_sink&)>& draw) override;

 private:
  /// A sink that continues the output of `whole` in one of several parts.
  chrome_sink(output_buffer& part, const chrome_sink& whole)
      : out_(part), names_(whole.names_), torch_(whole.torch_), base_ns_(whole.base_ns_) {}

  /// Begins an event in event_. The caller must end the event and write it.
  json_writer begin_event();
  template <class Value>
  void metadata(std::string_view what, track where, std::string_view key, const Value& value);
  static void append_place(json_writer& to, track where);
  static void append_time(json_writer& to, std::string_view key, std::int64_t ns);
  void change_track(track where) {
    if (where.pid != track_.pid || where.tid != track_.tid) begin_track(where);
  }
  void begin_track(track where);
  static char* put_numbers(char* p, const event_arguments& arguments);
  void write_arguments(const slice_event& event);
  void flow(const slice_event& event, const flow_point& point);
  void async_end(const async_event& event, std::string_view phase, std::string_view name,
                 std::int64_t at_ns);
  const copied_text& make_head(track where, std::uint32_t name);
  const copied_text& head_of(const slice_event& event);
  char* begin_with(const copied_text& head);
  char* begin_with_long(const copied_text& head);

  output_file* file_ = nullptr;  // null in a part
  output_buffer& out_;
  const name_table& names_;
  const torch_trace* torch_;
  std::int64_t base_ns_ = 0;
  bool first_ = true;
  std::string event_;  // text of the event that is being written
  track track_{};      // track of the current slices
  // For each of the first `max_heads` names, the text of an operation's event up to the value of
  // `ts`. Storing this text for a million names would take more memory than everything else.
  static constexpr std::size_t max_heads = 16384;
  std::vector<copied_text> heads_;
  copied_text other_head_;  // the same for a name that is not among the first
  /// The same for slices of a category and name.
  struct slice_head {
    std::string_view category;
    std::string name;
    bool instant;
    copied_text text;
  };
  static constexpr std::size_t max_slice_heads = 16;
  std::vector<slice_head> slice_heads_;
  /// The same for the counter that was written last.
  struct counter_head {
    std::uint32_t pid = 0;
    std::string name;
    copied_text text;
  };
  counter_head counter_;
  copied_text place_;  // the text of an event from its track to the value of `ts`
  viewer_times times_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_CHROME_SINK_HPP
