// What the shared objects of one process have of the one session.
#ifndef LOTUS_RECORD_HUB_HPP
#define LOTUS_RECORD_HUB_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/record.hpp"

#if !LOTUS_SUPPORTED
  #error "lotus records only on Linux, x86-64 and aarch64; elsewhere include lotus/lotus.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct cpu_watch;
struct module_state;
struct off_cpu_time;
struct producer;

/// lotus::options without the std::string, which objects may have been built with different ones
/// of.
struct start_request {
  const char* log_file;
  std::size_t log_file_bytes;
  full_ring when_full;
  std::uint32_t ring_records;
  std::uint32_t drain_interval_ms;
  std::size_t backlog_bytes;
  mode_t file_mode;
  bool cpu_time;
  void (*on_message)(const char*);
};

/// What the session does for the objects that share it. The code is that of the object which made
/// the hub; it is never unloaded.
struct services {
  producer* (*this_thread)() noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< never 0
  /// Counts and says that a batch is not recorded.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const start_request&) noexcept;
  void (*stop)() noexcept;
  void (*flush)() noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// The records of this thread belong to this loader from now on: the id of its name, 0 the
  /// default one. Returns whose they were.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Reads the thread's clocks, and lets the watch begin anew.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&) noexcept;
  /// The first of async_ids_at_once numbers that nobody else of this process gets.
  std::uint32_t (*take_async_ids)() noexcept;
  /// The ticks at a moment of CLOCK_MONOTONIC.
  std::uint64_t (*ticks_at)(std::int64_t monotonic_ns) noexcept;
  /// Says once that a scope has ended on another thread than it began on.
  void (*crossed_threads)(record_tag) noexcept;
  /// A shared object wants to know from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins, and ends, on a profiler's timeline; only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  void (*end_task)() noexcept;
  /// Gives a message to the program's on_message; false where it has none.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,    ///< this object has not asked yet
  annotated = 3,  ///< scopes show on a profiler's timeline too, and are logged if recording is on
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
LOTUS_DETAIL_PER_MODULE __attribute__((cold)) const services& join_session(
    bool environment_counts) noexcept;

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

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline record_tag refuse_batch(
    std::uint64_t number) noexcept {
  join_session(true).refuse_batch(number);
  return {};
}

/// The tag of a record about a batch; empty, and its number said once, where that is not below
/// 2^56.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void begin_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).begin_task(tag);
}
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void end_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).end_task();
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP
