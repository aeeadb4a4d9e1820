// Lists the system calls in which threads usually wait, and what each call waits for, such as a
// file or a socket.
#ifndef LOTUS_WAITS_SYSTEM_CALLS_HPP
#define LOTUS_WAITS_SYSTEM_CALLS_HPP

#include <stdlib.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/waits/wait_reasons.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The system call in which a thread is, read from a line of /proc/PID/task/TID/syscall.
struct entered_call {
  static constexpr long none = -1;  ///< the thread is off the CPU, but in no system call

  long number = none;
  std::uint64_t arguments[6] = {};
  std::uint64_t sp = 0;  ///< the thread's stack pointer; 0: unknown
  std::uint64_t pc = 0;  ///< the thread's program counter; 0: unknown

  /// Parses a line of /proc/PID/task/TID/syscall. Returns false if the thread was running, or if
  /// the line has another format.
  bool parse(const char* line) noexcept {
    char* end = nullptr;
    number = strtol(line, &end, 10);
    if (end == line) return false;  // the line is "running"
    const auto take = [&end](std::uint64_t& value) {
      const char* const begin = end;
      value = strtoull(begin, &end, 16);
      return end != begin;
    };
    if (number != none) {
      for (std::uint64_t& argument : arguments) {
        if (!take(argument)) return false;
      }
    }
    if (!take(sp) || !take(pc)) sp = pc = 0;
    return true;
  }
};

/// A system call, and what it waits for.
struct call_row {
  long number;
  wait_reason reason;
  bool of_descriptor;  ///< whether the first argument is the descriptor for which the call waits
  const char* name;
};

