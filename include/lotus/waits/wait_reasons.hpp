// Defines the reasons for which threads wait, and the format of the file in which waits are
// recorded.
#ifndef LOTUS_WAITS_WAIT_REASONS_HPP
#define LOTUS_WAITS_WAIT_REASONS_HPP

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

// A file of waits (folder/hidden_files.hpp), which lotus-tool reads, has one line for each sample
// of a waiting thread. An object's line precedes the first sample that contains its id:
//   object,<id>,<text>                      a path, "pipe:[4711]", a peer's address, a call's name
//   variable,<id>,<address>,<base>,<path>   a variable at <address> in the module at <path>, whose
//                                           file is mapped from <base> on; both hexadecimal
//   build,<id>,<build id>                   the build id of the file of the line "variable" before
//   named,<address>,<name>                  the name of the variable; `lotus-tool run` adds it at
//   the
//                                           program's end
//   look,<ns since 1970>,<tid>,<reason>,<object's id, or 0>,<address, or 0>,<holder's tid, or
//                                           0>,<ns of thread time that this sample stands for>
// An id is valid until another line defines it again. Texts contain no control characters.

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class wait_reason : std::uint8_t {
  lock,       ///< a mutex or similar, or the lock of a file
  condition,  ///< a condition variable, a semaphore, an atomic variable, or a thread's end
  file,
  pipe,
  socket,
  poll,  ///< one or more descriptors, in poll, select or epoll
  sleep,
  process,     ///< the end of a child process
  page_fault,  ///< a page of memory that is read from the disk
  other,
};

/// The words for the enumerators of wait_reason in files of waits and in JSON.
inline constexpr const char* wait_reason_words[] = {"lock",       "condition", "file",  "pipe",
                                                    "socket",     "poll",      "sleep", "process",
                                                    "page-fault", "other"};
inline constexpr std::size_t wait_reasons =
    sizeof(wait_reason_words) / sizeof(wait_reason_words[0]);
static_assert(static_cast<std::size_t>(wait_reason::other) + 1 == wait_reasons,
              "a word for each reason, in the same order");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_REASONS_HPP
