#include "launch/stored_samples.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "base/files/output_file.hpp"
#include "base/printable.hpp"

namespace lotus::tool {

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

bool store_samples(const thread_samples& samples, pid_t pid, const std::string& dir) {
  std::uint64_t count = 0;
  for (const sampled_thread& t : samples.threads) count += t.wait_samples;
  for (const thread_sample& s : samples.samples) count += s.count;
  constexpr std::uint64_t enough = 10;  // for a program that ends immediately, no folder is created
  if (count < enough) return false;
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  output_file to(dir + '/' + std::string(thread_samples_start) + std::to_string(pid) + '_' +
                     std::to_string(samples.time_ns),
                 std::cout);
  to.write(thread_samples_text(samples));
  to.commit();
  return true;
}

}  // namespace lotus::tool
