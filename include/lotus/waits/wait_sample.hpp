// Determines whether a thread of this process waits at this moment, and for what.
#ifndef LOTUS_WAITS_WAIT_SAMPLE_HPP
#define LOTUS_WAITS_WAIT_SAMPLE_HPP

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/waits/futex_waits.hpp"
#include "lotus/waits/stack_words.hpp"
#include "lotus/waits/system_calls.hpp"
#include "lotus/waits/wait_objects.hpp"
#include "lotus/waits/wait_reasons.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

struct thread_wait {
  wait_reason reason = wait_reason::other;
  std::uint64_t address = 0;  ///< address of the lock or condition; 0: none
  std::uint32_t holder = 0;   ///< id of the lock's owner thread; 0: unknown
  char text[4096] = "";       ///< description of an object that has no address
  std::size_t text_bytes = 0;
};

/// Reads the files /proc/self/task/<tid>/syscall, which show in which system call a thread is.
/// Keeps some of them open, because opening a file takes longer than reading it. Not thread-safe.
/// Trivially destructible.
class call_files {
 public:
  /// Reads the file of a thread into `line`. Returns 0 or errno.
  template <std::size_t Bytes>
  int read(std::uint32_t tid, char (&line)[Bytes]) noexcept {
    entry& kept = entries_[tid % capacity];
    if (kept.tid != tid || !kept.file.holds()) {
      kept.file.close();
      char path[64];
      std::snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
      const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
      if (fd < 0) return errno;
      kept = {tid, owned_descriptor{fd}};
    }
    return read_again(tid, line);
  }

  /// Reads a second time the file that read() has just read. Must be called directly after read(),
  /// for the same thread.
  template <std::size_t Bytes>
  int read_again(std::uint32_t tid, char (&line)[Bytes]) noexcept {
    const ssize_t got = pread(entries_[tid % capacity].file.number(), line, Bytes - 1, 0);
    const int error = got < 0 ? errno : got == 0 ? EIO : 0;
    line[got > 0 ? got : 0] = '\0';
    if (error != 0) close(tid);
    return error;
  }

  void close_all() noexcept {
    for (entry& kept : entries_) {
      kept.file.close();
      kept.tid = 0;
    }
  }

 private:
  static constexpr std::size_t capacity = 16;

  struct entry {
    std::uint32_t tid = 0;  ///< thread whose file is open; 0: none
    owned_descriptor file;
  };

  void close(std::uint32_t tid) noexcept {
    entries_[tid % capacity].file.close();
    entries_[tid % capacity].tid = 0;
  }

  entry entries_[capacity];
};

inline void describe_wait(const entered_call& call, thread_wait& to) noexcept {
  const auto set_text = [&to](std::string_view text) {
    std::memcpy(to.text, text.data(), text.size());
    to.text_bytes = text.size();
  };
  if (call.number == entered_call::none) {
    to.reason = wait_reason::page_fault;
    return;
  }
  if (call.number == SYS_futex) {
    const futex_wait futex = wait_in_futex(call, this_process{});
    to.reason = futex.reason;
    to.address = futex.address;
    to.holder = futex.holder;
    if (futex.is_thread_end) set_text("the end of a thread");
    return;
  }
  const call_row* const row = row_of_call(call.number);
  if (row == nullptr) {
    to.reason = wait_reason::other;
    const int n = std::snprintf(to.text, sizeof(to.text), "system call %ld", call.number);
    to.text_bytes = n > 0 ? static_cast<std::size_t>(n) : 0;
    return;
  }
  to.reason = row->reason;
  if (row->of_descriptor) {
    const int fd = static_cast<int>(call.arguments[0]);
    to.text_bytes = wait_objects::describe(fd, to.text, sizeof(to.text));
    const std::string_view what{to.text, to.text_bytes};
    if (row->reason == wait_reason::file && what.substr(0, 5) == "pipe:") {
      to.reason = wait_reason::pipe;
    } else if (row->reason == wait_reason::file && !what.empty() && what[0] != '/') {
      // Texts such as "anon_inode:[eventfd]" describe kernel objects; the others describe peers of
      // sockets.
      to.reason = what.substr(0, 5) == "anon_" ? wait_reason::other : wait_reason::socket;
    }
  }
  if (to.text_bytes == 0 && row->reason != wait_reason::sleep) set_text(row->name);
}

/// Returns whether the files show the system calls of this program: the calling thread must be in
/// the call that reads its file. In an emulator such as qemu-user they show the calls that the
/// emulator makes, with the numbers of the machine that it runs on.
inline bool shows_own_calls(call_files& files) noexcept {
  char line[256];
  entered_call call;
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  // sample_thread() reports errors.
  if (files.read(tid, line) != 0 || !call.parse(line)) return true;
  return call.number == SYS_pread64;
}

/// Whether reading failed because, after the library had checked its descriptor, the program closed
/// it or opened another file under the same number.
inline bool is_other_file(int error) noexcept {
  return error == EBADF || error == EISDIR || error == ESPIPE;
}

/// The result of sampling a thread.
enum class sample_result : std::uint8_t {
  waits,
  runs,       ///< the thread is running, or continued to run while its state was read
  gone,       ///< the thread has ended
  forbidden,  ///< the kernel does not let this process read the thread's file
};

/// Determines whether a thread waits at this moment, and for what.
/// @param wait  receives the description of the wait if the result is `waits`.
/// @param stack  receives a copy of the thread's stack if the result is `waits`; null: none is
/// made.
/// @param error  set to errno if the result is `forbidden`.
inline sample_result sample_thread(std::uint32_t tid, call_files& files, thread_wait& wait,
                                   stack_words* stack, int& error) noexcept {
  char before[256];
  char after[256];
  error = files.read(tid, before);
  if (error == EINTR || error == EMFILE || error == ENFILE || error == ENOMEM ||
      is_other_file(error)) {
    return sample_result::runs;
  }
  if (error != 0)
    return is_own_running_thread(tid) ? sample_result::forbidden : sample_result::gone;
  entered_call call;
  if (!call.parse(before)) return sample_result::runs;
  describe_wait(call, wait);
  if (stack != nullptr) stack->copy(call);
  // The file /proc/self/task/<tid>/syscall contains the thread's system call and stack pointer. If
  // the contents of this file have not changed, the thread is still in the wait that was described,
  // and the copy of its stack belongs to this wait.
  if (files.read_again(tid, after) != 0 || std::strcmp(before, after) != 0) {
    return sample_result::runs;
  }
  return sample_result::waits;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_SAMPLE_HPP
