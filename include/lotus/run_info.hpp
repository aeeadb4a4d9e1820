// One small file for each process of a run: who recorded, where, and how much.
#ifndef LOTUS_RUN_INFO_HPP
#define LOTUS_RUN_INFO_HPP

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/names.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char run_info_start[] = ".lotus_info_";

/// Appends lines "<key> <values>", of which the last of a kind counts:
///   lotus 0.1.0 / host <name> / pid <n> / parent <n> / rank <n>
///   clock <ticks> <ns since the epoch> <ns per tick * 2^32>
///   thread <tid> <name> / records <written> <dropped>
/// Names are written as in logs, behind an S. What cannot be written is left out: nothing depends
/// on it. Thread safety: none; the session locks. Trivially destructible.
class run_info {
 public:
  /// @param directory  borrowed, must stay open.
  void create(int directory, const clock_segment& clock) noexcept {
    directory_ = directory;
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(file_, sizeof(file_), "%s%u_%llx", run_info_start, pid,
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    line host_name{host};
    char text[1024];
    const int n = std::snprintf(text, sizeof(text), "lotus %s\nhost %s\npid %u\nparent %u\n",
                                LOTUS_DETAIL_VERSION_STRING, host_name.text, pid,
                                static_cast<unsigned>(getppid()));
    append(text, n);
    add_rank();
    add_clock(clock);
  }

  /// @param tid  this thread, or one that lives.
  void add_thread(std::uint32_t tid) noexcept {
    char path[64];
    char name[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, name, sizeof(name) - 1);
    close(fd);
    if (got > 0 && name[got - 1] == '\n') name[got - 1] = '\0';
    const line safe{name};
    char text[256];
    append(text, std::snprintf(text, sizeof(text), "thread %u %s\n", tid, safe.text));
  }

  void add_clock(const clock_segment& clock) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "clock %llu %lld %llu\n",
                               static_cast<unsigned long long>(clock.start_ticks),
                               static_cast<long long>(clock.start_ns),
                               static_cast<unsigned long long>(clock.rate)));
  }

  void add_records(std::uint64_t written, std::uint64_t dropped) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "records %llu %llu\n",
                               static_cast<unsigned long long>(written),
                               static_cast<unsigned long long>(dropped)));
  }

 private:
  /// A name that stays on its line.
  struct line {
    char text[3 * 256 + 2];
    explicit line(const char* name) noexcept {
      text[write_line_name(std::string_view{name}.substr(0, 255), text)] = '\0';
    }
  };

  void add_rank() noexcept {
    for (const char* variable : {"LOTUS_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* value = getenv(variable);
      if (value == nullptr || *value == '\0') continue;
      char* end = nullptr;
      const unsigned long rank = strtoul(value, &end, 10);
      if (*end != '\0') continue;
      char text[64];
      return append(text, std::snprintf(text, sizeof(text), "rank %lu\n", rank));
    }
  }

  void append(const char* text, int bytes) noexcept {
    const int fd = openat(directory_, file_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return;
    write_all(fd, text, static_cast<std::size_t>(bytes));
    close(fd);
  }

  int directory_ = -1;
  char file_[64] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RUN_INFO_HPP
