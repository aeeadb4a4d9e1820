#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "accelerator/trace/device_trace.hpp"
#include "base/errors.hpp"
#include "base/files/byte_stream.hpp"
#include "base/formats/json_reader.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

/// A time or duration that was read from a trace, in ns and in microseconds. Traces contain
/// microseconds.
struct trace_time {
  std::int64_t ns = 0;
  double us = 0;
  bool fractional = false;
};

/// Converts a decimal number of microseconds; without loss if it has at most three decimals.
std::optional<trace_time> time_of(std::string_view text) {
  trace_time time;
  if (std::from_chars(text.data(), text.data() + text.size(), time.us).ec != std::errc()) {
    return std::nullopt;
  }
  if (std::abs(time.us) > 9e15) return std::nullopt;
  std::int64_t whole_us = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole_us);
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  // If the text is not a plain decimal number, but has a sign before the point or an exponent, such
  // as "-.5" or "1e6", round it.
  if (error != std::errc() || (!rest.empty() && rest.front() != '.')) {
    time.ns = std::llround(time.us * 1000);
  } else {
    std::int64_t thousandths = 0;
    std::int64_t unit = 100;
    for (const char c : rest.substr(std::min<std::size_t>(1, rest.size()))) {
      if (c < '0' || c > '9') return trace_time{std::llround(time.us * 1000), time.us, true};
      thousandths += (c - '0') * unit;
      unit /= 10;
    }
    time.ns = whole_us * 1000 + (text.front() == '-' ? -thousandths : thousandths);
  }
  time.fractional = time.ns % 1000 != 0;
  return time;
}

/// The value of a key: a number or a text.
struct scalar {
  std::string_view text;  ///< empty for whole numbers that are not quoted
  std::optional<std::uint64_t> whole;

  /// Returns the number, which may be quoted.
  std::optional<std::int64_t> number() const noexcept {
    if (whole) return static_cast<std::int64_t>(*whole);
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const bool is_whole = !text.empty() && std::from_chars(text.data(), end, value).ptr == end;
    return is_whole ? std::optional(value) : std::nullopt;
  }
  std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(number().value_or(0)); }
  std::optional<trace_time> time() const {
    if (!whole) return time_of(text);
    if (*whole > 9'000'000'000'000'000U) return std::nullopt;
    return trace_time{static_cast<std::int64_t>(*whole) * 1000, static_cast<double>(*whole), false};
  }
  /// Returns the number of a process or thread. A text such as "main" gets a number above those of
  /// real processes.
  std::uint64_t identity() const noexcept {
    if (const std::optional<std::int64_t> n = number()) return static_cast<std::uint64_t>(*n);
    return std::hash<std::string_view>()(text) | std::uint64_t{1} << 63U;
  }
};

/// An event of the trace, with those of its fields that the analysis uses.
struct event {
  std::string name;
  std::string category;
  std::optional<trace_time> time;
  std::optional<trace_time> duration;
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> device;
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;
  copy_kind copy = copy_kind::other;
  bool complete = false;
  bool communicates = false;
  bool has_times_as_text = false;
};

/// Converts the direction of a copy that ROCm's runtime calls hipMemcpyKind.
copy_kind copy_kind_of_rocm(std::int64_t number) noexcept {
  if (number == 1) return copy_kind::to_device;
  if (number == 2) return copy_kind::to_host;
  return number == 3 ? copy_kind::on_device : copy_kind::other;
}

/// A key, and what to do with its value.
template <class To>
struct field {
  std::string_view key;
  void (*take)(To& to, const scalar& value);
};

/// Fields of an event that are read. Each is one line.
constexpr std::array event_fields{
    field<event>{"ph", [](event& e, const scalar& v) { e.complete = v.text == "X"; }},
    field<event>{"cat", [](event& e, const scalar& v) { e.category.assign(v.text); }},
    field<event>{"name", [](event& e, const scalar& v) { e.name.assign(v.text); }},
    field<event>{"pid", [](event& e, const scalar& v) { e.process = v.identity(); }},
    field<event>{"tid", [](event& e, const scalar& v) { e.thread = v.identity(); }},
    field<event>{"ts", [](event& e, const scalar& v) { e.time = v.time(); }},
    field<event>{"dur", [](event& e, const scalar& v) { e.duration = v.time(); }},
};

