// Samples of a run with their functions, ready to be joined with its logs.
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
  std::int64_t time_ns = 0;  ///< since the epoch, as logs have it
  std::uint64_t value = 0;   ///< of the event: ns of CPU time, cycles, …
  std::uint32_t tid = 0;
  std::uint32_t function = 0;  ///< index into functions
  std::uint32_t event = 0;     ///< index into events
  std::uint32_t pid = 0;       ///< 0: not known
};

struct located_function {
  std::string key;      ///< function_key()
  std::string inlined;  ///< the innermost function inlined there; empty where none is known

  friend bool operator<(const located_function& a, const located_function& b) {
    return std::tie(a.key, a.inlined) < std::tie(b.key, b.inlined);
  }
};

struct located_samples {
  std::vector<std::string> events;
  std::vector<located_function> functions;
  std::vector<located_sample> samples;
  std::map<std::uint32_t, std::string> thread_names;  ///< by thread id, where they are known
  /// When was sampled, as far as is known: operations before and behind have no samples.
  std::int64_t from_ns = INT64_MAX;
  std::int64_t to_ns = INT64_MIN;

  std::uint32_t function_id(const located_function& function);
  std::uint32_t event_id(std::string_view name);
  /// It was sampled then.
  void reaches(std::int64_t time_ns) noexcept;

 private:
  std::map<located_function, std::uint32_t> known_functions_;
};

/// Adds a file of samples: `map record`'s, or perf's with `perf record -k CLOCK_MONOTONIC`, which
/// the installed perf reads. Throws input_error.
void add_samples(const std::string& path, located_samples& to, diagnostic_log& diagnostics);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_LOCATED_SAMPLES_HPP
