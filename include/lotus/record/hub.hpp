// What the shared objects of one process have of the one session.
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

/// That steps were recorded, and where.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Scopes as another profiler's annotations, of this thread.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< of the one that began last, if there is one
};

/// When a span begins and ends.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// What the session does for the objects that share it. The code is that of the object which made
/// the hub; it is never unloaded.
struct services {
  /// @param begins  nothing that this thread will record has begun yet.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call where there is no room for it yet; false where it is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// How much of the time since it was asked last was in such calls of this thread; where that is
  /// not 0, the tag of the record that tells of it.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< never 0
  /// Counts and says that a batch is not recorded.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  its listener is kept.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// Both return whether there is a listener to be told.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// The records of this thread belong to this loader from now on: the id of its name, 0 the
  /// default one. Returns whose they were.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Where recording is on and the thread has no ring yet.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's clocks, and lets the watch begin anew.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&) noexcept;
  /// The first of async_ids_at_once numbers that nobody else of this process gets.
  std::uint32_t (*take_async_ids)() noexcept;
  /// The ticks of a span that is recorded next with these times of CLOCK_MONOTONIC.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Says once that a scope has ended on another thread than it began on.
  void (*crossed_threads)(record_tag) noexcept;
  /// A shared object wants to know from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins on this thread, and ends: on a profiler's timeline, and where the
  /// heap is counted. Only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// @param begin_ticks  of its record, which follows; 0: there is none.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// Likewise, for what is on no timeline.
  void (*begin_heap)(record_tag) noexcept;
  /// @param begun_as  the tag that it began with.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// PyTorch's profiler is part of the program. @param calls  lives as long as the process.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Gives a message to the program's on_message; false where it has none.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this object has not asked yet
  /// Scopes show on a profiler's timeline too, or tell what they did to the heap, and are logged if
  /// recording is on.
  annotated = 3,
};

/// What one shared object knows of the session.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// The session's services; makes the session at the first call of the process. record/join.hpp.
LOTUS_DETAIL_RARE const services& join_session(bool environment_counts) noexcept;

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Whether this object's scopes have to be measured.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_RARE record_tag refuse_batch(std::uint64_t number) noexcept;

/// The tag of a record about a batch; empty, and its number said once, where that is not below
/// 2^56.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Before the record of what ends: what is told of it stands before it.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP
