// The interface through which all shared objects of a process use its one session.
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

/// Notifies that active steps were recorded, and in which folder.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Functions that show this thread's scopes as annotations of another profiler.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< ends the innermost annotation, if there is one
};

/// Begin and end of a span in ticks.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Functions of the session for the shared objects that use it. Their code belongs to the object
/// that made the hub; it is never unloaded.
struct services {
  /// @param begins  whether nothing that this thread will record has begun yet.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call for which there is no room yet; returns false if the call is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// Returns the self time of this thread's aggregated calls since the last request. If it is not
  /// 0, also sets the tag of the record to write for it.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< never 0
  /// Counts and reports a batch that is not recorded because of its number.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  its listener is kept alive.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// Both return whether there is a listener to call.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// Assigns this thread's records to a loader from now on, given by the id of its name; 0 is the
  /// default one. Returns the previous loader.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Call it if recording is on and the thread has no ring yet.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's clocks and resets the watch.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&) noexcept;
  /// Reserves async_ids_at_once numbers within this process and returns the first.
  std::uint32_t (*take_async_ids)() noexcept;
  /// Converts times of CLOCK_MONOTONIC to ticks of a span that is recorded next.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Reports once that a scope ended on another thread than the one on which it began.
  void (*crossed_threads)(record_tag) noexcept;
  /// Registers a shared object, which is informed from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins or ends on this thread: shows it on a profiler's timeline and
  /// counts its allocations. Only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// @param begin_ticks  of its record, which follows; 0 if there is no record.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// The same without a timeline: only counts allocations.
  void (*begin_heap)(record_tag) noexcept;
  /// @param begun_as  the tag with which it began.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// PyTorch's profiler is part of the program. @param calls  must stay valid until the process
  /// exits.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Passes a message to the program's on_message; returns false if it has none.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this object has not asked the session yet
  /// Scopes are also shown on a profiler's timeline, or their allocations are counted; they are
  /// logged if recording is on.
  annotated = 3,
};

/// What one shared object knows about the session.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< for the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Returns the session's services; the first call in the process creates the session. Defined in
/// record/join.hpp.
LOTUS_DETAIL_RARE const services& join_session(bool environment_counts) noexcept;

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Whether scopes of this shared object must be measured.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_RARE record_tag refuse_batch(std::uint64_t number) noexcept;

/// Returns the tag of a record about a batch. If the number is 2^56 or more, returns an empty tag
/// and reports the number once.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Call it before writing the record of a span that ends: its heap records precede it.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP
