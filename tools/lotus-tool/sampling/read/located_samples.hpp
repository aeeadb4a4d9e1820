// Reads the samples of a run and finds their functions, for joining them with the run's logs.
#ifndef LOTUS_TOOL_SAMPLING_READ_LOCATED_SAMPLES_HPP
#define LOTUS_TOOL_SAMPLING_READ_LOCATED_SAMPLES_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/diagnostics.hpp"

namespace lotus::tool {

struct located_sample {
  std::int64_t time_ns = 0;  ///< time of the sample, in ns since 1970 as in logs
  std::uint64_t value = 0;   ///< value of the event, in its unit: ns of CPU time, cycles, …
  std::uint32_t tid = 0;
  std::uint32_t function = 0;  ///< index in located_samples::functions
  std::uint32_t event = 0;     ///< index in located_samples::events
  std::uint32_t pid = 0;       ///< process id; 0: unknown
};

struct located_function {
  std::string key;      ///< the function: result of function_key()
  std::string inlined;  ///< innermost function inlined at the sample; "" if unknown

  friend bool operator<(const located_function& a, const located_function& b) {
    return std::tie(a.key, a.inlined) < std::tie(b.key, b.inlined);
  }
};

struct located_samples {
  std::vector<std::string> events;
  std::vector<located_function> functions;
  std::vector<located_sample> samples;
  std::map<std::uint32_t, std::string> thread_names;  ///< known names, by thread id
  /// The time from the first to the last moment at which sampling is known to have been active.
  std::int64_t from_ns = INT64_MAX;
  std::int64_t to_ns = INT64_MIN;

  std::uint32_t function_id(const located_function& function);
  std::uint32_t event_id(std::string_view name);
  /// Extends the period from from_ns to to_ns so that it contains `time_ns`.
  void reaches(std::int64_t time_ns) noexcept;

 private:
  std::map<located_function, std::uint32_t> known_functions_;
};

/// Adds a file of samples, written by `map record` or by `perf record -k CLOCK_MONOTONIC`. Reads
/// perf's files by running the installed perf. Throws input_error.
void add_samples(const std::string& path, located_samples& to, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_LOCATED_SAMPLES_HPP
