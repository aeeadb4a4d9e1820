// Shows scopes on the timelines of the profilers that the environment variable LOTUS_ANNOTATE
// names: VTune (itt), Nsight Systems (nvtx) and PyTorch's profiler (torch).
#ifndef LOTUS_COLLECTORS_ANNOTATE_HPP
#define LOTUS_COLLECTORS_ANNOTATE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "lotus/base/environment.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/collectors/itt.hpp"
#include "lotus/collectors/nvtx.hpp"
#include "lotus/config.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The profilers that the environment variable LOTUS_ANNOTATE requests and that the library has
/// found.
struct annotators {
  const itt_domain* itt = nullptr;
  const nvtx_library* nvtx = nullptr;
  bool torch = false;  ///< whether PyTorch's profiler is requested; see torch_annotation
};

LOTUS_DETAIL_PER_MODULE inline lazy_lookup<annotators> chosen_annotators;
/// The annotation functions for PyTorch's profiler; null if no file of the program includes
/// lotus/torch.hpp.
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
  // Bit i stands for word i of the words that environment_table lists for LOTUS_ANNOTATE.
  const std::uint32_t given = environment_words(variable::annotate, say_of_variable);
  if ((given & 1U) != 0) found.itt = find_itt_domain();
  if ((given & 2U) != 0) found.nvtx = nvtx_library::get();
  found.torch = (given & 4U) != 0;
  return found;
}

/// Finds the profilers that LOTUS_ANNOTATE requests. The first call may load a profiler's library,
/// so the caller must hold no lock. Other threads do not wait for the library: until it is
/// loaded, the profilers do not show their scopes. Errors: reported once. Thread safety: any
/// thread.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  chosen_annotators.get_at_once(find_annotators, {});
}

/// Whether choose_annotation() found a profiler; false until it has finished.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  const annotators to = chosen_annotators.known({});
  return to.itt != nullptr || to.nvtx != nullptr ||
         (to.torch && torch_annotation.load(std::memory_order_acquire) != nullptr);
}

/// A name as a null-terminated string, at most 255 bytes long, to pass to a profiler.
class task_text {
 public:
  explicit task_text(std::string_view name) noexcept {
    const std::size_t length = name.size() < sizeof(text_) ? name.size() : sizeof(text_) - 1;
    if (length > 0) std::memcpy(text_, name.data(), length);
    text_[length] = '\0';
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[256];
};

/// Returns the handle by which VTune identifies a text. The first call for a text creates the
/// handle and stores it in `handle`.
inline itt_string_handle* itt_handle(const char* text, std::atomic<void*>& handle) noexcept {
  auto* known = static_cast<itt_string_handle*>(handle.load(std::memory_order_acquire));
  if (known == nullptr) {
    known = itt_library::get()->string_handle_create(text);
    handle.store(known, std::memory_order_release);
  }
  return known;
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<void*> number_handle{nullptr};

/// Attaches a number to a task, so that VTune shows the number with the task.
/// @param task  id of the task; all zeros: this thread's innermost task.
LOTUS_DETAIL_PER_MODULE inline void add_itt_number(const itt_domain* domain, itt_id task,
                                                   std::uint64_t number) noexcept {
  const itt_library& itt = *itt_library::get();
  if (itt.metadata_add == nullptr) return;
  itt.metadata_add(domain, task, itt_handle("number", number_handle), itt_library::metadata_u64, 1,
                   &number);
}

inline nvtx_event nvtx_event_of(const char* text, std::optional<std::uint64_t> number) noexcept {
  nvtx_event event;
  event.message = text;
  if (number) {
    event.payload_type = nvtx_event::payload_u64;
    event.payload = *number;
  }
  return event;
}

/// Begins a task (an interval on a profiler's timeline) on this thread. Call this function only if
/// annotation_wanted() is true.
/// @param name    copied, and cut at 255 bytes.
/// @param handle  VTune's handle for this name; null before the first task with this name, which
///   stores the handle here.
/// @param number  number of the batch or stage, which is shown next to the name.
LOTUS_DETAIL_PER_MODULE inline void begin_task(
    std::string_view name, std::atomic<void*>& handle,
    std::optional<std::uint64_t> number = std::nullopt) noexcept {
  const annotators to = chosen_annotators.known({});
  const task_text text{name};
  if (to.itt != nullptr) {
    itt_library::get()->task_begin(to.itt, itt_id{}, itt_id{}, itt_handle(text.c_str(), handle));
    if (number) add_itt_number(to.itt, itt_id{}, *number);
  }
  if (to.nvtx != nullptr) {
    const nvtx_event event = nvtx_event_of(text.c_str(), number);
    to.nvtx->range_push(to.nvtx->domain, &event);
  }
  if (!to.torch) return;
  if (const annotation_calls* torch = torch_annotation.load(std::memory_order_acquire)) {
    torch->begin(text.c_str());
  }
}

/// The tasks of asynchronous operations that have begun and not ended; they may end on other
/// threads. If too many are open at the same time, further tasks are not shown. Thread safety: any
/// thread, but one at a time for each task number.
class async_tasks {
 public:
  struct task {
    std::atomic<std::uint64_t> key;  ///< the task's number + 1; 0 if this array element is free
    std::uint64_t nvtx_range;
  };

  /// Reserves an array element for a task. Returns null if none is free.
  task* begin(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < max_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      std::uint64_t none = 0;
      if (place.key.compare_exchange_strong(none, std::uint64_t{number} + 1)) return &place;
    }
    return nullptr;
  }
  /// Returns the array element of a task; null if the task has not begun. When the caller ends the
  /// task, it must set the key to 0, which frees the element.
  task* find(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < max_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      if (place.key.load() == std::uint64_t{number} + 1) return &place;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint32_t places = 1024;
  static constexpr std::uint32_t max_probes = 16;

  task tasks_[places]{};
};
LOTUS_DETAIL_PER_MODULE inline async_tasks open_async_tasks;

inline itt_id itt_id_of_async(const itt_domain* domain, std::uint32_t number) noexcept {
  return {reinterpret_cast<std::uintptr_t>(domain), std::uint64_t{number} + 1, 0};
}

/// Begins a task for an asynchronous operation. Such a task may overlap other tasks of this thread
/// and end on another thread. PyTorch's profiler supports neither, so it does not show these tasks.
/// Call this function only if annotation_wanted() is true.
/// @param number  number of the operation; no other operation that has begun and not ended has the
/// same number. For the other parameters see begin_task().
LOTUS_DETAIL_PER_MODULE inline void begin_async_task(std::string_view name,
                                                     std::atomic<void*>& handle,
                                                     std::uint32_t number) noexcept {
  const annotators to = chosen_annotators.known({});
  async_tasks::task* const task = open_async_tasks.begin(number);
  if (task == nullptr) return;
  const task_text text{name};
  if (to.itt != nullptr && itt_library::get()->task_begin_overlapped != nullptr) {
    itt_library::get()->task_begin_overlapped(to.itt, itt_id_of_async(to.itt, number), itt_id{},
                                              itt_handle(text.c_str(), handle));
    add_itt_number(to.itt, itt_id_of_async(to.itt, number), number);
  }
  if (to.nvtx != nullptr && to.nvtx->range_start != nullptr) {
    const nvtx_event event = nvtx_event_of(text.c_str(), number);
    task->nvtx_range = to.nvtx->range_start(to.nvtx->domain, &event);
  }
}

/// Ends the task that begin_async_task() began with this number, on any thread; does nothing if
/// there is none.
LOTUS_DETAIL_PER_MODULE inline void end_async_task(std::uint32_t number) noexcept {
  async_tasks::task* const task = open_async_tasks.find(number);
  if (task == nullptr) return;
  const annotators to = chosen_annotators.known({});
  if (to.nvtx != nullptr && to.nvtx->range_end != nullptr) {
    to.nvtx->range_end(to.nvtx->domain, task->nvtx_range);
  }
  if (to.itt != nullptr && itt_library::get()->task_end_overlapped != nullptr) {
    itt_library::get()->task_end_overlapped(to.itt, itt_id_of_async(to.itt, number));
  }
  task->key.store(0);
}

/// Ends this thread's innermost task.
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
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ANNOTATE_HPP
