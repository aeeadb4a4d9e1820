// Samples another process and writes the samples to a file.
#ifndef LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP
#define LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <lotus/sampling/perf_ring.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Samples a process that is about to exec, with all its threads and descendants. The samples are
/// stored with the Lotus logs of the first of these processes that records: the kernel reports
/// every mapping, and a recording process maps its ring file in the folder of its logs.
class sample_recorder {
 public:
  /// Opens the events; sampling begins with exec. Throws input_error, which says what to change, if
  /// the kernel forbids it or `output` cannot be written.
  /// @param output  file of the samples; empty: stored with the logs, as described above.
  sample_recorder(pid_t process, double rate_hz, std::string output);
  sample_recorder(const sample_recorder&) = delete;
  sample_recorder& operator=(const sample_recorder&) = delete;
  ~sample_recorder();

  /// Waits at most `most_ms` for records or for the end of the process, then stores the available
  /// records. Throws input_error if they cannot be written; sampling continues until stop().
  void work(int most_ms);

  /// Ends sampling.
  void stop() noexcept;

  /// Stores the remaining records and closes the file, which is in the current folder if no logs
  /// were seen. Returns its path. Throws input_error.
  std::string finish();

  /// Whether one of the processes has mapped a ring file of Lotus, that is, records.
  bool saw_logs() const noexcept { return !logs_.empty(); }
  /// The folder of the logs; "" if none were seen.
  const std::string& logs() const noexcept { return logs_; }
  /// Whether time in the kernel is sampled too, which needs more privileges.
  bool with_kernel() const noexcept { return with_kernel_; }

 private:
  void open_events(pid_t process, double rate_hz);
  void drain();
  void take(std::string_view records);
  void look_for_logs(std::string_view mapping);
  void note_clock();
  void open_file(const std::string& folder);
  void write_out();

  pid_t process_;
  int process_descriptor_;  // negative if the kernel has no pidfd; the end is then noticed later
  std::string output_;
  std::uint64_t interval_ns_;
  std::vector<int> events_;
  std::vector<lotus::detail::perf_ring> rings_;
  std::string ring_bytes_;  // whole records of one ring
  std::string pending_;     // not written to the file yet
  std::string path_;
  int file_ = -1;
  std::string logs_;
  bool with_kernel_ = true;
  std::int64_t last_clock_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP
