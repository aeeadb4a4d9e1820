// Provides the list of all producers. A producer is the state that the session keeps for a thread.
#ifndef LOTUS_STORE_PRODUCERS_HPP
#define LOTUS_STORE_PRODUCERS_HPP

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/record/thread.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline std::uint32_t thread_id() noexcept {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

inline bool thread_is_dead(std::uint32_t tid) noexcept {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

/// Whether a producer belongs to no running thread.
inline bool is_free_or_dead(const producer& p) noexcept {
  const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
  return tid == 0 || thread_is_dead(tid);
}

/// The list of producers. It only grows, so it can be read without a lock; producers of dead
/// threads are reused.
class LOTUS_DETAIL_PER_MODULE producer_list {
 public:
  template <class Each>
  void for_each(Each&& each) const noexcept {
    for (producer* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next) each(*p);
  }

  /// Returns this thread's producer; if the thread has none yet, a new or reused one. Returns null
  /// if there is no memory.
  /// @param retire  bool(producer&): drains a dead thread's producer; returns false if records
  /// remain, or if another thread is draining it.
  /// @param fits  bool(producer&): whether this thread may reuse a dead thread's producer.
  /// @param adopt  void(producer&): prepares a new or reused producer for this thread.
  template <class Retire, class Fits, class Adopt>
  producer* for_this_thread(Retire&& retire, Fits&& fits, Adopt&& adopt) noexcept {
    const std::uint32_t tid = thread_id();
    bool reaps = false;
    {
      const locked hold{lock_};
      // A producer with this thread's id is either this thread's own, created through another
      // shared object, or that of a dead thread whose id the kernel has reused. In both cases this
      // thread must use that producer and continue its logs, because only one ring may be written
      // to a log.
      if (producer* p = find(tid)) return p;
      // A thread that finds no free producer, because another one is still freeing them, helps it.
      // Otherwise new producers, and so new logs, would be added meanwhile.
      reaps = ++begun_ > reap_after_ || (reaping_ > 0 && find(0) == nullptr);
      if (reaps) begun_ = 0, ++reaping_;
    }
    // Nothing that may wait for the disk happens under the lock, which all new threads take.
    if (reaps) reap(retire);
    producer* const p = take(tid, fits);
    if (p != nullptr) adopt(*p);
    return p;
  }

  mutex& fork_lock() noexcept { return lock_; }
  /// The caller holds fork_lock().
  void after_fork_in_child() noexcept { reaping_ = 0; }

 private:
  static constexpr std::size_t at_once = gate_distance / sizeof(producer);
  static_assert(at_once >= 32 && sizeof(producer) >= sizeof(ring_gate));

  static constexpr std::size_t max_that_do_not_fit = 256;

  /// Returns a free producer, or a new one, that now belongs to the thread `tid`.
  template <class Fits>
  producer* take(std::uint32_t tid, Fits& fits) noexcept {
    const locked hold{lock_};
    producer* p = find_free(fits);
    // If this thread may reuse none of the free producers, a new one is added, because later
    // threads may reuse the free ones. If there are too many free ones already, one of them is
    // reused anyway, so that the list does not grow forever.
    if (p == nullptr && count_ >= running_ + reap_after_ + max_that_do_not_fit) p = find(0);
    if (p == nullptr) p = add();
    if (p != nullptr) p->tid.store(tid, std::memory_order_relaxed);
    return p;
  }

  template <class Fits>
  producer* find_free(Fits& fits) const noexcept {
    producer* p = first_.load(std::memory_order_acquire);
    while (p != nullptr && (p->tid.load(std::memory_order_relaxed) != 0 || !fits(*p))) p = p->next;
    return p;
  }

  producer* find(std::uint32_t tid) const noexcept {
    producer* p = first_.load(std::memory_order_acquire);
    while (p != nullptr && p->tid.load(std::memory_order_relaxed) != tid) p = p->next;
    return p;
  }

  /// Frees the producers of dead threads. Threads do not report their end to the session, so that
  /// even the last thread_local destructor of a thread can record. This function is next called
  /// when a quarter as many threads as run now have begun: often enough to bound the number of
  /// rings and logs, and rarely enough to keep the cost of a new thread low.
  template <class Retire>
  void reap(Retire& retire) noexcept {
    std::size_t running = 0;
    for_each([&](producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid == 0) return;
      ++running;
      if (!thread_is_dead(tid) || !retire(p)) return;
      // Meanwhile, a new thread may have got the dead thread's id, and with it this producer.
      const locked hold{lock_};
      const bool is_same = p.tid.load(std::memory_order_relaxed) == tid;
      if (!is_same || !thread_is_dead(tid) || !retire(p)) return;
      p.tid.store(0, std::memory_order_relaxed);
      --running;
    });
    const locked hold{lock_};
    --reaping_;
    running_ = running;
    reap_after_ = running / 4 + 8;
  }

  producer* add() noexcept {
    if (spare_count_ == 0) {
      auto* const memory = static_cast<char*>(map_memory(2 * gate_distance));
      if (memory == nullptr) return nullptr;
      clear_in_children(memory + gate_distance, gate_distance);
      spare_ = reinterpret_cast<producer*>(memory);
      spare_count_ = at_once;
    }
    auto* p = new (spare_++) producer;
    new (&gate_of(*p)) ring_gate;
    --spare_count_;
    ++count_;
    p->next = first_.load(std::memory_order_relaxed);
    first_.store(p, std::memory_order_release);
    return p;
  }

  mutex lock_;
  std::atomic<producer*> first_{nullptr};
  std::size_t count_ = 0;
  std::size_t begun_ = 0;    ///< number of threads that got a producer since the last reap()
  std::size_t reaping_ = 0;  ///< number of threads that are in reap() now
  std::size_t running_ = 0;  ///< number of threads that were running then
  std::size_t reap_after_ = 8;
  producer* spare_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_PRODUCERS_HPP
