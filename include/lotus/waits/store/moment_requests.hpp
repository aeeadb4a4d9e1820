// Lets the processes of a run record at about the same time what their threads do, so that a
// snapshot that one of them takes shows the threads of all.
#ifndef LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP
#define LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/file.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/safe_open.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Requests between the processes of a run. A request is a file in the run's directory. Its first
/// line identifies it; each process that has answered appends one byte. Not thread-safe.
class moment_requests {
 public:
  /// @param interval_ms  how often the processes of the run look for requests.
  void begin(std::uint32_t interval_ms) noexcept {
    constexpr std::uint32_t longest_ms = 1'000;
    max_wait_ms_ = interval_ms < longest_ms ? interval_ms + interval_ms / 2 : longest_ms;
  }

  /// Asks the other processes of the run to record what their threads do. Does nothing if there are
  /// none.
  LOTUS_DETAIL_COLD void ask(const log_folder& run) noexcept {
    others_ = others_of(run);
    if (others_ == 0) return;
    unlinkat(run.directory, moment_request_name, 0);  // one that a killed process has left
    char text[id_bytes];
    const int bytes = std::snprintf(text, sizeof(text), "%ld %lld\n", static_cast<long>(getpid()),
                                    static_cast<long long>(clock_ns(CLOCK_REALTIME)));
    asked_bytes_ = static_cast<std::size_t>(bytes);
    asked_ns_ = clock_ns(CLOCK_MONOTONIC);
    struct stat status {};
    const int fd = open_regular(run.directory, moment_request_name, O_WRONLY | O_CREAT | O_EXCL,
                                status, run.mode);
    if (fd < 0 || write_all(fd, text, asked_bytes_) != 0) others_ = 0;
    if (fd >= 0) close(fd);
  }

  /// Waits until the other processes have answered the request of ask(), then deletes it. Processes
  /// that are dead, stopped or not allowed to write never answer, so the wait is limited.
  LOTUS_DETAIL_COLD void await_answers(const log_folder& run) noexcept {
    if (others_ == 0) return;
    constexpr timespec pause{0, 2'000'000};
    const std::int64_t end_ns = asked_ns_ + std::int64_t{max_wait_ms_} * 1'000'000;
    struct stat status {};
    while (fstatat(run.directory, moment_request_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           static_cast<std::size_t>(status.st_size) < asked_bytes_ + others_ &&
           clock_ns(CLOCK_MONOTONIC) < end_ns) {
      nanosleep(&pause, nullptr);
    }
    unlinkat(run.directory, moment_request_name, 0);
    others_ = 0;
  }

  /// Calls `record` if another process has made a request that this process has not answered yet.
  template <class Record>
  void answer(const log_folder& run, Record record) noexcept {
    struct stat status {};
    if (run.directory < 0 ||
        fstatat(run.directory, moment_request_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return;
    }
    const int fd =
        open_own(run.directory, moment_request_name, O_RDWR | O_APPEND, run.owners, status);
    if (fd < 0) return;
    char text[id_bytes] = "";
    const ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
    char* const end = bytes > 0 ? std::strchr(text, '\n') : nullptr;
    if (end != nullptr) {
      *end = '\0';
      if (std::strcmp(text, answered_) != 0) {
        std::memcpy(answered_, text, sizeof(text));
        record();
        write_all(fd, ".", 1);
      }
    }
    close(fd);
  }

 private:
  static constexpr std::size_t id_bytes = 48;

  /// Returns the number of ring files of other processes: each process that records has one.
  static std::size_t others_of(const log_folder& run) noexcept {
    if (run.directory < 0) return 0;
    std::size_t count = 0;
    for_each_entry(run.directory, [&](const char* name) {
      const std::size_t start = sizeof(ring_file_start) - 1;
      if (std::strncmp(name, ring_file_start, start) != 0) return;
      if (std::strcmp(name + start, run.info + sizeof(run_info_start) - 1) != 0) ++count;
    });
    return count;
  }

  std::uint32_t max_wait_ms_ = 0;
  std::size_t others_ = 0;        ///< number of processes that have to answer
  std::size_t asked_bytes_ = 0;   ///< size of this process's request without answers
  std::int64_t asked_ns_ = 0;     ///< time of this process's request (CLOCK_MONOTONIC)
  char answered_[id_bytes] = "";  ///< first line of the request that was answered last
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP
