// Provides the list of the shared objects in which the session stores whether recording is on.
#ifndef LOTUS_RECORD_SHARED_OBJECTS_HPP
#define LOTUS_RECORD_SHARED_OBJECTS_HPP

#include <atomic>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The list of the shared objects that have joined the session. All functions are thread-safe.
/// Block signals before calling any of them.
class module_list {
 public:
  /// Stores the session's functions (`table`), the kind of its clock and its mode in `m`, and adds
  /// `m` to the list if it is new. Each later set_mode() also stores the mode in `m`.
  void tell(module_state& m, const services& table, bool hardware_clock, recording mode) noexcept {
    const locked hold{lock_};
    if (m.hub.load(std::memory_order_relaxed) == nullptr) {
      m.next = first_;
      first_ = &m;
    }
    m.hardware_clock.store(hardware_clock, std::memory_order_relaxed);
    m.hub.store(&table, std::memory_order_release);
    m.mode.store(mode, std::memory_order_release);
  }

  void remove(const module_state& m) noexcept {
    const locked hold{lock_};
    for (module_state** at = &first_; *at != nullptr; at = &(*at)->next) {
      if (*at == &m) {
        *at = m.next;
        return;
      }
    }
  }

  void set_mode(recording mode) noexcept {
    const locked hold{lock_};
    for (module_state* m = first_; m != nullptr; m = m->next) {
      m->mode.store(mode, std::memory_order_release);
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  mutex lock_;
  module_state* first_ = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_SHARED_OBJECTS_HPP
