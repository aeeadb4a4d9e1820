#include "launch/launch.hpp"

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
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <tuple>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/printable.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/record/watched_process.hpp"
#include "waits/stacks/stored_names.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

command command_of(const launch_options& options, const new_run& asked, const start_list& starts) {
  command what;
  what.arguments = options.program;
  what.environment = asked.environment;
  what.environment.emplace_back("LOTUS_RUN_LIST", starts.path());
  what.environment.insert(what.environment.end(), options.environment.begin(),
                          options.environment.end());
  what.output_to = options.output_to;
  if (options.memory) {
    // liblotus_memory.so comes first in LD_PRELOAD, so that it also counts allocations of the other
    // preloaded libraries.
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string after_library =
        others == nullptr || *others == '\0' ? "" : std::string(":") + others;
    what.environment.emplace_back("LD_PRELOAD", memory_library() + after_library);
  }
  return what;
}

/// Samples the program's threads until the program ends.
void watch(child_process& child, thread_recorder& recorder) {
  while (!child.ended(recorder.work())) {
  }
}

}  // namespace

std::string memory_library() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path library =
      program.parent_path().parent_path() / LOTUS_TOOL_LIBDIR / "lotus/preload/liblotus_memory.so";
  if (!error && fs::exists(library, error)) return library.string();
  throw input_error("--memory needs " + library.string() + ", which is not there");
}

recording_program::recording_program(const launch_options& options)
    : asked_(place_for_logs(options.dir)), process_(command_of(options, asked_, starts_)) {
  if (options.threads) recorder_.emplace(process_.pid(), sampling_start::at_exec);
  process_.go();
}

void recording_program::wait() {
  if (recorder_) watch(process_, *recorder_);
  process_.ended(-1);
}

launched recording_program::result() {
  launched run;
  run.dir = asked_.dir;
  run.prefix = asked_.prefix;
  run.status = process_.state().status;
  // The list contains the folders in which recordings of the program started. Take the last one,
  // because the program may have chosen another folder than options.dir.
  const auto places = starts_.places();
  if (!places.empty()) std::tie(run.dir, run.prefix) = places.back();
  if (recorder_) {
    run.not_sampled = reason_not_sampled(*recorder_);
    try {
      run.threads = store_samples(recorder_->result(), process_.pid(), run.dir);
    } catch (const input_error& failure) {
      run.not_sampled = failure.what();
    }
  }
  store_names(run.dir, run.prefix);
  return run;
}

launched launch(const launch_options& options) {
  recording_program program(options);
  program.wait();
  return program.result();
}

std::string reason_not_sampled(const thread_recorder& recorder) {
  if (!recorder.not_permitted().empty()) {
    return "cannot see what the threads of `" + printable_line(recorder.not_permitted()) +
           "` wait for: the kernel does not permit to read /proc/PID/task/TID/syscall";
  }
  if (recorder.cpu_error() != 0) {
    return "cannot see where threads run (perf_event_open: " +
           std::generic_category().message(recorder.cpu_error()) +
           "): set kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container "
           "also allow perf_event_open in the seccomp profile";
  }
  if (recorder.left_out() != 0) {
    return "cannot see where " + std::to_string(recorder.left_out()) +
           " of the threads run: too many files would be open; raise the limit with 'ulimit -n'";
  }
  return {};
}

bool store_samples(thread_samples samples, pid_t pid, const std::string& dir) {
  std::uint64_t count = 0;
  for (const sampled_thread& t : samples.threads) count += t.wait_samples;
  for (const thread_sample& s : samples.samples) count += s.count;
  constexpr std::uint64_t enough = 10;  // for a program that ends immediately, no folder is created
  if (count < enough) return false;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  diagnostic_log diagnostics(std::cerr, false);
  name_places(samples, diagnostics);
  output_file to(dir + '/' + std::string(thread_samples_start) + std::to_string(pid) + '_' +
                     std::to_string(samples.time_ns),
                 std::cout);
  to.write(thread_samples_text(samples));
  to.commit();
  return true;
}

namespace {

using clock = std::chrono::steady_clock;

constexpr double max_seconds = 1e9;  // std::chrono cannot represent more than 9e9 s in ns

/// The fields of /proc/PID/status that attach() needs.
struct process_status {
  std::string name;
  char state = '?';
  pid_t process = 0;  ///< the process to which a thread belongs; 0: there is no such thread
  /// Whether it has memory of its own, which kernel threads do not have. A process that has just
  /// called exec has memory, but no code yet.
  bool has_memory = false;
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
    if (key == "VmSize") found.has_memory = true;
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
  if (!status.has_memory) throw input_error(what + " runs no program: it is a kernel thread");
  watched_process process(static_cast<std::uint32_t>(pid));
  seen_wait wait;
  const seen_state seen = process.sample_wait(static_cast<std::uint32_t>(pid), wait);
  if (seen == seen_state::gone) throw input_error(what + " has ended");
  if (seen == seen_state::forbidden) throw input_error(reason_forbidden(pid, what));
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
