// What stands below the API where nothing can be recorded: LOTUS_SUPPORTED is 0. Scopes, batches
// and chains are the same classes there; programs build and run, and nothing is logged.
#ifndef LOTUS_RECORD_UNSUPPORTED_HPP
#define LOTUS_RECORD_UNSUPPORTED_HPP

#include <atomic>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class recording : std::uint32_t { off, on, annotated };

constexpr recording recording_mode() noexcept {
  return recording::off;
}
constexpr bool is_recording() noexcept {
  return false;
}
constexpr std::uint64_t now_ticks() noexcept {
  return 0;
}
constexpr void push(std::uint64_t, std::uint64_t, record_tag) noexcept {}
constexpr record_tag batch_tag(event_kind, std::uint64_t) noexcept {
  return {};
}
template <class Ticks>
constexpr void look_at_cpu(Ticks) noexcept {}
constexpr void read_cpu(std::uint64_t) noexcept {}
constexpr void publish_wait() noexcept {}
constexpr void publish_end_of_wait() noexcept {}
struct published_wait {};
constexpr std::uint64_t begin_aggregated() noexcept {
  return 0;
}
constexpr void aggregate(std::uint64_t, std::uint64_t, record_tag, std::uint64_t) noexcept {}
struct cpu_watch {
  bool per_batch;
};
inline constexpr cpu_watch this_cpu_watch{};
constexpr void begin_annotation(record_tag) noexcept {}
constexpr void end_annotation(std::uint64_t, record_tag) noexcept {}

struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};
struct services {
  constexpr std::uint32_t intern(std::string_view) const noexcept { return 0; }
  constexpr std::uint32_t enter_loader(std::uint32_t) const noexcept { return 0; }
  constexpr std::uint32_t take_async_ids() const noexcept { return 0; }
  constexpr given_ticks ticks_of_span(std::int64_t, std::int64_t) const noexcept { return {0, 0}; }
  constexpr void crossed_threads(record_tag) const noexcept {}
  constexpr void begin_heap(record_tag) const noexcept {}
  constexpr void end_heap(std::uint64_t, record_tag, record_tag) const noexcept {}
};
inline constexpr std::uint32_t async_ids_at_once = 1;
struct module_state {
  std::atomic<const services*> hub{nullptr};
};
inline module_state this_module;
inline const services& join_session(bool) noexcept {
  static constexpr services none{};
  return none;
}

}  // namespace detail

/// Nothing is recorded: false, always.
inline bool start(const options& = {}) noexcept {
  return false;
}
inline bool start(std::string_view) {
  return false;
}
inline bool start(const options&, const schedule&) noexcept {
  return false;
}
inline bool start(std::string_view, const schedule&) noexcept {
  return false;
}
inline void step() noexcept {}
inline void flush() noexcept {}
inline void stop() noexcept {}
inline std::uint64_t dropped() noexcept {
  return 0;
}

class collector {
 public:
  static void resume() noexcept {}
  static void pause() noexcept {}
  static void detach() noexcept {}
};

/// Its block runs once.
class map_region {
 public:
  explicit map_region(std::string_view) noexcept {}
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;

  bool next() noexcept { return !begun_ && (begun_ = true); }

 private:
  bool begun_ = false;
};

template <class... Values>
class fenced_map_region {
 public:
  explicit fenced_map_region(std::string_view name, Values&...) noexcept : region_{name} {}
  bool next() noexcept { return region_.next(); }

 private:
  map_region region_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_UNSUPPORTED_HPP
