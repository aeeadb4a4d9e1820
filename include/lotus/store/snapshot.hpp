// Takes snapshots of a running recording, and defines the triggers that request them.
#ifndef LOTUS_STORE_SNAPSHOT_HPP
#define LOTUS_STORE_SNAPSHOT_HPP

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/options.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/recovery/snapshot_folder.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Takes a snapshot, and deletes old snapshots if all together exceed `max_bytes`. Reports the
/// snapshot's name or the error. Returns whether the snapshot was taken.
LOTUS_DETAIL_COLD inline bool make_snapshot(const log_folder& logs, const log_location& run,
                                            std::string_view reason, std::uint64_t max_bytes,
                                            const own_aggregates& own) noexcept {
  snapshot_folder folder{logs.directory, run, logs.owners, logs.mode};
  const int error = folder.make(reason, logs.info, own);
  if (error == 0) {
    folder.keep_within(max_bytes);
    say("snapshot %s is stored next to the run", folder.name());
  } else {
    say("cannot store a snapshot of %s: %s%s", run.directory, is_refusal(error) ? "it " : "",
        file_error_text(error));
  }
  return error == 0;
}

/// Whether the signal options::snapshot_signal has arrived since the last snapshot that it
/// triggered.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> snapshot_signaled{false};
LOTUS_DETAIL_PER_MODULE inline struct sigaction handled_before {};

LOTUS_DETAIL_PER_MODULE inline void on_snapshot_signal(int number, siginfo_t* info,
                                                       void* context) noexcept {
  snapshot_signaled.store(true, std::memory_order_relaxed);
  const struct sigaction& before = handled_before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    if (before.sa_sigaction != nullptr) before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
}

/// Triggers snapshots when a signal arrives, when `lotus-tool snapshot` requests one, or after a
/// long wait. Not thread-safe: call begin() and end() while no other function is running; only the
/// drain thread calls the other functions.
class snapshot_triggers {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    max_bytes_ = chosen.snapshots_bytes;
    wait_ns_ = std::int64_t{chosen.snapshot_when_wait_ms} * 1'000'000;
    last_wait_ns_ = 0;
    reported_wait_ = 0;
    signal_ = 0;
    if (chosen.snapshot_signal == 0) return;
    struct sigaction ours {};
    ours.sa_sigaction = on_snapshot_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&ours.sa_mask);
    snapshot_signaled.store(false, std::memory_order_relaxed);
    if (sigaction(chosen.snapshot_signal, &ours, &handled_before) == 0) {
      signal_ = chosen.snapshot_signal;
    } else {
      say("cannot use signal %d for snapshots: %s", chosen.snapshot_signal, std::strerror(errno));
    }
  }

  LOTUS_DETAIL_COLD void end() noexcept {
    struct sigaction now {};
    if (signal_ == 0 || sigaction(signal_, nullptr, &now) != 0) return;
    const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_snapshot_signal;
    if (ours) sigaction(signal_, &handled_before, nullptr);
    signal_ = 0;
  }

  /// Maximum size in bytes of all snapshots together.
  std::uint64_t max_bytes() const noexcept { return max_bytes_; }
  /// Minimum duration, in ns, of a wait that triggers a snapshot; 0: waits trigger none.
  std::int64_t wait_ns() const noexcept { return wait_ns_; }
  /// Triggers a snapshot if a thread has waited for a batch for at least `long_ticks`. The producer
  /// must have a ring, and the caller must hold its guard.
  void look_at_wait(producer& p, std::uint64_t long_ticks) noexcept {
    const std::uint64_t since = p.ring->waiting_since.load(std::memory_order_relaxed);
    const bool was_long = p.longest_wait_ticks.exchange(0, std::memory_order_relaxed) >= long_ticks;
    const bool is_long = since != 0 && now_ticks() - since >= long_ticks;
    // A wait that has not ended triggers only one snapshot.
    if ((!was_long && !is_long) || (is_long && since == reported_wait_)) return;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (last_wait_ns_ != 0 && now_ns - last_wait_ns_ < between_waits_ns) return;
    reported_wait_ = is_long ? since : 0;
    last_wait_ns_ = now_ns;
    wait_seen_ = true;
  }

  /// Removes one pending trigger. Returns false if there is none.
  /// @param reason  receives the name of the trigger; has room for snapshot_place::max_reason_bytes
  /// + 1 bytes.
  bool take(const log_folder& logs, char* reason) noexcept {
    constexpr std::size_t room = snapshot_place::max_reason_bytes + 1;
    if (std::exchange(wait_seen_, false)) {
      std::snprintf(reason, room, "wait");
      return true;
    }
    if (snapshot_signaled.load(std::memory_order_relaxed) &&
        snapshot_signaled.exchange(false, std::memory_order_relaxed)) {
      std::snprintf(reason, room, "signal");
      return true;
    }
    return take_request(logs, reason);
  }

 private:
  static constexpr std::int64_t between_waits_ns = 60'000'000'000;

  /// Removes a request of `lotus-tool snapshot`, which is a file. If several processes of the run
  /// see the file, only the process that deletes it takes the snapshot.
  bool take_request(const log_folder& logs, char* reason) noexcept {
    struct stat status {};
    if (logs.directory < 0 ||
        fstatat(logs.directory, snapshot_request_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return false;
    }
    const int fd = open_own(logs.directory, snapshot_request_name, O_RDONLY, logs.owners, status);
    if (fd < 0) return false;
    const ssize_t bytes = read(fd, reason, snapshot_place::max_reason_bytes);
    close(fd);
    // A shell creates a file before it writes the reason, so an empty one is read once more.
    if (bytes <= 0 && !std::exchange(empty_request_seen_, true)) return false;
    empty_request_seen_ = false;
    reason[bytes > 0 ? bytes : 0] = '\0';
    return unlinkat(logs.directory, snapshot_request_name, 0) == 0;
  }

  std::uint64_t max_bytes_ = 0;
  std::int64_t wait_ns_ = 0;
  std::int64_t last_wait_ns_ = 0;
  std::uint64_t reported_wait_ = 0;
  bool wait_seen_ = false;
  bool empty_request_seen_ = false;
  int signal_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SNAPSHOT_HPP
