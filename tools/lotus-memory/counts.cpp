#include "counts.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "generations.hpp"
#include "lotus/heap/heap_hook.hpp"
#include "thread_counts.hpp"

namespace lotus::memory {

__thread thread_counts* mine = nullptr;

namespace {

using lotus::detail::heap_change;
using lotus::detail::heap_sums;

constexpr std::uint32_t max_threads = 65'535;

thread_counts of_no_thread;
std::atomic<thread_counts*> all{&of_no_thread};
std::atomic<std::uint32_t> threads{0};
generations when;
std::atomic<bool> any_batch{false};
std::atomic<std::uint32_t> unit_name{0};
heap_sums at_fork;
std::atomic<std::uint32_t> recording{0};

pthread_key_t at_thread_end;
bool has_key = false;
__thread bool ended __attribute__((tls_model("initial-exec"))) = false;

thread_counts* take_over() noexcept {
  for (thread_counts* t = all.load(std::memory_order_acquire); t != &of_no_thread; t = t->next) {
    if (!t->in_use.load(std::memory_order_relaxed) &&
        !t->in_use.exchange(true, std::memory_order_acquire)) {
      return t;
    }
  }
  return nullptr;
}

thread_counts* make() noexcept {
  if (threads.load(std::memory_order_relaxed) >= max_threads) return nullptr;
  // Map memory instead of allocating it: this function runs inside malloc. Most slots are never
  // used; their pages need no memory, because a page is allocated when it is first written.
  void* const memory = mmap(nullptr, sizeof(thread_counts), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const t = static_cast<thread_counts*>(memory);
  t->number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  t->owner = owner_word(0, t->number, 0);
  t->in_use.store(true, std::memory_order_relaxed);
  t->next = all.load(std::memory_order_relaxed);
  while (!all.compare_exchange_weak(t->next, t, std::memory_order_release)) {
  }
  return t;
}

void thread_ends(void* counts) noexcept {
  auto& t = *static_cast<thread_counts*>(counts);
  mine = nullptr;
  ended = true;
  t.forget();
  t.in_use.store(false, std::memory_order_release);
}

/// Called in a forked child, which has only one thread. Makes the counts of the other threads
/// available for new threads, and stores the sums that the child inherits from its parent, so that
/// they can be subtracted from the child's sums.
void forked() noexcept {
  heap_sums sums{};
  for (thread_counts* t = all.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    sums.allocated_bytes += t->allocated_bytes.get();
    sums.allocated_calls += t->allocated_calls.get();
    if (t == mine || t == &of_no_thread) continue;
    t->forget();
    t->in_use.store(false, std::memory_order_relaxed);
  }
  at_fork = sums;
  any_batch.store(false, std::memory_order_relaxed);
  unit_name.store(0, std::memory_order_relaxed);
  when.begin_anew();
}

__attribute__((constructor)) void begin() noexcept {
  has_key = pthread_key_create(&at_thread_end, thread_ends) == 0;
  pthread_atfork(nullptr, nullptr, forked);
}

/// Returns whether the thread's open operations belong to the current recording. If they belong to
/// an earlier one, forgets them.
bool is_current(thread_counts& t) noexcept {
  const std::uint32_t now = recording.load(std::memory_order_relaxed);
  if (t.recording == now) return true;
  t.forget();
  t.recording = now;
  return false;
}

void enter(std::uint32_t name, bool is_batch) noexcept {
  thread_counts& t = counts();
  if (t.number == 0) return;
  is_current(t);
  const bool unit = is_batch || (t.open == 0 && !any_batch.load(std::memory_order_relaxed));
  if (unit) {
    if (unit_name.load(std::memory_order_relaxed) != name &&
        (unit_name.load(std::memory_order_relaxed) == 0 || is_batch)) {
      unit_name.store(name, std::memory_order_relaxed);
    }
    if (is_batch && !any_batch.load(std::memory_order_relaxed)) any_batch.store(true);
    when.unit_begins();
  }
  t.enter(name, when.slot_of(name), unit);
}

int leave(std::uint32_t name, heap_change& change) noexcept {
  thread_counts& t = counts();
  return is_current(t) ? t.leave(name, change) : 0;
}

void forget() noexcept {
  recording.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t units() noexcept {
  return when.units();
}

void sum(heap_sums& sums) noexcept {
  sums = {};
  std::uint64_t freed = 0;
  for (const thread_counts* t = all.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    freed += t->freed_bytes.get();
    sums.allocated_bytes += t->allocated_bytes.get();
    sums.allocated_calls += t->allocated_calls.get();
  }
  sums.held_bytes = static_cast<std::int64_t>(sums.allocated_bytes - freed);
  sums.allocated_bytes -= at_fork.allocated_bytes;
  sums.allocated_calls -= at_fork.allocated_calls;
  sums.units = when.units();
  sums.unit_name = unit_name.load(std::memory_order_relaxed);
}

void held(void (*tell)(void*, std::uint32_t, std::uint64_t, std::uint64_t) noexcept,
          void* to) noexcept {
  const std::uint32_t end = when.end_slot();
  for (std::uint32_t slot = when.first_slot(); slot < end; ++slot) {
    const std::uint32_t name = when.name(slot);
    std::int64_t bytes = 0;
    for (const thread_counts* t = all.load(std::memory_order_acquire); t != nullptr; t = t->next) {
      bytes += t->held[slot].get();
    }
    // The sum can be negative: after this function read the count of one thread, that thread may
    // allocate a block that another thread frees.
    if (name != 0 && bytes > 0) {
      tell(to, name, when.first_unit(slot), static_cast<std::uint64_t>(bytes));
    }
  }
}

/// Returns the path of the file that contains a function; null if the program has no such function.
const char* file_of(const char* symbol, Dl_info& info) noexcept {
  void* const function = dlsym(RTLD_DEFAULT, symbol);
  if (function == nullptr || dladdr(function, &info) == 0) return nullptr;
  return info.dli_fname;
}

void blind_to(char* text, std::size_t bytes) noexcept {
  text[0] = '\0';
  Dl_info us{};
  Dl_info other{};
  if (dladdr(reinterpret_cast<void*>(&sum), &us) == 0) return;
  const char* file = file_of("malloc", other);
  if (file != nullptr && other.dli_fbase != us.dli_fbase) {
    std::snprintf(text, bytes, "malloc is that of %s, which is not seen", file);
    return;
  }
  file = file_of("_Znwm", other);  // the mangled name of operator new(std::size_t)
  if (file != nullptr && other.dli_fbase != us.dli_fbase &&
      std::strstr(file, "libstdc++") == nullptr && std::strstr(file, "libc++") == nullptr) {
    std::snprintf(text, bytes,
                  "operator new is that of %s: what it does not take from malloc is not seen",
                  file);
  }
}

}  // namespace

thread_counts& first_counts() noexcept {
  if (ended) return of_no_thread;
  thread_counts* t = take_over();
  if (t == nullptr) t = make();
  if (t == nullptr) return of_no_thread;
  // Set `mine` before the call of pthread_setspecific(), which may allocate memory and would then
  // call this function again.
  mine = t;
  if (has_key) pthread_setspecific(at_thread_end, t);
  return *t;
}

}  // namespace lotus::memory

extern "C" __attribute__((visibility("default"))) const lotus::detail::heap_hook lotus_heap_hook = {
    lotus::detail::heap_hook_version,
    sizeof(lotus::detail::heap_hook),
    lotus::memory::enter,
    lotus::memory::leave,
    lotus::memory::forget,
    lotus::memory::units,
    lotus::memory::sum,
    lotus::memory::held,
    lotus::memory::blind_to,
};
