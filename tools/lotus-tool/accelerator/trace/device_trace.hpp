// Defines the contents of a profiler's trace (the work of accelerators and the calls that launched
// this work), and reads it from PyTorch's profiler.
#ifndef LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP
#define LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/formats/json_reader.hpp"

namespace lotus::tool {

/// The first key in every trace that lotus-tool writes; the tool recognizes its output by this key.
inline constexpr std::string_view own_trace_key = "lotus_tool";

enum class work_kind : std::uint8_t {
  compute,
  communication,
  copy,
  set_memory,
  wait,  ///< the stream waits for an event, so that the device does nothing for it
  other
};

/// The direction of a copy, in the terms of CUPTI (NVIDIA's profiling interface).
enum class copy_kind : std::uint8_t { none, to_device, to_host, on_device, between_devices, other };

/// Returns the short name of a direction, such as "HtoD".
std::string_view copy_kind_name(copy_kind kind) noexcept;

/// The kind of host memory in a copy. Copies of pageable memory are slower, because they need a
/// buffer of the driver.
enum class host_memory : std::uint8_t { unknown, pageable, pinned };

/// A kernel, copy or memset on a device.
struct device_work {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  /// The number with which the trace identifies the call that launched this work; 0 if it is
  /// unknown.
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;   ///< size of a copy or memset; 0 if it is unknown
  std::uint32_t stream = 0;  ///< index in device_trace::streams
  std::uint32_t name = 0;    ///< index in device_trace::names
  work_kind kind = work_kind::compute;
  copy_kind copy = copy_kind::none;
  host_memory memory = host_memory::unknown;
};

struct device_stream {
  std::int64_t device = 0;
  std::int64_t number = 0;
};

enum class call_kind : std::uint8_t { launch, copy, set_memory, synchronize, other };

/// A call of a host thread to the accelerator's runtime or driver.
struct runtime_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;   ///< size of what is copied, if the call says so
  std::uint32_t thread = 0;  ///< index in device_trace::threads
  std::uint32_t name = 0;    ///< index in device_trace::names
  call_kind kind = call_kind::other;
  copy_kind copy = copy_kind::none;  ///< `other` if the call does not say the direction
};

/// A time range of a host thread.
struct thread_range {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t thread = 0;
};

/// What a named range of a host thread shows.
enum class range_kind : std::uint8_t {
  framework,  ///< an operator of the framework, such as aten::add
  line,       ///< a function of Python, such as "train.py(12): step"
  annotation  ///< a range that the program or a library named
};

struct host_range : thread_range {
  std::uint32_t name = 0;  ///< index in device_trace::names
  range_kind kind = range_kind::framework;
};

struct wait_range : thread_range {
  std::optional<std::uint64_t> batch;  ///< number of the batch, if it is known
  bool of_consumer = false;  ///< whether Lotus recorded the wait, so that its thread is a consumer
};

/// A step of the training, which the profiler names "ProfilerStep#12".
struct profiler_step {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t number = 0;
};

struct host_thread {
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
};

/// Numbers for texts, each of which is stored once.
class trace_names {
 public:
  trace_names() = default;
  trace_names(trace_names&&) = default;
  trace_names& operator=(trace_names&&) = default;
  trace_names(const trace_names&) = delete;
  trace_names& operator=(const trace_names&) = delete;
  ~trace_names() = default;

