// Scopes on the timelines of other profilers: LOTUS_ANNOTATE=itt,nvtx,torch.
#ifndef LOTUS_COLLECTORS_ANNOTATE_HPP
#define LOTUS_COLLECTORS_ANNOTATE_HPP

#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "lotus/base/lock.hpp"
#include "lotus/collectors/itt.hpp"
#include "lotus/collectors/nvtx.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Those that the environment asks for and that are there.
struct annotators {
  const itt_domain* itt = nullptr;
  const nvtx_library* nvtx = nullptr;
  bool torch = false;  ///< where the program has it: torch_annotation
};

LOTUS_DETAIL_PER_MODULE inline found_once<annotators> chosen_annotators;
/// PyTorch's profiler; null where no part of the program includes lotus/torch.hpp.
LOTUS_DETAIL_PER_MODULE inline std::atomic<const annotation_calls*> torch_annotation{nullptr};

LOTUS_DETAIL_PER_MODULE inline const itt_domain* find_itt_domain() noexcept {
  const itt_library* itt = itt_library::get();
  const bool has_tasks = itt != nullptr && itt->domain_create != nullptr &&
                         itt->string_handle_create != nullptr && itt->task_begin != nullptr &&
                         itt->task_end != nullptr;
  return has_tasks ? itt->domain_create("lotus") : nullptr;
}

LOTUS_DETAIL_PER_MODULE inline annotators find_annotators() noexcept {
  annotators found;
  const char* text = secure_getenv("LOTUS_ANNOTATE");
  std::string_view left = text == nullptr ? "" : text;
  while (!left.empty()) {
    const std::size_t comma = left.find(',');
    const std::string_view name = left.substr(0, comma);
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    if (name == "itt") {
      found.itt = find_itt_domain();
    } else if (name == "nvtx") {
      found.nvtx = nvtx_library::get();
    } else if (name == "torch") {
      found.torch = true;
    } else {
      say("LOTUS_ANNOTATE=%.*s is not known; it can be itt, nvtx and torch, with commas",
          static_cast<int>(name.size()), name.data());
    }
  }
  return found;
}

/// Finds out what the environment asks for. The first call may load a profiler's library: not to be
/// made under a lock. Calls that come meanwhile do not wait: tasks begin when it is there. Errors:
/// said once. Thread safety: all.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  chosen_annotators.get_at_once(find_annotators, {});
}

/// What choose_annotation() has found; false until it has.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  const annotators to = chosen_annotators.known({});
  return to.itt != nullptr || to.nvtx != nullptr ||
         (to.torch && torch_annotation.load(std::memory_order_acquire) != nullptr);
}

/// Begins a task of this thread. Only where annotation_wanted().
/// @param name    copied; cut at 255 bytes.
/// @param handle  of this name only: null, or VTune's handle of it, which the first task leaves.
LOTUS_DETAIL_PER_MODULE inline void begin_task(std::string_view name,
                                               std::atomic<void*>& handle) noexcept {
  const annotators to = chosen_annotators.known({});
  char text[256];
  const std::size_t length = name.size() < sizeof(text) ? name.size() : sizeof(text) - 1;
  if (length > 0) std::memcpy(text, name.data(), length);
  text[length] = '\0';
  if (to.itt != nullptr) {
    const itt_library& itt = *itt_library::get();
    auto* known = static_cast<itt_string_handle*>(handle.load(std::memory_order_acquire));
    if (known == nullptr) {
      known = itt.string_handle_create(text);
      handle.store(known, std::memory_order_release);
    }
    itt.task_begin(to.itt, itt_id{}, itt_id{}, known);
  }
  if (to.nvtx != nullptr) {
    nvtx_event event;
    event.message = text;
    to.nvtx->range_push(to.nvtx->domain, &event);
  }
  if (!to.torch) return;
  if (const annotation_calls* torch = torch_annotation.load(std::memory_order_acquire)) {
    torch->begin(text);
  }
}

/// Ends the task of this thread that began last.
LOTUS_DETAIL_PER_MODULE inline void end_task() noexcept {
  const annotators to = chosen_annotators.known({});
  if (to.torch) {
    if (const annotation_calls* torch = torch_annotation.load(std::memory_order_acquire)) {
      torch->end();
    }
  }
  if (to.nvtx != nullptr) to.nvtx->range_pop(to.nvtx->domain);
  if (to.itt != nullptr) itt_library::get()->task_end(to.itt);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ANNOTATE_HPP
