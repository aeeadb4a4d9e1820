// Writes the information file of a process: a small file in the run's directory with the process's
// identity, threads and record counts.
#ifndef LOTUS_STORE_RUN_RUN_INFO_HPP
#define LOTUS_STORE_RUN_RUN_INFO_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/store/cpu_clock.hpp"
#include "lotus/store/limits/log_limits.hpp"
#include "lotus/store/run/idle_time.hpp"
#include "lotus/store/run/process_lines.hpp"
#include "lotus/store/run/run_directory.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How far from now, in the past or in the future, a span ends. Used for spans whose times the
/// program measured itself.
struct span_distance {
  std::uint64_t away_ns;
  bool behind;  ///< whether the end is in the past

  /// @param over_for_ns  time since the span's end in ns; negative if the end is in the future.
  explicit span_distance(std::int64_t over_for_ns) noexcept
      : away_ns{over_for_ns >= 0 ? static_cast<std::uint64_t>(over_for_ns)
                                 : 0 - static_cast<std::uint64_t>(over_for_ns)},
        behind{over_for_ns >= 0} {}
};

/// The maximum distances, one into the past and one into the future, between the moment when a span
/// is recorded and the span's end (see span_distance), as the information file states them.
/// covers() is thread-safe; callers of the other functions hold a lock.
class reported_reach {
 public:
  reported_reach() noexcept = default;
  reported_reach(const reported_reach&) = delete;
  reported_reach& operator=(const reported_reach& other) noexcept {
    if (this == &other) return *this;
    margin_ns_.store(other.margin_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    ahead_ns_.store(other.ahead_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    return *this;
  }
  ~reported_reach() = default;

  /// Whether a span that ends at the distance `end` from now lies within the stored distances, so
  /// that the information file needs no new line for it.
  bool covers(const span_distance& end) const noexcept {
    return end.away_ns <= always_ns ||
           end.away_ns <= side(end.behind).load(std::memory_order_acquire);
  }
  std::uint64_t ns(bool behind) const noexcept {
    return side(behind).load(std::memory_order_relaxed);
  }
  /// Stores a new largest distance after it was written to the information file.
  void extend(bool behind, std::uint64_t to_ns) noexcept {
    (behind ? margin_ns_ : ahead_ns_).store(to_ns, std::memory_order_release);
  }

 private:
  // A shorter distance needs no line in the file, because readers expect differences of this size
  // anyway: the clocks of threads may differ by as much.
  static constexpr std::uint64_t always_ns = 1'000'000;

  const std::atomic<std::uint64_t>& side(bool behind) const noexcept {
    return behind ? margin_ns_ : ahead_ns_;
  }

  std::atomic<std::uint64_t> margin_ns_{0};
  std::atomic<std::uint64_t> ahead_ns_{0};
};

/// Appends lines "<key> <values>" to the file. If a key occurs again, its last line counts:
///   lotus <version> / host <name> / namespace <boot id> <n> / pid <n> / parent <n> / rank <n>
///   forked <n>: parent that runs the same program / run <file>: the file named by LOTUS_RUN_LIST
///   command <its arguments, separated by blanks; cut after 1000 bytes>
///   cpu <off|batches|switches>
///   cpus <number it may run on> <a cgroup's limit, or -> <first of them> <number of the parent's>
///   clock <ticks> <ns since 1970> <ns per tick * 2^32>
///   cpu_time <ns since 1970> <ns> <idle ns>: CPU time of all threads of the process until
///     then, and how long its CPUs were idle (idle_time.hpp), or -1
///   limits <periods> <stopped> <system ns> <faults>: until the previous line cpu_time: periods of
///     the cgroup's CPU limit, those in which the limit stopped the process, CPU time in the
///     kernel, page faults
///   affinity <tid> <CPUs> <first CPU>: a thread that may run on fewer CPUs than the process
///   thread <tid> <name> / log <number> <tid> / records <written> <dropped>
///   back <ns>: maximum time by which a line of a text log ends earlier than a line before it
///   forgotten <files> <bytes> <ns since 1970>: logs deleted by limits, and their last write
///   snapshot <ns since 1970>: only in a snapshot: when it was taken (recovery/snapshot_folder.hpp)
/// A log has a number of its own if another process uses the thread's id; see
/// folder/log_claims.hpp. When the file is created, space for the lines "records" and "forgotten"
/// is reserved, so that these lines can be written even if the disk is full. A process that records
/// again in the same directory continues its file, and "records" contains the sums. Names and the
/// command have the form of names in logs, with an S before them. Failures are ignored, because
/// recording does not depend on the file. covers() is thread-safe; callers of the other functions
/// hold the lock of run_files. Trivially destructible.
class run_info {
 public:
  /// Creates the file, or continues the previous file if it has the same settings.
  /// @param directory  borrowed.
  /// @param mode       permissions of the file, before the umask applies.
  /// @param watching   when threads read their CPU clocks.
  /// @param limited    whether parts of logs may be deleted.
  /// @return the number in the file's name, which the name of the ring file must contain too.
  unsigned long long create(run_directory& directory, mode_t mode, const clock_segment& clock,
                            cpu_watching watching, bool limited) noexcept {
    if (directory_ == &directory && mode_ == mode && watching_ == watching && can_go_on()) {
      add_clock(clock);
      add_cpus(watching);
      add_cpu_time();
      return name_ns_;
    }
    *this = run_info{};
    watching_ = watching;
    directory_ = &directory;
    mode_ = mode;
    name_ns_ = static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME));
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(file_, sizeof(file_), "%s%u_%llx", run_info_start, pid, name_ns_);
    const mapped<process_lines<5120>> memory;
    if (memory) {
      (*memory).add_process();
      (*memory).add_cpus(watching);
      append(*memory);
    }
    add_clock(clock);
    add_cpu_time();
    records_end_ = append_room(records_bytes);
    if (limited) forgotten_end_ = append_room(forgotten_bytes);
    return name_ns_;
  }

