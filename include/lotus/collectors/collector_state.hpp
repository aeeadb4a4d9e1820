// Provides the process's collector (the profiler that LOTUS_RESUME() controls), which all shared
// objects of the process share.
#ifndef LOTUS_COLLECTORS_COLLECTOR_STATE_HPP
#define LOTUS_COLLECTORS_COLLECTOR_STATE_HPP

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "lotus/base/environment.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/base/rendezvous.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/collector_kinds.hpp"
#include "lotus/config.hpp"
#include "lotus/record/collector_calls.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the collector that the environment variable LOTUS_COLLECTOR selects; null if it selects
/// none, or if it selects `auto` and no collector is present.
inline const collector_kind* chosen_collector() noexcept {
  // The words of the variable are: auto, then the collectors in the order of collector_kinds, then
  // none.
  constexpr std::size_t none = sizeof(collector_kinds) / sizeof(collector_kinds[0]) + 1;
  const std::size_t place = environment_word(variable::collector, none, say_of_variable);
  if (place == none) return nullptr;
  if (place > 0) return &collector_kinds[place - 1];
  for (const collector_kind& kind : collector_kinds) {
    if (kind.found_by_auto()) return &kind;
  }
  return nullptr;
}

/// The collector of the process. Its functions are virtual, so that all shared objects run the code
/// of the shared object that created it.
class collector_state {
 public:
  collector_state() noexcept : kind_{chosen_collector()} {
    const collector_backend* backend = kind_ != nullptr ? kind_->backend() : nullptr;
    if (backend != nullptr && backend->begin()) backend_ = backend;
  }
  virtual ~collector_state() = default;

  /// Whether there is a collector that was not detached and still answers.
  bool exists() const noexcept { return backend_.load(std::memory_order_relaxed) != nullptr; }

  /// Starts collecting, unless an outer call of resume() has already done so. Returns false if no
  /// data is collected.
  virtual bool resume() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr) return false;
    if (depth_++ == 0) check(backend->resume());
    return exists();
  }

  virtual void pause() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr || depth_ == 0) return;
    if (--depth_ == 0) check(backend->pause());
  }

  virtual void detach() noexcept {
    const locked hold{guard()};
    if (const collector_backend* backend = backend_.exchange(nullptr)) backend->detach();
  }

  virtual void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend != nullptr && backend->region != nullptr) backend->region(name, begin_ns, end_ns);
  }

  virtual bool acknowledges() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr || backend->acknowledges;
  }
  /// Whether the collector counts every instruction from resume() to pause(), including the
  /// library's own, as callgrind does.
  virtual bool counts_instructions() const noexcept {
    const collector_backend* backend = backend_;
    return backend != nullptr && backend->counts_instructions;
  }
  virtual std::uint64_t interval_ns() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr ? 0 : backend->interval_ns();
  }

 private:
  void check(bool answered) noexcept {
    if (answered) return;
    backend_ = nullptr;
    say("the %s collector does not answer; the program goes on without it", kind_->name);
  }

  /// Returns the lock of this object. The first call in a forked child creates the lock again,
  /// because a thread of the parent may have held it during the fork.
  mutex& guard() noexcept {
    const pid_t process = getpid();
    if (process_.exchange(process) != process) new (&guard_) mutex;
    return guard_;
  }

  std::atomic<pid_t> process_{getpid()};
  mutex guard_;
  const collector_kind* const kind_;
  std::atomic<const collector_backend*> backend_{nullptr};
  int depth_ = 0;
};

/// Name by which shared objects find the process's collector_state. Increase the number 4 in the
/// name whenever the layout of collector_state changes.
inline constexpr char collector_page_name[] = "lotus-collector-4-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// The collector of the process as this shared object has found it; look_for_collector() runs only
/// once.
LOTUS_DETAIL_PER_MODULE inline lazy_lookup<collector_state*> this_collector;

/// Returns the collector of the process. The first call in the process creates it. Returns null if
/// no profiler can be controlled.
LOTUS_DETAIL_PER_MODULE inline collector_state* look_for_collector() noexcept {
  meeting_point<collector_state>* page = nullptr;
  meet_at<collector_state>(collector_page_name,
                           [&](meeting_point<collector_state>* found) { page = found; });
  collector_state* state = page != nullptr ? page->load(std::memory_order_acquire) : nullptr;
  if (state == nullptr) {
    auto* fresh = new (map_memory(sizeof(collector_state))) collector_state;
    pin_module_of(&this_collector);
    collector_state* expected = nullptr;
    state = page == nullptr || page->compare_exchange_strong(expected, fresh) ? fresh : expected;
  }
  no_collector.store(!state->exists(), std::memory_order_release);
  return state->exists() ? state : nullptr;
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline collector_state* find_collector() noexcept {
  if (no_collector.load(std::memory_order_acquire)) return nullptr;
  return this_collector.get(look_for_collector, nullptr);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void call_collector(collector_call call) noexcept {
  collector_state* const state = find_collector();
  if (state == nullptr) return;
  switch (call) {
    case collector_call::resume:
      state->resume();
      break;
    case collector_call::pause:
      return state->pause();
    case collector_call::detach:
      return state->detach();
  }
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_COLLECTOR_STATE_HPP