/// Fields of an event's arguments.
constexpr std::array argument_fields{
    field<event>{"correlation", [](event& e, const scalar& v) { e.correlation = v.size(); }},
    field<event>{"stream", [](event& e, const scalar& v) { e.stream = v.number(); }},
    field<event>{"device", [](event& e, const scalar& v) { e.device = v.number(); }},
    field<event>{"bytes", [](event& e, const scalar& v) { e.bytes = v.size(); }},
    field<event>{"size", [](event& e, const scalar& v) { e.bytes = v.size(); }},
    field<event>{"Collective name", [](event& e, const scalar& /*v*/) { e.communicates = true; }},
    field<event>{"kind",
                 [](event& e, const scalar& v) {
                   const std::optional<std::int64_t> n = v.number();
                   e.copy = n ? copy_kind_of_rocm(*n) : copy_kind_of(v.text);
                 }},
};

/// Fields of the trace itself, and of its distributedInfo.
constexpr std::array trace_fields{
    field<device_trace>{
        "baseTimeNanoseconds",
        [](device_trace& t, const scalar& v) { t.base_ns = v.number().value_or(0); }},
};
constexpr std::array rank_fields{
    field<device_trace>{"rank", [](device_trace& t, const scalar& v) { t.rank = v.whole; }},
    field<device_trace>{"world_size", [](device_trace& t, const scalar& v) { t.ranks = v.whole; }},
};

/// Receives the events of a trace while the file is read, and stores the data that the analysis
/// needs in a device_trace.
class kineto_handler final : public json_events {
 public:
  kineto_handler(device_trace& trace, time_rounding rounding)
      : trace_(trace), rounding_(rounding) {}

  bool found_events() const noexcept { return found_; }
  /// Returns whether the text begins with an object or an array, as JSON does.
  bool began() const noexcept { return began_; }

  bool begin_object() override { return open(); }
  bool begin_array() override {
    if (depth_ == 0 || (depth_ == 1 && next_is_events_)) {
      found_ = true;
      events_depth_ = depth_ + 1;
    }
    return open();
  }
  bool end_array() override {
    if (depth_ == events_depth_) events_depth_ = 0;
    --depth_;
    return true;
  }
  bool end_object() override {
    if (in_arguments_ && depth_ == events_depth_ + 2) in_arguments_ = false;
    if (in_event() && depth_ == events_depth_ + 1) keep();
    --depth_;
    return true;
  }

  bool key(std::string_view key) override {
    forget_key();
    if (in_event()) {
      if (depth_ == events_depth_ + 1) {
        of_event_ = find(event_fields, key);
        next_is_arguments_ = key == "args";
      } else if (in_arguments_ && depth_ == events_depth_ + 2) {
        of_event_ = find(argument_fields, key);
      }
    } else if (depth_ == 1) {
      next_is_events_ = key == "traceEvents";
      of_trace_ = find(trace_fields, key);
      trace_.merged = trace_.merged || key == own_trace_key;
    } else if (depth_ == 2) {
      of_trace_ = find(rank_fields, key);
    }
    return true;
  }

  bool text(std::string_view text) override {
    if (of_event_ != nullptr && (of_event_->key == "ts" || of_event_->key == "dur")) {
      event_.has_times_as_text = true;
    }
    return take({text, std::nullopt});
  }
  bool whole_number(std::uint64_t number) override { return take({{}, number}); }
  bool number(std::string_view text) override { return take({text, std::nullopt}); }
  bool other_value() override {
    forget_key();
    return true;
  }

 private:
  template <class To, std::size_t N>
  static const field<To>* find(const std::array<field<To>, N>& fields, std::string_view key) {
    for (const field<To>& of : fields) {
      if (of.key == key) return &of;
    }
    return nullptr;
  }

  bool in_event() const noexcept { return events_depth_ != 0; }

  void forget_key() noexcept {
    of_event_ = nullptr;
    of_trace_ = nullptr;
    next_is_events_ = next_is_arguments_ = false;
  }

  bool take(const scalar& value) {
    if (of_event_ != nullptr) of_event_->take(event_, value);
    if (of_trace_ != nullptr) of_trace_->take(trace_, value);
    forget_key();
    return true;
  }

  bool open() {
    began_ = true;
    if (next_is_arguments_) in_arguments_ = true;
    forget_key();
    ++depth_;
    if (in_event() && depth_ == events_depth_ + 1) {
      event next;
      next.name = std::move(event_.name);  // keeps the memory of the strings for the next event
      next.category = std::move(event_.category);
      next.name.clear();
      next.category.clear();
      event_ = std::move(next);
      in_arguments_ = false;
    }
    return true;
  }

