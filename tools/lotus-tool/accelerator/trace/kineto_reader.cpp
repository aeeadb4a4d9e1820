#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
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
    field_ = field::none;
    next_is_events_ = false;
    if (depth_ == 1 && events_depth_ == 0) {
      next_is_events_ = key == "traceEvents";
      if (key == "baseTimeNanoseconds") field_ = field::base;
      trace_.merged = trace_.merged || key == own_trace_key;
    } else if (depth_ == 2 && events_depth_ == 0) {
      if (key == "rank") field_ = field::rank;
    } else if (in_event() && depth_ == events_depth_ + 1) {
      field_ = event_field(key);
    } else if (in_arguments_ && depth_ == events_depth_ + 2) {
      field_ = argument_field(key);
    }
    return true;
  }

  bool text(std::string_view text) override {
    switch (std::exchange(field_, field::none)) {
      case field::phase:
        event_.complete = text == "X";
        break;
      case field::name:
        event_.name.assign(text);
        // Only lotus-tool and the original Lotus (the Python tool of the paper) write names that
        // begin with "SBatch", so one of them has merged a run into this trace.
        trace_.merged = trace_.merged || text.substr(0, 6) == "SBatch";
        break;
      case field::category:
        event_.category.assign(text);
        break;
      case field::stream:  // some profiler versions write this number as a text, which is ignored
      case field::device:
      case field::correlation:
      case field::none:
      case field::process:
      case field::thread:
      case field::time:
      case field::duration:
      case field::arguments:
      case field::bytes:
      case field::base:
      case field::rank:
        break;
    }
    return true;
  }

  bool whole_number(std::uint64_t number) override {
    const auto signed_number = static_cast<std::int64_t>(number);
    const field of = std::exchange(field_, field::none);
    switch (of) {
      case field::process:
        event_.process = number;
        break;
      case field::thread:
        event_.thread = number;
        break;
      case field::time:
      case field::duration:
        if (number <= 9'000'000'000'000'000U) {
          take_time(of, {signed_number * 1000, static_cast<double>(number), false});
        }
        break;
      case field::device:
        event_.device = signed_number;
        break;
      case field::stream:
        event_.stream = signed_number;
        break;
      case field::correlation:
        event_.correlation = number;
        break;
      case field::bytes:
        event_.bytes = number;
        break;
      case field::base:
        if (number <= INT64_MAX) trace_.base_ns = signed_number;
        break;
      case field::rank:
        trace_.rank = number;
        break;
      case field::none:
      case field::phase:
      case field::name:
      case field::category:
      case field::arguments:
        break;
    }
    return true;
  }

  bool number(std::string_view text) override {
    const field of = std::exchange(field_, field::none);
    if (of != field::time && of != field::duration) return true;
    if (const std::optional<trace_time> time = time_of(text)) take_time(of, *time);
    return true;
  }

  bool other_value() override {
    field_ = field::none;
    return true;
  }

 private:
  enum class field : std::uint8_t {
    none,
    phase,
    name,
    category,
    process,
    thread,
    time,
    duration,
    arguments,
    device,
    stream,
    correlation,
    bytes,
    base,
    rank
  };

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
    bool complete = false;

    void clear() noexcept {
      name.clear();  // clear() keeps the memory of the string for the next event
      category.clear();
      time.reset();
      duration.reset();
      stream.reset();
      device.reset();
      process = thread = correlation = bytes = 0;
      complete = false;
    }
  };

  bool in_event() const noexcept { return events_depth_ != 0; }

  static field event_field(std::string_view key) noexcept {
    if (key == "ph") return field::phase;
    if (key == "cat") return field::category;
    if (key == "name") return field::name;
    if (key == "pid") return field::process;
    if (key == "tid") return field::thread;
    if (key == "ts") return field::time;
    if (key == "dur") return field::duration;
    return key == "args" ? field::arguments : field::none;
  }
  static field argument_field(std::string_view key) noexcept {
    if (key == "correlation") return field::correlation;
    if (key == "stream") return field::stream;
    if (key == "device") return field::device;
    return key == "bytes" ? field::bytes : field::none;
  }

  bool open() {
    began_ = true;
    if (field_ == field::arguments) in_arguments_ = true;
    field_ = field::none;
    ++depth_;
    if (in_event() && depth_ == events_depth_ + 1) {
      event_.clear();
      in_arguments_ = false;
    }
    return true;
  }

  void take_time(field of, const trace_time& time) {
    (of == field::time ? event_.time : event_.duration) = time;
  }

  std::pair<std::int64_t, std::int64_t> times() {
    const trace_time& start = *event_.time;
    const trace_time& length = *event_.duration;
    if (!start.fractional && !length.fractional) return {start.ns, start.ns + length.ns};
    trace_.fractional = true;
    if (rounding_ == time_rounding::exact) return {start.ns, start.ns + length.ns};
    // HolisticTraceAnalysis (a tool for PyTorch traces) calculates with doubles. The same is done
    // here, so that both tools give equal results.
    return {static_cast<std::int64_t>(std::ceil(start.us)) * 1000,
            static_cast<std::int64_t>(std::floor(start.us + length.us)) * 1000};
  }

  void keep() {
    if (!event_.complete || !event_.time || !event_.duration) return;
    const std::string_view category = event_.category;
    const bool is_kernel =
        category == "kernel" || category == "Kernel" || category == "mtia_ccp_events";
    const bool is_copy = category == "gpu_memcpy" || category == "Memcpy";
    const bool is_set = category == "gpu_memset" || category == "Memset";
    if (is_kernel || is_copy || is_set) {
      if (event_.stream) keep_work(is_copy);
    } else if (category == "cpu_op" || category == "Operator") {
      const auto [start, end] = times();
      trace_.operators.push_back({start, end, thread_index()});
    } else if (ends_with(category, "_runtime") || ends_with(category, "_driver") ||
               category == "Runtime") {
      const auto [start, end] = times();
      trace_.calls.push_back(
          {start, end, event_.correlation, thread_index(), call_kind_of(event_.name)});
    } else if (category == "user_annotation") {
      keep_annotation();
    }
  }

  void keep_work(bool is_copy) {
    device_work work;
    std::tie(work.start_ns, work.end_ns) = times();
    work.correlation = event_.correlation;
    work.bytes = event_.bytes;
    const std::pair key(event_.device.value_or(static_cast<std::int64_t>(event_.process)),
                        *event_.stream);
    const auto [at, added] =
        streams_.try_emplace(key, static_cast<std::uint32_t>(trace_.streams.size()));
    if (added) trace_.streams.push_back({key.first, key.second});
    work.stream = at->second;
    work.kind = work_kind_of(event_.name);
    if (is_copy || work.kind == work_kind::copy) {
      work.copy = copy_kind_of(event_.name);
      work.memory = host_memory_of(event_.name);
    }
    trace_.work.push_back(work);
  }

  void keep_annotation() {
    constexpr std::string_view step = "ProfilerStep#";
    const std::string_view name = event_.name;
    if (name.substr(0, step.size()) == step) {
      profiler_step found;
      std::tie(found.start_ns, found.end_ns) = times();
      std::from_chars(name.data() + step.size(), name.data() + name.size(), found.number);
      trace_.steps.push_back(found);
    } else if (is_wait_of_loader(name) || name == wait_scope_name) {
      const auto [start, end] = times();
      trace_.waits.push_back({{start, end, thread_index()}, std::nullopt, name == wait_scope_name});
    } else if (name == copy_scope_name) {
      const auto [start, end] = times();
      trace_.copies.push_back({start, end, thread_index()});
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
  field field_ = field::none;
  bool next_is_events_ = false;
  bool in_arguments_ = false;
  bool found_ = false;
  bool began_ = false;
};

}  // namespace

device_trace read_kineto_trace(const std::string& path, time_rounding rounding) {
  device_trace trace;
  trace.path = path;
  trace.ends_early = true;
  byte_stream stream(path);
  kineto_handler handler(trace, rounding);
  if (const std::optional<std::string> wrong = stream_json(stream, handler)) {
    if (!handler.began()) {
      if (ends_with(path, ".nsys-rep") || ends_with(path, ".qdrep")) {
        throw input_error(path +
                          ": a report of nsys; convert it with 'nsys export --type sqlite' "
                          "and give the database");
      }
      throw input_error(path +
                        ": neither a trace of PyTorch's profiler (JSON) nor a database of "
                        "nsys: " +
                        *wrong);
    }
    throw input_error(path + ": not valid JSON, perhaps cut off: " + *wrong);
  }
  if (!handler.found_events())
    throw input_error(path + ": no profiler trace: it has no traceEvents");
  if (trace.work.empty()) {
    throw input_error(path +
                      ": no work of an accelerator: it has no kernel, gpu_memcpy or gpu_memset "
                      "events; record with ProfilerActivity.CUDA");
  }
  return trace;
}

}  // namespace lotus::tool