  std::uint32_t number_of(const std::string& name) {
    const auto [at, added] = numbers_.try_emplace(name, static_cast<std::uint32_t>(all_.size()));
    if (added) all_.push_back(&at->first);
    return at->second;
  }
  const std::string& operator[](std::uint32_t number) const { return *all_[number]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> all_;
};

/// What was wrong in a trace, and was mended or left out: numbers of events.
struct trace_faults {
  json_repairs json;
  std::uint64_t numbers_as_text = 0;
  std::uint64_t impossible_times = 0;  ///< left out: no time, or a duration below zero or of ages
  std::uint64_t outside = 0;           ///< left out: far away from the rest of the recording
  std::uint64_t overlapping = 0;       ///< cut where the next event of the stream or thread begins
  std::uint64_t past_synchronization = 0;  ///< cut where a synchronization with the device ended
};

/// The contents of a trace. All times are relative to base_ns. Lists have the order of the trace;
/// the long lists are deques, because a growing vector temporarily needs three times its memory.
struct device_trace {
  std::string path;
  std::int64_t base_ns = 0;  ///< base of all times, in ns since the Unix epoch
  std::optional<std::uint64_t> rank;
  std::optional<std::uint64_t> ranks;  ///< the number of ranks of the whole training
  std::deque<device_work> work;
  std::vector<device_stream> streams;
  std::deque<runtime_call> calls;
  std::deque<host_range> ranges;
  /// Waits for batches: the ranges enumerate(DataLoader) of PyTorch and the scopes BatchWait of
  /// Lotus.
  std::vector<wait_range> waits;
  std::vector<thread_range> copies;  ///< scopes of Lotus with the name Copy
  std::vector<profiler_step> steps;
  std::vector<host_thread> threads;
  trace_names names;
  trace_faults faults;
  bool fractional = false;  ///< whether times have fractions of microseconds
  /// Whether the recording may have ended while work of the last step was still running, as with
  /// PyTorch's profiler.
  bool ends_early = false;
  bool merged = false;  ///< whether `viz` has merged a run's events into the trace
  /// Whether a wait was for a loader of PyTorch without worker processes.
  bool loads_alone = false;
};

/// Finds the host's call that launched a kernel, copy or memset.
class call_starts {
 public:
  explicit call_starts(const device_trace& trace);

  /// Returns the index in device_trace::calls of the call that launched `work`; SIZE_MAX if it is
  /// unknown.
  std::size_t call_of(const device_work& work) const noexcept;

 private:
  /// The correlation number of each call, and its index in device_trace::calls; sorted.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> calls_;
};

/// Returns the kind of a kernel, copy or memset by its name. Kernels are communication only if
/// their name is that of a known library.
work_kind work_kind_of(std::string_view name) noexcept;
/// Returns the direction of a copy by its name; `other` if the name does not contain it.
copy_kind copy_kind_of(std::string_view name) noexcept;
host_memory host_memory_of(std::string_view name) noexcept;
call_kind call_kind_of(std::string_view name) noexcept;
/// Returns whether an annotation is PyTorch's "enumerate(DataLoader)#…", which is a wait for the
/// loader.
bool is_wait_of_loader(std::string_view name) noexcept;

/// Returns the number in "ProfilerStep#12"; nullopt for other names.
std::optional<std::uint64_t> profiler_step_of(std::string_view name) noexcept;

/// Adds a wait for the loader of PyTorch.
void add_wait_of_loader(device_trace& trace, const thread_range& range, std::string_view name);

/// The name of the consumer's scope or stage that copies a batch to the device.
inline constexpr std::string_view copy_scope_name = "Copy";
/// The name of the scope with which Lotus shows a wait for a batch in profilers.
inline constexpr std::string_view wait_scope_name = "BatchWait";

/// An error for a file that is a profiler's trace, but cannot be used.
class broken_trace : public input_error {
 public:
  using input_error::input_error;
};

/// How the reader treats times with fractions of microseconds.
enum class time_rounding : std::uint8_t {
  whole_us,  ///< as HolisticTraceAnalysis does: rounds starts up and ends down
  exact
};

/// Mends what is impossible in a trace and counts it in device_trace::faults. Finds out by the
/// calls that launched them which kernels copied or set memory, and how much.
void mend_trace(device_trace& trace);

/// Whether a file with this name may be a trace: one that the tool reads, or a compressed one that
/// it cannot read, so that it is named.
bool has_name_of_trace(std::string_view name) noexcept;

/// Says why `path` cannot be read as JSON and what to do, if its beginning shows this.
/// @param wrong  what stream_json() has returned.
std::string why_no_json(const std::string& path, const std::string& wrong);

/// Reads a trace of PyTorch's profiler (Kineto), which may be compressed with gzip. The file is
/// read as a stream; about 40 bytes of memory are used for each relevant event. Throws input_error
/// if it is not a trace of an accelerator, and broken_trace if it is a damaged one.
device_trace read_kineto_trace(const std::string& path, time_rounding rounding);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP
