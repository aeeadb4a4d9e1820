#include "launch/attach.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "launch/launch.hpp"
#include "log/folder/starts.hpp"
#include "threads/record/thread_recorder.hpp"
#include "threads/record/watched_process.hpp"

namespace lotus::tool {
namespace {

using clock = std::chrono::steady_clock;

constexpr double max_seconds = 1e9;  // std::chrono cannot represent more than 9e9 s in ns

/// The fields of /proc/PID/status that attach() needs.
struct process_status {
  std::string name;
  char state = '?';
  pid_t process = 0;  ///< the process to which a thread belongs; 0: there is no such thread
};

process_status status_of(pid_t pid) {
  process_status found;
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon);
    const std::string value = line.substr(colon + 2);
    if (key == "Name") found.name = printable_line(value);
    if (key == "State" && !value.empty()) found.state = value.front();
    if (key == "Tgid") found.process = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
  }
  return found;
}

/// Returns an error message: why the kernel does not let this process sample the process `pid`.
std::string reason_forbidden(pid_t pid, const std::string& what) {
  if (::geteuid() == 0) {
    return "no permission to look at " + what +
           ", although lotus-tool runs as root: give its container CAP_SYS_PTRACE";
  }
  struct stat owner {};
  const bool is_known = ::stat(("/proc/" + std::to_string(pid)).c_str(), &owner) == 0;
  if (is_known && owner.st_uid != ::geteuid()) {
    return "no permission to look at " + what + ", which belongs to user " +
           std::to_string(owner.st_uid) + ": run lotus-tool as this user or as root";
  }
  int scope = 0;
  if (std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope && scope > 0) {
    return "no permission to look at " + what + ": kernel.yama.ptrace_scope is " +
           std::to_string(scope) +
           "; set it to 0, run lotus-tool as root, or start the program with 'lotus-tool run'";
  }
  return "no permission to look at " + what +
         ": it has more rights than lotus-tool, or forbids it (PR_SET_DUMPABLE); run lotus-tool as "
         "root";
}

/// Raises the limit of open files as far as permitted, because sampling opens a file per thread and
/// processor.
void raise_file_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Waits up to `ms` milliseconds for the end of a process. Returns whether it has ended.
bool ended_within(int ms, const kept_file& pidfd, pid_t pid) {
  pollfd wait{pidfd.number(), POLLIN, 0};
  if (::poll(&wait, 1, ms) > 0) return true;
  // Linux before 5.3 has no process descriptors, so check whether the process id still exists.
  return pidfd.number() < 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string sampled_name(pid_t pid) {
  const std::string number = std::to_string(pid);
  const process_status status = status_of(pid);
  if (status.process == 0) throw input_error("there is no process " + number);
  if (status.process != pid) {
    throw input_error(number + " is a thread of process " + std::to_string(status.process) +
                      ": attach to the process");
  }
  const std::string what = "process " + number + " (" + status.name + ")";
  if (pid == ::getpid()) throw input_error(what + " is lotus-tool itself");
  if (status.state == 'Z' || status.state == 'X') throw input_error(what + " has ended");
  watched_process process(static_cast<std::uint32_t>(pid));
  seen_wait wait;
  const seen_state seen = process.sample_wait(static_cast<std::uint32_t>(pid), wait);
  if (seen == seen_state::gone) throw input_error(what + " has ended");
  if (seen == seen_state::forbidden) throw input_error(reason_forbidden(pid, what));
  if (process.code().empty()) throw input_error(what + " runs no program: it is a kernel thread");
  return status.name;
}

attached attach(const attach_options& options) {
  attached done;
  done.name = sampled_name(options.pid);
  done.dir = options.dir.empty() ? unused_folder("run") : options.dir;
  raise_file_limit();
  const until_interrupted guard;
  const kept_file pidfd(static_cast<int>(::syscall(SYS_pidfd_open, options.pid, 0)));
  thread_recorder recorder(options.pid, sampling_start::now);
  const auto end =
      clock::now() + std::chrono::duration_cast<clock::duration>(
                         std::chrono::duration<double>(std::min(options.seconds, max_seconds)));
  while (!done.ended && interrupted_by() == 0) {
    int pause_ms = recorder.work();
    if (options.seconds > 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
      if (left.count() <= 0) break;
      pause_ms = static_cast<int>(std::min<std::int64_t>(pause_ms, left.count() + 1));
    }
    done.ended = ended_within(pause_ms, pidfd, options.pid);
  }
  done.not_sampled = reason_not_sampled(recorder);
  if (!store_samples(recorder.result(), options.pid, done.dir)) {
    throw input_error(std::string("too few samples to say anything: ") +
                      (done.ended ? "the process ended at once" : "sample for longer"));
  }
  return done;
}

}  // namespace lotus::tool
