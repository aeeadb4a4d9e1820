// Scopes as tasks on a profiler's timeline: LOTUS_ANNOTATE=itt, under Intel VTune.
#ifndef LOTUS_COLLECTORS_ANNOTATE_HPP
#define LOTUS_COLLECTORS_ANNOTATE_HPP

#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "lotus/base/lock.hpp"
#include "lotus/collectors/backend.hpp"
#include "lotus/collectors/itt.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tasks' domain; null where there is to be none.
LOTUS_DETAIL_PER_MODULE inline found_once<const itt_domain*> annotation_domain;

/// Finds out whether the environment asks for it and VTune is there. The first call loads VTune's
/// library: not to be made under a lock. Calls that come meanwhile do not wait: tasks begin when it
/// is there. Errors: said once. Thread safety: all.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  annotation_domain.get_at_once(
      []() noexcept -> const itt_domain* {
        const char* text = secure_getenv("LOTUS_ANNOTATE");
        if (text == nullptr || *text == '\0') return nullptr;
        if (std::string_view{text} != "itt") {
          say("LOTUS_ANNOTATE=%s is not known; it can be itt", text);
          return nullptr;
        }
        const itt_library* itt = itt_library::get();
        const bool has_tasks = itt != nullptr && itt->domain_create != nullptr &&
                               itt->string_handle_create != nullptr && itt->task_begin != nullptr &&
                               itt->task_end != nullptr;
        return has_tasks ? itt->domain_create("lotus") : nullptr;
      },
      nullptr);
}

/// What choose_annotation() has found; false until it has.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  return annotation_domain.known(nullptr) != nullptr;
}

/// Begins a task of this thread. Only where annotation_wanted().
/// @param name    copied.
/// @param handle  of this name only: null, or VTune's handle of it, which the first task leaves.
LOTUS_DETAIL_PER_MODULE inline void begin_task(std::string_view name,
                                               std::atomic<void*>& handle) noexcept {
  const itt_library& itt = *itt_library::get();
  auto* known = static_cast<itt_string_handle*>(handle.load(std::memory_order_acquire));
  if (known == nullptr) {
    char text[256];
    const std::size_t length = name.size() < sizeof(text) ? name.size() : sizeof(text) - 1;
    if (length > 0) std::memcpy(text, name.data(), length);
    text[length] = '\0';
    known = itt.string_handle_create(text);
    handle.store(known, std::memory_order_release);
  }
  itt.task_begin(annotation_domain.known(nullptr), itt_id{}, itt_id{}, known);
}

/// Ends the task of this thread that began last.
LOTUS_DETAIL_PER_MODULE inline void end_task() noexcept {
  itt_library::get()->task_end(annotation_domain.known(nullptr));
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ANNOTATE_HPP