#define LOTUS_DETAIL_CALL(name, reason, of_descriptor) \
  {SYS_##name, wait_reason::reason, of_descriptor, #name},
/// The system calls in which threads usually wait; any other call has the reason `other`. If an
/// argument of a call is a descriptor, describe_wait() changes the reason to the one for the
/// descriptor's kind of file, such as a pipe.
inline constexpr call_row call_table[] = {
    // clang-format off
    LOTUS_DETAIL_CALL(read, file, true)
    LOTUS_DETAIL_CALL(pread64, file, true)
    LOTUS_DETAIL_CALL(readv, file, true)
    LOTUS_DETAIL_CALL(preadv, file, true)
    LOTUS_DETAIL_CALL(preadv2, file, true)
    LOTUS_DETAIL_CALL(write, file, true)
    LOTUS_DETAIL_CALL(pwrite64, file, true)
    LOTUS_DETAIL_CALL(writev, file, true)
    LOTUS_DETAIL_CALL(pwritev, file, true)
    LOTUS_DETAIL_CALL(pwritev2, file, true)
    LOTUS_DETAIL_CALL(sendfile, file, true)
    LOTUS_DETAIL_CALL(splice, file, true)
    LOTUS_DETAIL_CALL(copy_file_range, file, true)
    LOTUS_DETAIL_CALL(fsync, file, true)
    LOTUS_DETAIL_CALL(fdatasync, file, true)
    LOTUS_DETAIL_CALL(sync_file_range, file, true)
    LOTUS_DETAIL_CALL(fallocate, file, true)
    LOTUS_DETAIL_CALL(ftruncate, file, true)
    LOTUS_DETAIL_CALL(flock, lock, true)
    LOTUS_DETAIL_CALL(fcntl, lock, true)
    LOTUS_DETAIL_CALL(fstat, file, true)
    LOTUS_DETAIL_CALL(getdents64, file, true)
    LOTUS_DETAIL_CALL(readahead, file, true)
    LOTUS_DETAIL_CALL(close, file, true)
    LOTUS_DETAIL_CALL(openat, file, false)
    LOTUS_DETAIL_CALL(newfstatat, file, false)
    LOTUS_DETAIL_CALL(statx, file, false)
    LOTUS_DETAIL_CALL(faccessat, file, false)
    LOTUS_DETAIL_CALL(readlinkat, file, false)
    LOTUS_DETAIL_CALL(unlinkat, file, false)
    LOTUS_DETAIL_CALL(mkdirat, file, false)
    LOTUS_DETAIL_CALL(sync, file, false)
    LOTUS_DETAIL_CALL(recvfrom, socket, true)
    LOTUS_DETAIL_CALL(recvmsg, socket, true)
    LOTUS_DETAIL_CALL(recvmmsg, socket, true)
    LOTUS_DETAIL_CALL(sendto, socket, true)
    LOTUS_DETAIL_CALL(sendmsg, socket, true)
    LOTUS_DETAIL_CALL(sendmmsg, socket, true)
    LOTUS_DETAIL_CALL(accept, socket, true)
    LOTUS_DETAIL_CALL(accept4, socket, true)
    LOTUS_DETAIL_CALL(connect, socket, true)
    LOTUS_DETAIL_CALL(ppoll, poll, false)
    LOTUS_DETAIL_CALL(pselect6, poll, false)
    LOTUS_DETAIL_CALL(epoll_pwait, poll, false)
    LOTUS_DETAIL_CALL(nanosleep, sleep, false)
    LOTUS_DETAIL_CALL(clock_nanosleep, sleep, false)
    LOTUS_DETAIL_CALL(wait4, process, false)
    LOTUS_DETAIL_CALL(waitid, process, false)
    LOTUS_DETAIL_CALL(ioctl, other, true)
    LOTUS_DETAIL_CALL(rt_sigtimedwait, other, false)
    LOTUS_DETAIL_CALL(rt_sigsuspend, other, false)
    LOTUS_DETAIL_CALL(mmap, other, false)
    LOTUS_DETAIL_CALL(munmap, other, false)
    LOTUS_DETAIL_CALL(mprotect, other, false)
    LOTUS_DETAIL_CALL(madvise, other, false)
    LOTUS_DETAIL_CALL(mremap, other, false)
    LOTUS_DETAIL_CALL(msync, other, false)
    LOTUS_DETAIL_CALL(brk, other, false)
    LOTUS_DETAIL_CALL(clone, other, false)
    LOTUS_DETAIL_CALL(execve, other, false)
    LOTUS_DETAIL_CALL(msgrcv, other, false)
    LOTUS_DETAIL_CALL(semop, other, false)
    LOTUS_DETAIL_CALL(semtimedop, other, false)
    LOTUS_DETAIL_CALL(mq_timedreceive, other, false)
    LOTUS_DETAIL_CALL(io_getevents, other, false)
#if defined(SYS_clone3)
    LOTUS_DETAIL_CALL(clone3, other, false)
#endif
#if defined(SYS_io_uring_enter)
    LOTUS_DETAIL_CALL(io_uring_enter, other, false)
#endif
#if defined(SYS_epoll_pwait2)
    LOTUS_DETAIL_CALL(epoll_pwait2, poll, false)
#endif
#if defined(__x86_64__)  // aarch64 does not have these older calls
    LOTUS_DETAIL_CALL(open, file, false)
    LOTUS_DETAIL_CALL(stat, file, false)
    LOTUS_DETAIL_CALL(lstat, file, false)
    LOTUS_DETAIL_CALL(access, file, false)
    LOTUS_DETAIL_CALL(getdents, file, true)
    LOTUS_DETAIL_CALL(poll, poll, false)
    LOTUS_DETAIL_CALL(select, poll, false)
    LOTUS_DETAIL_CALL(epoll_wait, poll, false)
    LOTUS_DETAIL_CALL(pause, other, false)
    LOTUS_DETAIL_CALL(fork, other, false)
    LOTUS_DETAIL_CALL(vfork, other, false)
#endif
    // clang-format on
};
#undef LOTUS_DETAIL_CALL

/// Returns the row of a system call; null if the call is not in the table.
inline const call_row* row_of_call(long number) noexcept {
  for (const call_row& row : call_table) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_SYSTEM_CALLS_HPP