  /// Adds a line "cpu" if threads now read their CPU clocks at other moments (see cpu_watching)
  /// than the file states.
  void report_watching(cpu_watching watching) noexcept {
    if (watching == watching_ || directory_ == nullptr) return;
    watching_ = watching;
    add_cpus(watching);
  }

  /// @param tid  id of any running thread.
  void add_thread(std::uint32_t tid) noexcept {
    process_lines<320> lines;
    lines.add_thread(tid);
    append(lines);
  }

  void add_clock(const clock_segment& clock) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "clock %llu %lld %llu\n",
                               static_cast<unsigned long long>(clock.start_ticks),
                               static_cast<long long>(clock.start_ns),
                               static_cast<unsigned long long>(clock.rate)));
  }

  /// Adds a line "cpu_time": the CPU time of the process so far, and the idle time of its CPUs.
  void add_cpu_time() noexcept {
    if (directory_ == nullptr || watching_ == cpu_watching::off) return;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (first_cpu_time_ns_ == 0) first_cpu_time_ns_ = now_ns;
    // The pause before the next line is a sixteenth of the time recorded so far, so that even a
    // long recording has few of these lines.
    constexpr std::int64_t min_pause_ns = 50'000'000;
    const std::int64_t pause_ns = (now_ns - first_cpu_time_ns_) / 16;
    next_cpu_time_ns_ = now_ns + (pause_ns > min_pause_ns ? pause_ns : min_pause_ns);
    char text[96];
    append(text, std::snprintf(text, sizeof(text), "cpu_time %lld %lld %lld\n",
                               static_cast<long long>(clock_ns(CLOCK_REALTIME)),
                               static_cast<long long>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
                               static_cast<long long>(idle_ns_of_cpus())));
    process_lines<1024> lines;
    lines.add_limits();
    lines.add_affinities(bound_threads_);
    append(lines);
  }

  /// Adds a line "cpu_time" if the next one is due. Does nothing before create().
  void add_due_cpu_time() noexcept {
    if (next_cpu_time_ns_ != 0 && clock_ns(CLOCK_MONOTONIC) >= next_cpu_time_ns_) add_cpu_time();
  }

  /// Whether a span that ends at the distance `end` from now lies within the distances that the
  /// file already states. Thread safety: any thread, without a lock.
  bool covers(const span_distance& end) const noexcept { return reach_.covers(end); }

  /// Adds a line "back", from which readers know how far lines may be out of order, unless an
  /// earlier line suffices for this span; see covers(). Call this function before the span is
  /// recorded. If the line cannot be written, the call for the next span that no line covers tries
  /// again.
  void add_span(const span_distance& end) noexcept {
    if (reach_.covers(end) || directory_ == nullptr) return;
    // The distance is rounded up to a power of two, so that there are few lines.
    constexpr std::uint64_t max_ns = std::uint64_t{1} << 61;
    std::uint64_t new_ns = std::uint64_t{1} << 20;
    while (new_ns < end.away_ns && new_ns < max_ns) new_ns *= 2;
    const unsigned long long back_ns = reach_.ns(!end.behind) + new_ns;
    char text[48];
    const int n = std::snprintf(text, sizeof(text), "back %llu\n", back_ns);
    if (append(text, n) != 0) reach_.extend(end.behind, new_ns);
  }

  /// Adds the record counts of one recording to the line "records".
  void add_records(std::uint64_t written, std::uint64_t dropped) noexcept {
    written_ += written;
    dropped_ += dropped;
    char text[records_bytes + 1];
    const int n = std::snprintf(text, sizeof(text), "records %llu %llu\n",
                                static_cast<unsigned long long>(written_),
                                static_cast<unsigned long long>(dropped_));
    put(text, n, records_bytes, records_end_);
  }

  void add_deleted(const deleted_logs& now) noexcept {
    if (now.files == 0 || directory_ == nullptr) return;
    forgotten_.files += now.files;
    forgotten_.bytes += now.bytes;
    forgotten_.until_ns = now.until_ns > forgotten_.until_ns ? now.until_ns : forgotten_.until_ns;
    char text[forgotten_bytes + 1];
    const int n = std::snprintf(text, sizeof(text), "forgotten %llu %llu %lld\n",
                                static_cast<unsigned long long>(forgotten_.files),
                                static_cast<unsigned long long>(forgotten_.bytes),
                                static_cast<long long>(forgotten_.until_ns));
    put(text, n, forgotten_bytes, forgotten_end_);
  }

  /// The file's name; empty if there is no file yet.
  const char* file() const noexcept { return file_; }

 private:
  void add_cpus(cpu_watching watching) noexcept {
    process_lines<320> lines;
    lines.add_cpus(watching);
    append(lines);
  }

  /// Whether a new recording may continue the file: it still exists, is not too long, and there is
  /// no ring file with the same number in its name.
  bool can_go_on() const noexcept {
    constexpr off_t max_bytes = off_t{1} << 20;
    const int directory = directory_->descriptor();
    struct stat status {};
    const int fd = open_own(directory, file_, O_RDONLY, file_owners::of_caller(directory), status);
    if (fd < 0) return false;
    close(fd);
    char ring[sizeof(file_)];
    std::snprintf(ring, sizeof(ring), "%s%s", ring_file_start, file_ + sizeof(run_info_start) - 1);
    struct stat other {};
    return file_identity_.is(status) && status.st_size < max_bytes &&
           fstatat(directory, ring, &other, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  }

  int open_file(struct stat& status) const noexcept {
    const int directory = directory_ != nullptr ? directory_->descriptor() : -ENOENT;
    if (directory < 0) return directory;
    bool made = false;
    return open_to_append(directory, file_, file_owners::of_caller(directory), mode_, status, made);
  }

  template <std::size_t Bytes>
  void append(const process_lines<Bytes>& lines) noexcept {
    append(lines.text(), lines.bytes());
  }

  /// Appends text to the file. Returns the new end of the file, or 0 if it could not be written.
  off_t append(const char* text, int bytes) noexcept {
    struct stat status {};
    const int fd = open_file(status);
    if (fd < 0) return 0;
    file_identity_ = {status.st_dev, status.st_ino};
    const int error = write_all(fd, text, static_cast<std::size_t>(bytes));
    const off_t end = lseek(fd, 0, SEEK_CUR);
    close(fd);
    return error == 0 && end > 0 ? end : 0;
  }

  /// Appends a blank line of this size, to reserve space. Returns the new end of the file, or 0.
  off_t append_room(int bytes) noexcept {
    char text[forgotten_bytes];
    std::memset(text, ' ', sizeof(text));
    text[bytes - 1] = '\n';
    return append(text, bytes);
  }

  /// Writes a line into the reserved space that ends at `room_end`, padded with blanks so that the
  /// line overwrites an earlier line completely. Appends the line if no space is reserved.
  void put(char* text, int length, int room_bytes, off_t room_end) noexcept {
    std::memset(text + length, ' ', static_cast<std::size_t>(room_bytes - length));
    text[room_bytes - 1] = '\n';
    if (!replace(text, room_bytes, room_end)) append(text, length);
  }

  /// Writes into the space that create() reserved. Returns false if no space is reserved there, or
  /// if writing fails.
  bool replace(const char* text, int bytes, off_t end) const noexcept {
    struct stat status {};
    const int fd = end > 0 ? open_file(status) : -1;
    if (fd < 0) return false;
    // The flag O_APPEND is removed, because with it every write goes to the end of the file.
    const bool placed = lseek(fd, 0, SEEK_END) >= end && fcntl(fd, F_SETFL, 0) == 0 &&
                        lseek(fd, end - bytes, SEEK_SET) >= 0;
    const int error = placed ? write_all(fd, text, static_cast<std::size_t>(bytes)) : EIO;
    close(fd);
    return error == 0;
  }

  // Maximum lengths of the lines "records" and "forgotten", including a blank at the end.
  static constexpr int records_bytes = 52;
  static constexpr int forgotten_bytes = 74;

  run_directory* directory_ = nullptr;
  mode_t mode_ = 0;
  char file_[64] = {};
  /// Time when the file was created, in ns of CLOCK_REALTIME; part of the file's name.
  unsigned long long name_ns_ = 0;
  file_identity file_identity_;
  cpu_watching watching_{};
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  deleted_logs forgotten_;
  reported_reach reach_;
  /// Times at which the first line "cpu_time" was written and at which the next one is due, in ns
  /// of CLOCK_MONOTONIC.
  std::int64_t first_cpu_time_ns_ = 0;
  std::int64_t next_cpu_time_ns_ = 0;
  reported_threads bound_threads_;
  /// End of the space reserved in the file for the line "records"; 0: none.
  off_t records_end_ = 0;
  off_t forgotten_end_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_INFO_HPP
