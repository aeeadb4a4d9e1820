// Implements LOTUS_MAP_REGION, which runs a block of the program as often as environment variables
// request, while a profiler observes it.
#ifndef LOTUS_ENGINE_MAP_PASSES_HPP
#define LOTUS_ENGINE_MAP_PASSES_HPP

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/environment.hpp"
#include "lotus/base/file.hpp"
#include "lotus/collectors/collector_state.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/map.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline unsigned map_setting(variable which) noexcept {
  return static_cast<unsigned>(number_setting(which));
}

/// Reports once that the list of the program's regions cannot be written.
/// @param path  path of the list. The reason is in `errno`.
inline void cannot_write_list(const char* path) noexcept {
  report_once(variable::map_list, path, [](const variable_row& row, std::string_view bad) noexcept {
    say("%s: cannot write %.*s: %s", row.name, static_cast<int>(bad.size()), bad.data(),
        std::strerror(errno));
  });
}

/// Spins for a random time in [0, `longest_ns`), so that the first sample can hit any part of the
/// operation. Without this delay the first sample would always come one interval after the sampler
/// was resumed, and operations shorter than an interval would never be sampled. lotus-tool's
/// reports exclude samples in this function by its name. So this function calls no other function:
/// samples in a called function would be reported.
/// @param longest_ns  upper limit in hardware ticks, in spite of its name.
__attribute__((noinline)) inline void lotus_map_wait(std::uint64_t longest_ns) noexcept {
  // This is one step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), with the clock as its input.
  std::uint64_t z = hardware_ticks() + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  __extension__ using wide = unsigned __int128;
  const auto wait_ticks = static_cast<std::uint64_t>((wide{z} * longest_ns) >> 64U);
  const std::uint64_t start = hardware_ticks();
  while (hardware_ticks() - start < wait_ticks) {
  }
}

/// Returns hardware ticks per nanosecond. The first call measures for a millisecond. The result is
/// not a local static variable with an initializer: a child that is forked during the
/// initialization would wait forever.
inline double ticks_per_ns() noexcept {
  static std::atomic<double> known{0};
  const double before = known.load(std::memory_order_relaxed);
  if (before > 0) return before;
  const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t start = hardware_ticks();
  std::int64_t now_ns = start_ns;
  while (now_ns - start_ns < 1'000'000) now_ns = clock_ns(CLOCK_MONOTONIC);
  const double measured =
      static_cast<double>(hardware_ticks() - start) / static_cast<double>(now_ns - start_ns);
  known.store(measured, std::memory_order_relaxed);
  return measured;
}

