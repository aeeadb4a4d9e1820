// Builds the lines with which a process describes itself in its information file.
#ifndef LOTUS_STORE_RUN_PROCESS_LINES_HPP
#define LOTUS_STORE_RUN_PROCESS_LINES_HPP

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/cpu_limits.hpp"
#include "lotus/base/environment.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/base/process_threads.hpp"
#include "lotus/config.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/names.hpp"
#include "lotus/store/cpu_clock.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The threads whose affinity is in the information file already; at most so many are reported.
struct reported_threads {
  static constexpr std::size_t max = 64;
  struct thread {
    pid_t tid;
    allowed_cpus on;
  } all[max] = {};
  std::size_t count = 0;
  int cpus = 0;  ///< the most CPUs on which the process could run so far

  /// Returns whether this is new. Then it counts as reported.
  bool add(pid_t tid, const allowed_cpus& on) noexcept {
    std::size_t i = 0;
    while (i < count && all[i].tid != tid) ++i;
    if (i == max || (i < count && all[i].on.count == on.count && all[i].on.first == on.first)) {
      return false;
    }
    if (i == count) ++count;
    all[i] = {tid, on};
    return true;
  }
};

/// Builds lines in the format that class run_info documents. Omits values that the kernel does not
/// report, and lines that do not fit into the buffer. Not thread-safe.
/// @tparam Bytes  size of the buffer: 5120 for add_process(), 1024 for add_affinities(), 320 for
///   each other function.
template <std::size_t Bytes>
class process_lines {
 public:
  const char* text() const noexcept { return text_; }
  int bytes() const noexcept { return bytes_; }

  /// Adds the lines that identify the process and how it was started: lotus, host, pid, parent,
  /// forked, run, command, namespace, rank.
  LOTUS_DETAIL_COLD void add_process() noexcept {
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    add("lotus %s\nhost %s\npid %u\nparent %u\n", LOTUS_DETAIL_VERSION_STRING, line<255>{host}.text,
        static_cast<unsigned>(getpid()), static_cast<unsigned>(getppid()));
    add_run();
    add_command();
    add_namespace();
    add_rank();
  }

  void add_cpus(cpu_watching watching) noexcept {
    add("cpu %s\n", watching == cpu_watching::off       ? "off"
                    : watching == cpu_watching::batches ? "batches"
                                                        : "switches");
    const double limit = cpus_of_cgroups();
    const allowed_cpus on = allowed_cpus_of_process();
    const int parent = cpus_of_parent();
    if (limit <= 0) return add("cpus %d - %d %d\n", on.count, on.first, parent);
    // The limit is not printed by %f, because %f would use the decimal separator of the program's
    // locale.
    const auto thousandths = static_cast<unsigned long long>(__builtin_llround(limit * 1000));
    add("cpus %d %llu.%03llu %d %d\n", on.count, thousandths / 1000, thousandths % 1000, on.first,
        parent);
  }

  /// @param tid  id of any running thread.
  void add_thread(std::uint32_t tid) noexcept {
    char path[64];
    char name[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
    read_line(path, name);
    add("thread %u %s\n", tid, line<63>{name}.text);
  }

  /// Adds the line "limits".
  void add_limits() noexcept {
    const cpu_periods periods = periods_of_cgroups();
    struct rusage use {};
    getrusage(RUSAGE_SELF, &use);
    add("limits %llu %llu %lld %ld\n", periods.all, periods.stopped,
        static_cast<long long>(use.ru_stime.tv_sec) * 1'000'000'000 +
            static_cast<long long>(use.ru_stime.tv_usec) * 1000,
        use.ru_minflt + use.ru_majflt);
  }

  /// Adds lines "affinity" for threads that may run on fewer CPUs than the process, unless they are
  /// reported already.
  LOTUS_DETAIL_COLD void add_affinities(reported_threads& reported) noexcept {
    // Something may later bind all threads, the main thread included.
    const int now = cpus_of_affinity();
    if (now > reported.cpus) reported.cpus = now;
    const int all = reported.cpus;
    for_each_thread([&](pid_t tid) {
      const allowed_cpus on =
          reported.count < reported_threads::max ? allowed_cpus_of(tid) : allowed_cpus{};
      if (on.count == 0 || on.count >= all || !reported.add(tid, on)) return;
      add("affinity %d %d %d\n", static_cast<int>(tid), on.count, on.first);
    });
  }

 private:
  static constexpr std::size_t max_of_command = 1000;

  /// A text, cut to at most `Most` bytes and escaped so that it stays on one line.
  template <std::size_t Most>
  struct line {
    char text[3 * Most + 2];
    explicit line(const char* name) noexcept {
      text[write_line_name(std::string_view{name}.substr(0, Most), text)] = '\0';
    }
  };

  /// Adds one or more complete lines, formatted as by printf, if they fit into the buffer.
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) noexcept {
    const std::size_t room = Bytes - static_cast<std::size_t>(bytes_);
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(text_ + bytes_, room, format, values);
    va_end(values);
    if (n > 0 && static_cast<std::size_t>(n) < room) bytes_ += n;
  }

  /// Reads the first line of a file in /proc. The text is empty if the file cannot be read.
  template <std::size_t Most>
  static void read_line(const char* path, char (&text)[Most]) noexcept {
    read_beginning(path, text);
    text[std::strcspn(text, "\n")] = '\0';
  }

  /// Adds lines by which lotus-tool distinguishes the processes of one run from those of the next
  /// run in the same directory. "forked": the parent runs the same program, and so is not a shell.
  /// "run": the file that `lotus-tool run` created for this run.
  void add_run() noexcept {
    const auto parent = static_cast<unsigned>(getppid());
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/%u/exe", parent);
    struct stat own {};
    struct stat other {};
    if (stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
        own.st_dev == other.st_dev && own.st_ino == other.st_ino) {
      add("forked %u\n", parent);
    }
    const char* const list = environment_text(variable::run_list);
    if (list != nullptr) add("run %s\n", line<255>{list}.text);
  }

  /// Adds the command line as /proc shows it, even if the process has changed it since its start.
  void add_command() noexcept {
    const mapped<char[max_of_command + 1]> memory;
    if (!memory) return;
    auto& command = *memory;
    const std::size_t bytes = read_beginning("/proc/self/cmdline", command);
    std::size_t end = bytes;
    while (end > 0 && command[end - 1] == '\0') --end;
    if (end == 0) return;
    for (std::size_t i = 0; i < end; ++i) {
      if (command[i] == '\0') command[i] = ' ';
    }
    if (bytes == max_of_command) std::memcpy(command + max_of_command - 3, "...", 4);
    add("command %s\n", line<max_of_command>{command}.text);
  }

  /// Adds a line that identifies the namespace in which the ids of processes and threads are
  /// unique.
  void add_namespace() noexcept {
    char boot[48];
    read_line("/proc/sys/kernel/random/boot_id", boot);
    struct stat status {};
    if (boot[0] == '\0' || stat("/proc/self/ns/pid", &status) != 0) return;
    add("namespace %s %llu\n", boot, static_cast<unsigned long long>(status.st_ino));
  }

  void add_rank() noexcept {
    std::uint64_t rank = 0;
    bool known = environment_number(variable::rank, rank, say_of_variable);
    for (const char* of_launcher : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* const text = known ? nullptr : secure_getenv(of_launcher);
      known = known || (text != nullptr && parse_number(text, rank));
    }
    if (known) add("rank %llu\n", static_cast<unsigned long long>(rank));
  }

  char text_[Bytes];
  int bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_PROCESS_LINES_HPP
