// Defines the functions and state with which all shared objects of a process use its session.
#ifndef LOTUS_RECORD_HUB_HPP
#define LOTUS_RECORD_HUB_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/folder_listener.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/record.hpp"

#if !LOTUS_SUPPORTED
  #error "lotus records only on Linux, x86-64 and aarch64; elsewhere include lotus/lotus.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct aggregate_call;
struct cpu_watch;
struct module_state;
struct off_cpu_time;
struct off_cpu_window;
struct producer;

/// Filled by step() and stop() when the steps that a schedule selects have been recorded. The
/// caller must then call the listener with the folder, which is the directory of the logs.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Functions that show this thread's scopes in PyTorch's profiler; see lotus/torch/annotation.hpp.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< ends the innermost annotation, if there is one
};

/// Start and end of a span whose times the program measured itself, converted to ticks of the
/// session's clock.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The table of the session's functions, which the shared objects of the process call. The
/// functions are part of the shared object that created the session; that object is never unloaded.
struct services {
  /// Returns this thread's producer, the session's state of a thread.
  /// @param begins  whether all spans that the thread will record begin after this call. Otherwise
  /// the thread may not reuse every dead thread's ring; see storage::may_reuse_ring(). In this case
  /// the caller has something to record; if the thread gets no producer, counts it as dropped.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call of an aggregated_scope to the sums of its operation, after allocating memory for
  /// it. Returns false if there is no memory, so that the call is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// Returns the self time, in ticks, of the aggregated calls that have ended on this thread since
  /// this function was last called. If the time is not 0, also sets the tag of the record in which
  /// the caller must store the time.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< returns the name's id, which is never 0
  /// Counts and reports a batch that cannot be recorded, because its number is 2^56 or more.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  selects the recorded steps; the session keeps the listener of `steps` alive.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// Returns whether the caller must call the listener in the notice. stop() returns the same.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// Assigns this thread's later records to a loader. Returns the id of the previous loader's name.
  /// @param loader  id of the loader's name; 0 is the default loader.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Gives the thread a ring if recording is on and the thread has none.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's CPU clocks, and sets up the cpu_watch to detect when the thread is next
  /// switched out. Returns the time off the CPU since the previous call.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&, const off_cpu_window&) noexcept;
  /// Reserves `async_ids_at_once` consecutive ids for asynchronous operations, which are unique
  /// within this process, and returns the first.
  std::uint32_t (*take_async_ids)() noexcept;
  /// Converts the times of a span that is about to be recorded from ns of CLOCK_MONOTONIC to ticks.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Reports once that a scope ended on another thread than the one on which it began.
  void (*crossed_threads)(record_tag) noexcept;
  /// Registers the state of a shared object. From then on the session stores in this state whether
  /// recording is on.
  /// @param environment_counts  whether this call starts recording if LOTUS_LOG_FILE is set.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// Begins a span of this thread on another profiler's timeline, and begins to count the span's
  /// allocations. This function and the next three are called only while the mode is
  /// recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// Ends the span on the other profiler's timeline, and records the span's allocations.
  /// @param begin_ticks  start of the span if the caller is about to record the span; otherwise 0.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// Like begin_task(), but only counts allocations.
  void (*begin_heap)(record_tag) noexcept;
  /// Like end_task(), but only records the span's allocations.
  /// @param begun_as  the tag with which the span began.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// Registers the annotation functions for PyTorch's profiler.
  /// @param calls  must stay valid until the process exits.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Passes a message to options::on_message. Returns false if the program has not set it.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this shared object has not joined the session yet
  /// Scopes are shown on another profiler's timeline, or their allocations are counted. If
  /// recording is on, scopes are recorded as well.
  annotated = 3,
};

/// The part of the session's state that scopes read. Each shared object has its own copy.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< next shared object in the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Returns the session's services; the first call creates the session. Defined in record/join.hpp.
LOTUS_DETAIL_RARE const services& join_session(bool environment_counts) noexcept;

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Returns whether scopes of this shared object must read the clock.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_RARE record_tag refuse_batch(std::uint64_t number) noexcept;

/// Returns the tag of a record about a batch. If the batch's number is 2^56 or more, reports the
/// number and returns an empty tag.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

/// Begins a span on another profiler's timeline, or begins to count the span's allocations.
LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Ends what begin_annotation() began for a span. Call this function before storing the span's
/// record, because the records of the span's allocations must precede the span's record.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP
