// Samples another process and writes the samples to a file.
#ifndef LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP
#define LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP

#include <sys/types.h>

#include <cstdint>
#include <lotus/sampling/perf_ring.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Samples a process that is about to exec, with all its threads and descendants. Stores the
/// samples in the folder of the Lotus logs; if several of these processes record, in that of the
/// first one. The recorder finds the folder because the kernel reports every file mapping, and a
/// recording process maps its ring file, which is in the folder of its logs.
class sample_recorder {
 public:
  /// Prepares sampling, which begins when the process calls exec. Throws input_error with advice if
  /// the kernel forbids sampling or `output` cannot be written.
  /// @param output  file for the samples; empty: store the samples with the logs.
  sample_recorder(pid_t process, double rate_hz, std::string output);
  sample_recorder(const sample_recorder&) = delete;
  sample_recorder& operator=(const sample_recorder&) = delete;
  ~sample_recorder();

  /// Waits at most `max_ms` for records or for the end of the process, then stores the available
  /// records. Throws input_error if writing fails; sampling then continues until stop().
  void work(int max_ms);

  void stop() noexcept;

  /// Stores the remaining records and closes the file. Returns its path; if no logs were seen, the
  /// file is in the current folder. Throws input_error.
  std::string finish();

  /// Whether one of the processes records with Lotus, so that the folder of the logs is known.
  bool saw_logs() const noexcept { return !logs_.empty(); }
  /// Returns the folder of the logs; "" if saw_logs() is false.
  const std::string& logs() const noexcept { return logs_; }
  /// Whether code in the kernel is sampled too, for which this process needs more privileges.
  bool with_kernel() const noexcept { return with_kernel_; }

 private:
  void open_events(pid_t process, double rate_hz);
  void drain();
  void take(std::string_view records);
  void note_build(const std::string& path);
  void look_for_logs(std::string_view path);
  void note_clock();
  void open_file(const std::string& folder);
  void write_out();

  pid_t process_;
  int process_descriptor_;  // pidfd; if negative, the process's end is noticed late
  std::string output_;
  std::uint64_t interval_ns_;
  std::vector<int> events_;
  std::vector<lotus::detail::perf_ring> rings_;
  std::string ring_bytes_;  // buffer for whole records of one ring
  std::string pending_;     // records that are not written to the file yet
  std::string path_;
  int file_ = -1;
  std::string logs_;
  bool with_kernel_ = true;
  std::int64_t last_clock_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP
