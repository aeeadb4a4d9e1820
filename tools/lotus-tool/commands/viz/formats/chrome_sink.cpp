// Writes Chrome's JSON trace format for Perfetto's UI and chrome://tracing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/trace/torch_trace.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "base/text.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/formats/viz_formats.hpp"
#include "commands/viz/viewer_times.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {
namespace {

/// Times are µs with three decimals, relative to baseTimeNanoseconds. Absolute times would be
/// rounded to 0.25 µs, because viewers read numbers as doubles. When a run is merged into a
/// profiler trace, times are relative to the base of that trace.
class chrome_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; all must outlive it. The caller commits `out`.
  /// @param torch  the trace to merge into; nullptr for none.
  chrome_sink(output_file& out, const name_table& names, const torch_trace* torch = nullptr)
      : out_(out), names_(names), torch_(torch) {}

  void begin(std::int64_t base_ns) override {
    event_.clear();
    json_writer to(event_);
    if (torch_ != nullptr) {
      to.member(own_trace_key, LOTUS_TOOL_VERSION);
      base_ns_ = torch_->base_ns;
      torch_->copy_head(out_, event_);
      first_ = !torch_->has_events;
      return;
    }
    base_ns_ = base_ns;
    to.begin_object().member(own_trace_key, LOTUS_TOOL_VERSION).member("displayTimeUnit", "ms");
    to.member("baseTimeNanoseconds", base_ns).key("traceEvents").begin_array();
    out_.write(event_);
  }

  void process(std::uint32_t pid, std::string_view name, std::uint32_t order) override {
    metadata("process_name", {pid, 0}, "name", name);
    metadata("process_sort_index", {pid, 0}, "sort_index", order);
  }

  void thread(track where, std::string_view name, std::uint32_t order) override {
    metadata("thread_name", where, "name", name);
    metadata("thread_sort_index", where, "sort_index", order);
  }

  void thread_below(track where, track /*of*/, std::string_view name,
                    std::uint32_t order) override {
    thread(where, name, order);
  }

  void process_track(track where, std::string_view name, std::uint32_t order) override {
    thread(where, name, order);
  }

  void operation(track where, std::uint32_t name, std::int64_t start_ns,
                 std::int64_t duration_ns) override {
    change_track(where);
    const bool is_known = name < heads_.size() && !heads_[name].empty();
    char* p = begin_with(is_known ? heads_[name] : make_head(where, name));
    p = put_us(p, start_ns - base_ns_);
    p = put(p, R"(,"dur":)");
    p = times_.put_duration(p, start_ns - base_ns_, duration_ns);
    *p++ = '}';
    out_.advance_to(p);
  }

  void slice(const slice_event& event) override {
    change_track(event.where);
    char* p = begin_with(head_of(event));
    p = put_us(p, event.start_ns - base_ns_);
    if (!event.instant) {
      p = put(p, R"(,"dur":)");
      p = times_.put_duration(p, event.start_ns - base_ns_, event.duration_ns);
    }
    if (event.texts.empty()) {
      p = put_numbers(p, event.arguments);
      *p++ = '}';
      out_.advance_to(p);
    } else {
      out_.advance_to(p);
      write_arguments(event);
    }
    for (const flow_point& point : event.flows) flow(event, point);
  }

  void async(const async_event& event) override {
    async_end(event, "b", event.name, event.extent.start_ns);
    for (const time_span& segment : event.running) {
      async_end(event, "b", "running", segment.start_ns);
      async_end(event, "e", "running", segment.end_ns);
    }
    async_end(event, "e", event.name, event.extent.end_ns);
  }

