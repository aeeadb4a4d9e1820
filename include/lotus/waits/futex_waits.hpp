// Determines what a thread that is in the system call futex(2) waits for: for a lock, and which
// thread holds it; for the end of a thread; or for something else.
#ifndef LOTUS_WAITS_FUTEX_WAITS_HPP
#define LOTUS_WAITS_FUTEX_WAITS_HPP

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/waits/system_calls.hpp"
#include "lotus/waits/wait_reasons.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Reads a word of this process's memory through the kernel; returns 0 if the address is not
/// mapped. A direct read could crash, because another thread may free the memory.
inline std::uint32_t word_at(std::uint64_t address) noexcept {
  std::uint32_t word = 0;
  const iovec to{&word, sizeof(word)};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
  const iovec from{reinterpret_cast<void*>(address), sizeof(word)};
  const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  return got == static_cast<ssize_t>(sizeof(word)) ? word : 0;
}

/// Returns whether this process has a running thread with this id.
inline bool is_own_running_thread(std::uint32_t tid) noexcept {
  return tid != 0 && tid <= FUTEX_TID_MASK &&
         syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) == 0;
}

/// The argument of wait_in_futex() for a thread of this process.
struct this_process {
  static std::uint32_t word_at(std::uint64_t address) noexcept { return detail::word_at(address); }
  static bool has_thread(std::uint32_t tid) noexcept { return is_own_running_thread(tid); }
};

struct futex_wait {
  wait_reason reason = wait_reason::condition;
  std::uint64_t address = 0;
  /// Id of the thread that holds the lock, or whose end is awaited; 0: unknown.
  std::uint32_t holder = 0;
  bool is_thread_end = false;  ///< whether the wait is for the end of thread `holder`
};

/// Determines what a thread waits for in a call of futex(2).
/// @param call  a call of futex with one of its waiting operations. The function recognizes glibc's
/// mutexes (which libstdc++ and libc++ use too), also with timeouts, priority inheritance or
/// robustness, glibc's reader-writer locks and pthread_join, and musl's mutexes.
/// @param process  the process of the thread. Its word_at() reads a word of its memory (0 if the
/// address is not mapped), and has_thread() returns whether a thread belongs to it.
template <class Process>
futex_wait wait_in_futex(const entered_call& call, const Process& process) noexcept {
  // Offsets and values in glibc's pthread_mutex_t and pthread_rwlock_t on 64-bit machines.
  constexpr std::uint64_t owner_after_lock = 8;
  constexpr std::uint64_t users_after_lock = 12;
  constexpr std::uint64_t phase_of_rwlock = 8;
  constexpr std::uint64_t writers_of_rwlock = 12;
  constexpr std::uint64_t writer_of_rwlock = 24;
  constexpr std::uint64_t locked_with_waiters = 2;
  constexpr std::uint64_t rwlock_waiters = 3;
  futex_wait of;
  of.address = call.arguments[0];
  const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
  const std::uint64_t value = call.arguments[2] & UINT32_MAX;
  const auto held_by = [&of, &process](std::uint32_t tid) {
    if (!process.has_thread(tid)) return false;
    of.reason = wait_reason::lock;
    of.holder = tid;
    return true;
  };
  // Threads wait for a reader-writer lock on two of its words. Both count as the lock itself.
  const auto is_rwlock = [&of, &process, &held_by](std::uint64_t word) {
    if (!held_by(process.word_at(of.address - word + writer_of_rwlock))) return false;
    of.address -= word;
    return true;
  };
  if (operation == FUTEX_LOCK_PI || operation == 13 /* FUTEX_LOCK_PI2, since Linux 5.14 */) {
    of.reason = wait_reason::lock;
    held_by(process.word_at(of.address) & FUTEX_TID_MASK);
  } else if (value == locked_with_waiters) {
    // A mutex counts as a lock even if it has no owner at this moment.
    if (operation == FUTEX_WAIT) of.reason = wait_reason::lock;
    // The C library's own locks, such as those of malloc's arenas, are single words without an
    // owner. The memory after such a word may contain a number that is also a thread's id, such as
    // 1 in a container. So an owner counts only if the mutex's number of users is not 0.
    (process.word_at(of.address + users_after_lock) != 0 &&
     held_by(process.word_at(of.address + owner_after_lock))) ||
        (operation != FUTEX_WAIT && is_rwlock(phase_of_rwlock));
  } else if (((value & FUTEX_WAITERS) != 0 &&
              held_by(static_cast<std::uint32_t>(value) & FUTEX_TID_MASK)) ||
             (value == rwlock_waiters && operation == FUTEX_WAIT_BITSET &&
              (is_rwlock(phase_of_rwlock) || is_rwlock(writers_of_rwlock)))) {
    // In this branch, the thread waits for a robust mutex, for a mutex of musl, or for a
    // reader-writer lock that a writer holds. A reader-writer lock that readers hold does not
    // contain their ids, so a wait for it is reported as a wait for a condition.
  } else if (operation == FUTEX_WAIT_BITSET && value != 0 &&
             process.has_thread(static_cast<std::uint32_t>(value)) &&
             process.word_at(of.address) == value) {
    of.holder = static_cast<std::uint32_t>(value);
    of.is_thread_end = true;
  }
  // A condition variable of glibc has two adjacent words on which threads wait. Rounding down gives
  // both words the same address, so that they count as one condition.
  if (of.reason == wait_reason::condition) of.address &= ~std::uint64_t{7};
  return of;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_FUTEX_WAITS_HPP
