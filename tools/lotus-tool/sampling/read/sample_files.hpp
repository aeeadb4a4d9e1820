// Reads a file of samples that the built-in collector or `map record` wrote.
#ifndef LOTUS_TOOL_SAMPLING_READ_SAMPLE_FILES_HPP
#define LOTUS_TOOL_SAMPLING_READ_SAMPLE_FILES_HPP

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "sampling/read/symbols.hpp"

namespace lotus::tool {

/// Times are nanoseconds of CLOCK_MONOTONIC, as in the file.
struct sample {
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool in_kernel = false;
};

/// One collected pass of an operation.
struct sampled_region {
  std::string op;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};

/// The code that processes had mapped over time.
class module_map {
 public:
  struct mapped {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t file_offset = 0;
    std::uint64_t time_ns = 0;
    std::string path;
  };

  void add(std::uint32_t pid, mapped code);
  /// A new process starts with the mappings of its parent.
  void forked(std::uint32_t parent, std::uint32_t child);

  /// What was mapped at an address: the last mapping made before the sample; else the first one
  /// made after it, because the built-in collector writes down mappings only after it finds them.
  /// Null if no file was mapped there.
  const mapped* find(const sample& s) const;

 private:
  std::map<std::uint32_t, std::vector<mapped>> by_pid_;
};

/// The same moment on two clocks, for samples_file::to_epoch_ns().
struct clock_pair {
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
};

struct samples_file {
  std::uint64_t interval_ns = 0;
  std::vector<sample> samples;
  std::vector<sampled_region> regions;
  std::vector<clock_pair> clocks;  ///< in order of time; both >= 0, below 2^61 and 2^62
  module_map modules;
  std::map<std::uint32_t, std::string> thread_names;  ///< by thread id, the last name it had
  std::set<std::uint32_t> own_threads;  ///< threads of our library; `samples` does not contain them
  std::uint64_t lost = 0;  ///< samples that the kernel lost because its buffer was full

  /// Converts a time of the file to nanoseconds since the epoch, as used in logs. A time too large
  /// for any clock becomes 2^61.
  std::int64_t to_epoch_ns(std::uint64_t monotonic_ns) const;
};

/// Whether a file of this name (without folders) holds samples.
bool is_samples_name(std::string_view name) noexcept;
/// Whether the file's name or its beginning shows that it holds samples. False if it is unreadable.
bool is_samples_file(const std::string& path);

/// Reads a file of samples. An incomplete end is ignored, with a note. Throws input_error.
samples_file read_samples(const std::string& path, diagnostic_log& diagnostics);

/// The function that a sample hit: "[kernel]" in the kernel, "[unknown]" outside of mapped files.
/// @param file  the file that contains the sample.
code_place place_of(const sample& s, const samples_file& file, symbol_source& symbols);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SAMPLE_FILES_HPP