  /// Returns the start and end of the event. If they are impossible, counts it and returns nullopt.
  std::optional<thread_range> range() {
    if (!event_.time || !event_.duration || event_.duration->ns < 0) {
      ++trace_.faults.impossible_times;
      return std::nullopt;
    }
    if (event_.has_times_as_text) ++trace_.faults.numbers_as_text;
    const trace_time& start = *event_.time;
    const trace_time& length = *event_.duration;
    const bool fractional = start.fractional || length.fractional;
    trace_.fractional = trace_.fractional || fractional;
    if (!fractional || rounding_ == time_rounding::exact) {
      return thread_range{start.ns, start.ns + length.ns, 0};
    }
    // HolisticTraceAnalysis (a tool for PyTorch traces) calculates with doubles. The same is done
    // here, so that both tools give equal results.
    return thread_range{static_cast<std::int64_t>(std::ceil(start.us)) * 1000,
                        static_cast<std::int64_t>(std::floor(start.us + length.us)) * 1000, 0};
  }

  void keep() {
    const std::string_view name = event_.name;
    // Only lotus-tool and the original Lotus (the Python tool of the paper) write names that begin
    // with "SBatch", so one of them has merged a run into this trace.
    trace_.merged = trace_.merged || name.substr(0, 6) == "SBatch";
    if (!event_.complete) return;
    const std::string_view category = event_.category;
    const bool is_copy = category == "gpu_memcpy" || category == "Memcpy";
    if (is_copy || category == "kernel" || category == "Kernel" || category == "gpu_memset" ||
        category == "Memset" || category == "mtia_ccp_events") {
      // MTIA also records what its streams do not do, without the number of a stream.
      if (category == "mtia_ccp_events" && !event_.stream) return;
      if (const auto found = range()) keep_work(*found, is_copy);
    } else if (ends_with(category, "_runtime") || ends_with(category, "_driver") ||
               category == "Runtime") {
      if (const auto found = range()) keep_call(*found);
    } else if (category.substr(0, 4) != "gpu_") {
      keep_range(category, name);
    }
  }

  void keep_work(const thread_range& range, bool is_copy) {
    device_work work;
    work.start_ns = range.start_ns;
    work.end_ns = range.end_ns;
    work.correlation = event_.correlation;
    work.bytes = event_.bytes;
    work.name = trace_.names.number_of(event_.name);
    const std::pair key(event_.device.value_or(static_cast<std::int64_t>(event_.process)),
                        event_.stream.value_or(static_cast<std::int64_t>(event_.thread)));
    const auto [at, added] =
        streams_.try_emplace(key, static_cast<std::uint32_t>(trace_.streams.size()));
    if (added) trace_.streams.push_back({key.first, key.second});
    work.stream = at->second;
    work.kind = event_.communicates ? work_kind::communication : work_kind_of(event_.name);
    if (is_copy || work.kind == work_kind::copy) {
      work.kind = work_kind::copy;
      work.copy = copy_kind_of(event_.name);
      work.memory = host_memory_of(event_.name);
    }
    trace_.work.push_back(work);
  }

  void keep_call(const thread_range& range) {
    runtime_call call{range.start_ns,           range.end_ns,
                      event_.correlation,       event_.bytes,
                      thread_index(),           trace_.names.number_of(event_.name),
                      call_kind_of(event_.name)};
    if (call.kind == call_kind::copy) {
      call.copy = copy_kind_of(event_.name);
      if (call.copy == copy_kind::other) call.copy = event_.copy;
    }
    trace_.calls.push_back(call);
  }

  /// Keeps what a host thread did. Waits and steps are known by their names, because their category
  /// differs between versions of PyTorch.
  void keep_range(std::string_view category, std::string_view name) {
    const std::optional<std::uint64_t> step = profiler_step_of(name);
    const bool is_wait = is_wait_of_loader(name);
    const bool is_annotation = category.substr(0, 15) == "user_annotation";
    const bool is_line = category == "python_function";
    if (!step && !is_wait && !is_annotation && !is_line && category != "cpu_op" &&
        category != "Operator") {
      return;
    }
    const std::optional<thread_range> found = range();
    if (!found) return;
    const thread_range of{found->start_ns, found->end_ns, thread_index()};
    if (step) {
      trace_.steps.push_back({of.start_ns, of.end_ns, *step});
    } else if (is_wait) {
      add_wait_of_loader(trace_, of, name);
    } else if (is_annotation && name == wait_scope_name) {
      trace_.waits.push_back({of, std::nullopt, true});
    } else if (is_annotation && name == copy_scope_name) {
      trace_.copies.push_back(of);
    } else {
      const range_kind kind = is_line         ? range_kind::line
                              : is_annotation ? range_kind::annotation
                                              : range_kind::framework;
      trace_.ranges.push_back({of, trace_.names.number_of(event_.name), kind});
    }
  }

