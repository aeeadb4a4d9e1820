// Defines the functions and the state through which a process's shared objects use its session.
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
struct producer;

/// A listener that the caller must call because the steps selected by a schedule were recorded, and
/// the directory of their logs.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Functions with which an adapter shows this thread's scopes as annotations in PyTorch's profiler.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< ends the innermost annotation, if there is one
};

/// Start and end, in ticks of the session's clock, of a span that the program measured itself.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The session's functions, which the shared objects of the process call. The functions are part of
/// the shared object that created the session; that object is never unloaded.
struct services {
  /// Returns this thread's producer, the session's state of a thread.
  /// @param begins  true if no span that this thread will record began before this call.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call of an aggregated_scope after allocating memory for it. Returns false if there is
  /// no memory, so that the call is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// Returns the self time, in ticks, of this thread's aggregated calls since the previous request.
  /// If that time is not 0, also sets the tag of the record in which the caller must store it.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< returns the name's id, which is never 0
  /// Counts and reports a batch that cannot be recorded, because its number is 2^56 or more.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  which steps are recorded; the session keeps the function that it calls alive.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// step() and stop() return whether the caller must call a listener; the notice contains it.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// Assigns this thread's later records to a loader. Returns the id of the previous loader's name.
  /// @param loader  id of the loader's name; 0 is the default loader.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Gives the thread a ring, if recording is on and the thread has none.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's CPU clocks, and sets the cpu_watch so that it shows the next time off the
  /// CPU. Returns the time off the CPU since the previous reading.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&) noexcept;
  /// Reserves `async_ids_at_once` numbers, unique within this process, and returns the first.
  std::uint32_t (*take_async_ids)() noexcept;
  /// Converts the times of the next span to be recorded from ns of CLOCK_MONOTONIC to ticks.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Reports once that a scope ended on another thread than it began on.
  void (*crossed_threads)(record_tag) noexcept;
  /// Registers a shared object. From then on the session stores in it whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// Begins a span of this thread on a profiler's timeline, and begins to count its allocations.
  /// This and the next three functions are called only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// Ends the span on the profiler's timeline, and records the span's allocations.
  /// @param begin_ticks  start of the span if the caller is about to record the span; otherwise 0.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// Like begin_task(), but only counts allocations.
  void (*begin_heap)(record_tag) noexcept;
  /// Like end_task(), but only for allocations.
  /// @param begun_as  the tag with which the span began.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// Registers the annotation functions for PyTorch's profiler.
  /// @param calls  must stay valid until the process exits.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Passes a message to the program's on_message. Returns false if the program has set none.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this shared object has not joined the session yet
  /// Scopes are shown on a profiler's timeline, or their allocations are counted. If recording is
  /// on, scopes are recorded as well.
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

/// Returns whether scopes of this shared object must be measured.
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

LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Ends a span's annotation. Call this function before storing the span's record, because the
/// records of the span's allocations must precede the span's record.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP
