// Lets a shared object find the one session of its process, or create it.
#ifndef LOTUS_RECORD_JOIN_HPP
#define LOTUS_RECORD_JOIN_HPP

#include <stdlib.h>

#include <atomic>

#include "lotus/base/lock.hpp"
#include "lotus/base/rendezvous.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"

// Registers a function that runs when a shared object is unloaded; see Itanium C++ ABI, 3.3.6.3.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* object) noexcept;

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Identifies this shared object in calls of __cxa_atexit. The variable has a C++ name of our own,
/// because g++ itself may already have declared __dso_handle, with another type.
extern "C" LOTUS_DETAIL_PER_MODULE void* object_handle __asm__("__dso_handle");

/// Name under which the shared objects of a process find its session. Increase LOTUS_ABI whenever
/// the layout of services, options, schedule, module_state, producer or record changes, so that
/// objects with different layouts do not share a session.
inline constexpr char hub_name[] = "lotus-hub-" LOTUS_DETAIL_STRINGIZE(LOTUS_ABI) ";";

/// Creates the session in this shared object, unless it already exists there, and returns its
/// services. Defined in session/session_services.hpp.
LOTUS_DETAIL_PER_MODULE const services* make_services() noexcept;
LOTUS_DETAIL_PER_MODULE bool has_session() noexcept;

/// Returns the services of the process's session; null if there is no session yet.
LOTUS_DETAIL_PER_MODULE inline const services* services_if_any() noexcept {
  if (const services* known = this_module.hub.load(std::memory_order_acquire)) return known;
  const auto* hub = find_meeting_point<const services>(hub_name);
  return hub == nullptr ? nullptr : hub->load(std::memory_order_acquire);
}

LOTUS_DETAIL_PER_MODULE inline void leave_session() noexcept {
  if (const services* s = this_module.hub.load(std::memory_order_acquire)) s->leave(this_module);
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> leaves_at_exit{false};

/// Makes this shared object leave the session when it is unloaded or the process exits. The
/// function is registered with __cxa_atexit, as compilers register the destructors of static
/// variables, and runs after those destructors, which may still record. Sanitizers would call a
/// function registered with atexit(3) after the object is unloaded.
LOTUS_DETAIL_PER_MODULE inline void leave_session_at_exit() noexcept {
  if (leaves_at_exit.exchange(true)) return;
  __cxa_atexit([](void*) { leave_session(); }, nullptr, &object_handle);
}

/// Reports that other shared objects cannot find the session that this shared object has created.
/// Defined in record/message.hpp.
LOTUS_DETAIL_PER_MODULE void say_alone() noexcept;

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM const services& join_session(bool environment_counts) noexcept {
  module_state& m = this_module;
  const services* s = m.hub.load(std::memory_order_acquire);
  if (s != nullptr && m.mode.load(std::memory_order_relaxed) != recording::unknown) return *s;
  const signals_blocked quiet;
  LOTUS_DETAIL_CALL_AT_LOAD(leave_session_at_exit);
  bool alone = false;
  if (s == nullptr) {
    meet_at<const services>(hub_name, [&](meeting_point<const services>* hub) {
      if (hub != nullptr) s = hub->load(std::memory_order_acquire);
      if (s != nullptr) return;
      // A meeting point is memory that all shared objects of the process find by its name. If none
      // can be created, each shared object has a session of its own.
      alone = hub == nullptr && !has_session();
      s = make_services();
      if (hub != nullptr) hub->store(s, std::memory_order_release);
    });
  }
  s->join(m, environment_counts);
  if (alone) say_alone();
  return *s;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_JOIN_HPP
