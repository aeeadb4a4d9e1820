// Writes logs and side logs of threads for a test.
#ifndef LOTUS_TESTS_THREAD_LOGS_HPP
#define LOTUS_TESTS_THREAD_LOGS_HPP

#include <cstdint>
#include <string>

#include "tool/tool_test.hpp"

namespace lotus::tool_test {

inline constexpr std::int64_t ms = 1'000'000;
inline constexpr std::int64_t begin_ns = 1'700'000'000'000'000'000;

inline std::string columns(const std::string& name, std::int64_t start_ms, std::int64_t length_ms) {
  return name + ',' + std::to_string(begin_ns + start_ms * ms) + ',' +
         std::to_string(length_ms * ms);
}

/// Collects the lines of one thread's logs and side log.
struct thread_logs {
  std::string main;
  std::string worker;
  std::string side_log;

  void operation(const std::string& name, std::int64_t start_ms, std::int64_t length_ms) {
    worker += columns('S' + name, start_ms, length_ms) + '\n';
  }
  void stage(const std::string& name, std::int64_t start_ms, std::int64_t length_ms,
             std::int64_t number) {
    operation(name, start_ms, length_ms);
    side_log +=
        "stage," + columns('S' + name, start_ms, length_ms) + ',' + std::to_string(number) + '\n';
  }
  void wait(std::int64_t i, std::int64_t start_ms, std::int64_t length_ms) {
    main += columns("SBatchWait_" + std::to_string(i), start_ms, length_ms) + '\n';
  }
  void consumed(std::int64_t i, std::int64_t at_ms) {
    main += "SBatchConsumed_" + std::to_string(i) + ',' + std::to_string(begin_ns + at_ms * ms) +
            ",1000\n";
  }
  void off_cpu(std::int64_t at_ms, std::int64_t off_ms, const std::string& run_queue_ms) {
    side_log += "off_cpu,," + std::to_string(begin_ns + at_ms * ms) + ',' +
                std::to_string(off_ms * ms) + ',' +
                (run_queue_ms.empty() ? "" : run_queue_ms + "000000") + '\n';
  }
  void write(const temp_dir& dir, const std::string& folder, int number) const {
    const std::string end = "_pid_" + std::to_string(number);
    if (!main.empty()) dir.file(folder + "lotustrace_log_main" + end, main);
    if (!worker.empty()) dir.file(folder + "lotustrace_log_worker" + end, worker);
    if (!side_log.empty()) dir.file(folder + ".lotus_beside_lotustrace_log" + end, side_log);
  }
};

inline std::string info_of_threads(const std::string& more) {
  return "lotus 0.1.0\nhost Shere\npid 1\nparent 0\nthread 1 Smain\nthread 2 Sread\n"
         "thread 3 Sdecode\n" +
         more;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_THREAD_LOGS_HPP
