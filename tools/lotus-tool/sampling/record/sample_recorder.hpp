// Samples another process into a file.
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

/// Samples a process that is about to exec, all its threads and all processes that come from it.
/// The samples land beside the Lotus logs of the first of them that records: the kernel reports
/// every mapping, and a session maps its ring file in the folder of its logs.
class sample_recorder {
 public:
  /// Opens the events; sampling begins with exec. Throws input_error, saying what to change, where
  /// the kernel forbids it or `output` cannot be written.
  /// @param output  file of the samples; empty: as above.
  sample_recorder(pid_t process, double rate_hz, std::string output);
  sample_recorder(const sample_recorder&) = delete;
  sample_recorder& operator=(const sample_recorder&) = delete;
  ~sample_recorder();

  /// Waits for records or the end of the process, at most so long, and takes what is there. Throws
  /// input_error when that cannot be written; the process is sampled on until stop().
  void work(int most_ms);

  /// Ends sampling.
  void stop() noexcept;

  /// Takes the rest and closes the file; where no log was seen it is made in the current folder.
  /// Returns its path. Throws input_error.
  std::string finish();

  /// Whether a Lotus session was seen.
  bool saw_logs() const noexcept { return !logs_.empty(); }
  /// The folder of its logs.
  const std::string& logs() const noexcept { return logs_; }
  /// Whether time in the kernel is sampled too: that takes more rights.
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
  int process_descriptor_;  // negative where the kernel has none: then its end is noticed later
  std::string output_;
  std::uint64_t interval_ns_;
  std::vector<int> events_;
  std::vector<lotus::detail::perf_ring> rings_;
  std::string ring_bytes_;  // of one ring, whole records
  std::string pending_;     // for the file
  std::string path_;
  int file_ = -1;
  std::string logs_;
  bool with_kernel_ = true;
  std::int64_t last_clock_ns_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_RECORD_SAMPLE_RECORDER_HPP