  void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
               std::int64_t value) override {
    if (counter_.text.empty() || counter_.pid != pid || counter_.name != name) {
      event_ = ",\n";
      json_writer to(event_);
      to.begin_object().member("ph", "C").member("name", name).member("pid", pid).key("ts");
      counter_.pid = pid;
      counter_.name = name;
      counter_.text.assign(event_);
    }
    char* p = put_us(begin_with(counter_.text), at_ns - base_ns_);
    p = put(p, R"(,"args":{"value":)");
    p = put(put_integer(p, value), "}}");
    out_.advance_to(p);
  }

  void finish() override {
    if (torch_ != nullptr) {
      torch_->copy_rest(out_);
    } else {
      out_.write("\n]}\n");
    }
  }

 private:
  /// Begins an event in event_. The caller must end the event and write it.
  json_writer begin_event() {
    event_ = first_ ? "\n" : ",\n";
    first_ = false;
    json_writer to(event_);
    to.begin_object();
    return to;
  }

  template <class Value>
  void metadata(std::string_view what, track where, std::string_view key, const Value& value) {
    json_writer to = begin_event();
    to.member("ph", "M").member("name", what).member("pid", where.pid);
    if (where.tid != 0) to.member("tid", where.tid);
    to.key("args").begin_object().member(key, value).end_object().end_object();
    out_.write(event_);
  }

  static void append_place(json_writer& to, track where) {
    to.member("pid", where.pid).member("tid", where.tid);
  }

  static void append_time(json_writer& to, std::string_view key, std::int64_t ns) {
    std::array<char, 24> digits{};
    const char* const end = put_us(digits.data(), ns);
    to.key(key).raw({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }

  void change_track(track where) {
    if (where.pid != track_.pid || where.tid != track_.tid) begin_track(where);
  }

  void begin_track(track where) {
    track_ = where;
    heads_.clear();
    slice_heads_.clear();
    event_ = ",";
    json_writer to(event_);
    append_place(to, where);
    to.key("ts");
    place_.assign(event_);
    times_.change_track();
  }

  /// Writes arguments that are all numbers. Their names need no escapes.
  static char* put_numbers(char* p, const event_arguments& arguments) {
    if (arguments.empty()) return p;
    p = put(p, R"(,"args":)");
    char separator = '{';
    for (const event_argument& a : arguments) {
      *p++ = separator;
      *p++ = '"';
      p = put(put(p, a.name), "\":");
      p = put_integer(p, a.value);
      separator = ',';
    }
    *p++ = '}';
    return p;
  }

  /// Writes the arguments and the end of an event.
  void write_arguments(const slice_event& event) {
    event_ = R"(,"args":)";
    json_writer to(event_);
    to.begin_object();
    for (const event_argument& a : event.arguments) to.member(a.name, a.value);
    for (const event_text& t : event.texts) to.member(t.name, t.text);
    to.end_object();
    event_ += '}';
    out_.write(event_);
  }

  void flow(const slice_event& event, const flow_point& point) {
    const bool leaves = point.end == flow_end::leaves;
    // Viewers connect an arrow to the slice that is open at the arrow's time. A slice is no longer
    // open at its end, so the arrow begins 1 ns before the end.
    const std::int64_t last_ns =
        event.duration_ns > 0 ? event.start_ns + event.duration_ns - 1 : event.start_ns;
    char* p = out_.room(output_file::room_bytes);
    p = put(p, ",\n");
    p = put(p, leaves ? R"({"ph":"s","cat":"batch","name":"batch","id":)"
                      : R"({"ph":"f","bp":"e","cat":"batch","name":"batch","id":)");
    p = put_integer(p, point.id);
    p = place_.put(p);
    p = put_us(p, (leaves ? last_ns : event.start_ns) - base_ns_);
    *p++ = '}';
    out_.advance_to(p);
  }

  void async_end(const async_event& event, std::string_view phase, std::string_view name,
                 std::int64_t at_ns) {
    json_writer to = begin_event();
    to.member("ph", phase).member("cat", "async").member("name", name).member("id", event.id);
    to.member("pid", event.pid).member("tid", event.pid);
    append_time(to, "ts", at_ns - base_ns_);
    to.end_object();
    out_.write(event_);
  }

  const copied_text& make_head(track where, std::uint32_t name) {
    const bool is_kept = name < max_heads;
    if (is_kept && name >= heads_.size()) heads_.resize(std::min(max_heads, names_.size()));
    copied_text& head = is_kept ? heads_[name] : other_head_;
    event_ = ",\n";
    json_writer to(event_);
    to.begin_object()
        .member("ph", "X")
        .member("cat", "op")
        .member("name", shown_name(names_.name(name)));
    append_place(to, where);
    to.key("ts");
    head.assign(event_);
    return head;
  }

  const copied_text& head_of(const slice_event& event) {
    for (const slice_head& known : slice_heads_) {
      if (known.instant == event.instant && known.name == event.name &&
          known.category == event.category) {
        return known.text;
      }
    }
    event_ = ",\n";
    json_writer to(event_);
    to.begin_object().member("ph", event.instant ? "i" : "X");
    if (event.instant) to.member("s", "t");
    to.member("cat", event.category).member("name", event.name);
    append_place(to, event.where);
    to.key("ts");
    if (slice_heads_.size() == max_slice_heads) {
      other_head_.assign(event_);
      return other_head_;
    }
    slice_head& head = slice_heads_.emplace_back();
    head.category = event.category;
    head.name = event.name;
    head.instant = event.instant;
    head.text.assign(event_);
    return head.text;
  }

  /// Writes the beginning of an event. Returns the position after it, in memory with enough space
  /// for two times and three arguments.
  char* begin_with(const copied_text& head) {
    if (first_ || head.text().size() > output_file::room_bytes / 2) return begin_with_long(head);
    return head.put(out_.room(output_file::room_bytes));
  }

  char* begin_with_long(const copied_text& head) {
    out_.write(head.text().substr(first_ ? 1 : 0));
    first_ = false;
    return out_.room(output_file::room_bytes);
  }

  output_file& out_;
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

}  // namespace

std::unique_ptr<trace_sink> make_chrome(output_file& file, const name_table& names,
                                        const torch_trace* torch) {
  return std::make_unique<chrome_sink>(file, names, torch);
}

}  // namespace lotus::tool
