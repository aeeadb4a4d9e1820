// Defines the contents of a profiler's trace (the work of accelerators and the calls that launched
// this work), and reads it from PyTorch's profiler.
#ifndef LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP
#define LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// The first key in every trace that lotus-tool writes; the tool recognizes its output by this key.
inline constexpr std::string_view own_trace_key = "lotus_tool";

enum class work_kind : std::uint8_t { compute, communication, copy, set_memory, other };

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
  std::uint64_t bytes = 0;   ///< size of a copy or memset
  std::uint32_t stream = 0;  ///< index in device_trace::streams
  work_kind kind = work_kind::compute;
  copy_kind copy = copy_kind::none;
  host_memory memory = host_memory::unknown;
};

struct device_stream {
  std::int64_t device = 0;
  std::int64_t number = 0;
};

enum class call_kind : std::uint8_t { launch, copy, synchronize, other };

/// A call of a host thread to the accelerator's runtime or driver.
struct runtime_call {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t correlation = 0;
  std::uint32_t thread = 0;  ///< index in device_trace::threads
  call_kind kind = call_kind::other;
};

/// A time range of a host thread.
struct thread_range {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t thread = 0;
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

/// The contents of a trace. All times are relative to base_ns. Lists have the order of the trace;
/// the long lists are deques, because a growing vector temporarily needs three times its memory.
struct device_trace {
  std::string path;
  std::int64_t base_ns = 0;  ///< base of all times, in ns since the Unix epoch
  std::optional<std::uint64_t> rank;
  std::deque<device_work> work;
  std::vector<device_stream> streams;
  std::deque<runtime_call> calls;
  std::deque<thread_range> operators;  ///< operators of the framework, such as aten::add
  /// Waits for batches: the ranges enumerate(DataLoader) of PyTorch and the scopes BatchWait of
  /// Lotus.
  std::vector<wait_range> waits;
  std::vector<thread_range> copies;  ///< scopes of Lotus with the name Copy
  std::vector<profiler_step> steps;
  std::vector<host_thread> threads;
  bool fractional = false;  ///< whether times have fractions of microseconds
  /// Whether the recording may have ended while work of the last step was still running, as with
  /// PyTorch's profiler.
  bool ends_early = false;
  bool merged = false;  ///< whether `viz` has merged a run's events into the trace
};

/// Returns the kind of a kernel, copy or memset by its name, as HolisticTraceAnalysis does.
work_kind work_kind_of(std::string_view name) noexcept;
copy_kind copy_kind_of(std::string_view name) noexcept;
host_memory host_memory_of(std::string_view name) noexcept;
call_kind call_kind_of(std::string_view name) noexcept;
/// Returns whether an annotation is PyTorch's "enumerate(DataLoader)#…", which is a wait for the
/// loader.
bool is_wait_of_loader(std::string_view name) noexcept;

/// The name of the consumer's scope or stage that copies a batch to the device.
inline constexpr std::string_view copy_scope_name = "Copy";
/// The name of the scope with which Lotus shows a wait for a batch in profilers.
inline constexpr std::string_view wait_scope_name = "BatchWait";

/// How the reader treats times with fractions of microseconds.
enum class time_rounding : std::uint8_t {
  whole_us,  ///< as HolisticTraceAnalysis does: rounds starts up and ends down
  exact
};

/// Reads a trace of PyTorch's profiler (Kineto), which may be compressed with gzip. The file is
/// read as a stream; about 40 bytes of memory are used for each relevant event. Throws input_error
/// if it is not a trace of an accelerator.
device_trace read_kineto_trace(const std::string& path, time_rounding rounding);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_TRACE_DEVICE_TRACE_HPP