  std::uint32_t thread_index() {
    const std::pair key(event_.process, event_.thread);
    if (key == last_thread_.first) return last_thread_.second;
    const auto [at, added] =
        threads_.try_emplace(key, static_cast<std::uint32_t>(trace_.threads.size()));
    if (added) trace_.threads.push_back({key.first, key.second});
    last_thread_ = *at;
    return at->second;
  }

  using thread_key = std::pair<std::uint64_t, std::uint64_t>;

  device_trace& trace_;
  time_rounding rounding_;
  event event_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> streams_;
  std::map<thread_key, std::uint32_t> threads_;
  std::pair<thread_key, std::uint32_t> last_thread_{{UINT64_MAX, UINT64_MAX}, 0};
  std::size_t depth_ = 0;
  std::size_t events_depth_ = 0;  ///< depth of the array of events while it is open, otherwise 0
  const field<event>* of_event_ = nullptr;         ///< the field whose value comes next
  const field<device_trace>* of_trace_ = nullptr;  ///< the same for fields of the trace
  bool next_is_events_ = false;
  bool next_is_arguments_ = false;
  bool in_arguments_ = false;
  bool found_ = false;
  bool began_ = false;
};

/// Returns what to do with a file that is no JSON; empty if its beginning does not tell.
std::string unpacking_hint(const std::string& path) {
  struct packed {
    std::string_view begin, what, command;
  };
  constexpr std::array all{packed{"\xFD"
                                  "7zXZ",
                                  "xz", "unxz"},
                           packed{"PK\x03\x04", "zip", "unzip"},
                           packed{"\x28\xB5\x2F\xFD", "zstd", "unzstd"},
                           packed{"BZh", "bzip2", "bunzip2"}};
  if (ends_with(path, ".nsys-rep") || ends_with(path, ".qdrep")) {
    return ": a report of nsys; convert it with 'nsys export --type sqlite' and give the database";
  }
  byte_stream stream(path);
  const std::string_view begin = stream.buffered();
  if (begin.substr(0, 2) == "\xFF\xFE" || begin.substr(0, 2) == "\xFE\xFF") {
    return ": its text is UTF-16; convert it to UTF-8, for example with iconv";
  }
  for (const packed& of : all) {
    if (begin.substr(0, of.begin.size()) == of.begin) {
      return ": compressed with " + std::string(of.what) + "; unpack it with '" +
             std::string(of.command) + "' and give the unpacked file";
    }
  }
  return {};
}

}  // namespace

bool has_name_of_trace(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 6> ends{".json",    ".json.gz",  ".sqlite",
                                                 ".json.xz", ".json.zst", ".json.zip"};
  return std::any_of(ends.begin(), ends.end(),
                     [name](std::string_view end) { return ends_with(name, end); });
}

std::string why_no_json(const std::string& path, const std::string& wrong) {
  const std::string hint = unpacking_hint(path);
  if (!hint.empty()) return path + hint;
  const bool is_cut = ends_with(wrong.substr(0, wrong.find(" at byte")), "end of input");
  return path + (is_cut ? ": not valid JSON, perhaps cut off: " : ": not valid JSON: ") + wrong;
}

device_trace read_kineto_trace(const std::string& path, time_rounding rounding) {
  device_trace trace;
  trace.path = path;
  trace.ends_early = true;
  kineto_handler handler(trace, rounding);
  std::optional<std::string> wrong;
  try {
    byte_stream stream(path);
    wrong = stream_json(stream, handler, &trace.faults.json);
  } catch (const input_error& error) {
    throw broken_trace(error.what());
  }
  if (wrong) {
    const std::string why = why_no_json(path, *wrong);
    if (handler.found_events() || !unpacking_hint(path).empty()) throw broken_trace(why);
    if (handler.began()) throw input_error(why);
    throw input_error(
        path + ": neither a trace of PyTorch's profiler (JSON) nor a database of nsys: " + *wrong);
  }
  if (!handler.found_events())
    throw input_error(path + ": no profiler trace: it has no traceEvents");
  if (trace.work.empty() && trace.faults.impossible_times > 0) {
    throw broken_trace(path + ": no work of an accelerator with possible times; " +
                       std::to_string(trace.faults.impossible_times) +
                       " events have no time, or a negative duration");
  }
  if (trace.work.empty()) {
    throw input_error(path +
                      ": no work of an accelerator: it has no kernel, gpu_memcpy or gpu_memset "
                      "events; record with ProfilerActivity.CUDA");
  }
  return trace;
}

}  // namespace lotus::tool