inline void sleep_ms(unsigned ms) noexcept {
  timespec left{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace detail

LOTUS_DETAIL_SEAM void map_region::begin_region(std::string_view name) noexcept {
  std::memcpy(name_, name.data(), name.size() < sizeof(name_) ? name.size() : sizeof(name_) - 1);
  list();
  const char* const picked = detail::environment_text(detail::variable::map_op);
  if (picked != nullptr && name != picked) return;
  // Joins the session now, so that its threads are started before the profiler looks for the
  // threads of the program.
  static_cast<void>(detail::is_recording());
  collector_ = detail::find_collector();
  if (collector_ != nullptr && !collector_->exists()) collector_ = nullptr;
  if (collector_ == nullptr) return;
  warm_up_ = detail::map_setting(detail::variable::map_warmup);
  passes_ = detail::map_setting(detail::variable::map_passes);
  counts_instructions_ = collector_->counts_instructions();
  interval_ticks_ = static_cast<std::uint64_t>(static_cast<double>(collector_->interval_ns()) *
                                               detail::ticks_per_ns());
}
LOTUS_DETAIL_SEAM void map_region::end_region() noexcept {
  end_pass();
  if (pass_ > 0 && pass_ <= warm_up_) {
    detail::say(
        "region %s was left during its warm-up, by break, return or an exception, so nothing was "
        "collected; set LOTUS_MAP_WARMUP=0 to collect from its first pass",
        name_);
  }
}

__attribute__((noinline)) LOTUS_DETAIL_SEAM bool map_region::next() noexcept {
  end_pass();
  if (pass_ == warm_up_ + passes_) return false;
  if (pass_++ >= warm_up_) begin_pass();
  return true;
}

inline void map_region::begin_pass() noexcept {
  // The name is stored and the session joined before the collector is switched on, so that this
  // work is not part of the profile.
  tag_ = detail::is_recording() ? detail::operation_tag(name_) : detail::record_tag{};
  collecting_ = true;
  outer_ = innermost();
  innermost() = this;
  if (collector_ != nullptr) {
    if (counts_instructions_ && outer_ != nullptr) outer_->dump_part();
    if (!collector_->acknowledges())
      detail::sleep_ms(detail::map_setting(detail::variable::map_sleep_ms));
    if (!counts_instructions_) collector_->resume();
    detail::lotus_map_wait(interval_ticks_);
  }
  // The region begins after the clocks were read, so the time that the reading took is added to the
  // start.
  const std::uint64_t before = detail::hardware_ticks();
  begin_ns_ = detail::clock_ns(CLOCK_MONOTONIC);
  begin_ticks_ = detail::now_ticks();
  begin_ns_ += ns_since(before);
  // callgrind counts every instruction. So counting is switched on as the last action here, and off
  // as the first action in end_pass().
  if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
}

inline void map_region::end_pass() noexcept {
  if (!collecting_) return;
  collecting_ = false;
  if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
  const std::uint64_t end_ticks = detail::now_ticks();
  const std::uint64_t end = detail::hardware_ticks();
  std::int64_t end_ns = detail::clock_ns(CLOCK_MONOTONIC);
  end_ns -= ns_since(end);
  if (collector_ != nullptr) {
    if (!counts_instructions_) collector_->pause();
    collector_->region(name_, static_cast<std::uint64_t>(begin_ns_),
                       static_cast<std::uint64_t>(end_ns));
  }
  if (!tag_.empty() && detail::is_recording()) detail::push(begin_ticks_, end_ticks, tag_);
  innermost() = outer_;
  if (counts_instructions_ && outer_ != nullptr) {
    detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
  }
}

/// Called before a region that is nested in this region begins. Makes callgrind write its counts so
/// far under this region's name, because callgrind assigns all counts since the last dump to the
/// name of the next dump.
inline void map_region::dump_part() noexcept {
  detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
  char name[sizeof(detail::callgrind_part_start) + sizeof(name_)];
  std::memcpy(name, detail::callgrind_part_start, sizeof(detail::callgrind_part_start));
  std::memcpy(name + sizeof(detail::callgrind_part_start) - 1, name_, sizeof(name_));
  collector_->region(name, 0, 0);
}

inline map_region*& map_region::innermost() noexcept {
  static thread_local map_region* region = nullptr;
  return region;
}

inline std::int64_t map_region::ns_since(std::uint64_t ticks) const noexcept {
  if (collector_ == nullptr) return 0;  // without a profiler the value is not used
  return static_cast<std::int64_t>(static_cast<double>(detail::hardware_ticks() - ticks) /
                                   detail::ticks_per_ns());
}

/// Appends this region's name to the list of regions, if lotus-tool has requested one.
inline void map_region::list() const noexcept {
  const char* const path = detail::environment_text(detail::variable::map_list);
  if (path == nullptr) return;
  const int fd = detail::open_at_high_fd(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0) return detail::cannot_write_list(path);
  char line[sizeof(name_) + 1];
  const std::size_t length = std::strlen(name_);
  std::memcpy(line, name_, length);
  line[length] = '\n';
  errno = detail::write_all(fd, line, length + 1);
  if (errno != 0) detail::cannot_write_list(path);
  close(fd);
}

LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_ENGINE_MAP_PASSES_HPP
