#include "launch/launch.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/printable.hpp"
#include "log/folder/starts.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/record/thread_recorder.hpp"

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
  name_places(samples);
  output_file to(dir + '/' + std::string(thread_samples_start) + std::to_string(pid) + '_' +
                     std::to_string(samples.time_ns),
                 std::cout);
  to.write(thread_samples_text(samples));
  to.commit();
  return true;
}

}  // namespace lotus::tool
