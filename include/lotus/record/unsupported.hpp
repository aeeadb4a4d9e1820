// Replaces the recording code with LOTUS_DISABLE, and on systems that lotus does not support
// (LOTUS_SUPPORTED is 0). The API is the same, so programs build and run, but nothing is recorded.
#ifndef LOTUS_RECORD_UNSUPPORTED_HPP
#define LOTUS_RECORD_UNSUPPORTED_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/folder_listener.hpp"
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
inline std::uint64_t now_ticks() noexcept {
  return 0;
}
constexpr void push(std::uint64_t, std::uint64_t, record_tag) noexcept {}
constexpr record_tag batch_tag(event_kind, std::uint64_t) noexcept {
  return {};
}
constexpr void look_at_cpu(std::uint64_t = 0, std::uint64_t = 0) noexcept {}
constexpr void read_cpu(std::uint64_t, std::uint64_t) noexcept {}
constexpr void publish_wait() noexcept {}
constexpr void publish_end_of_wait() noexcept {}
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
struct step_notice {
  folder_listener listener;
  char folder[1];
};
struct services {
  constexpr std::uint32_t intern(std::string_view) const noexcept { return 0; }
  constexpr std::uint32_t enter_loader(std::uint32_t) const noexcept { return 0; }
  constexpr std::uint32_t take_async_ids() const noexcept { return 0; }
  constexpr given_ticks ticks_of_span(std::int64_t, std::int64_t) const noexcept { return {0, 0}; }
  constexpr void crossed_threads(record_tag) const noexcept {}
  constexpr void begin_task(record_tag) const noexcept {}
  constexpr void end_task(std::uint64_t, record_tag) const noexcept {}
  constexpr void begin_heap(record_tag) const noexcept {}
  constexpr void end_heap(std::uint64_t, record_tag, record_tag) const noexcept {}
  constexpr bool start(const options&) const noexcept { return LOTUS_DETAIL_DISABLED; }
  constexpr bool start_steps(const options&, const schedule&) const noexcept {
    return LOTUS_DETAIL_DISABLED;
  }
  constexpr bool step(step_notice&) const noexcept { return false; }
  constexpr bool stop(step_notice&) const noexcept { return false; }
  constexpr void flush() const noexcept {}
  constexpr bool snapshot(const char*, std::size_t) const noexcept { return false; }
  constexpr std::uint64_t dropped() const noexcept { return 0; }
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
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_UNSUPPORTED_HPP
