// Reads a file of samples that the built-in collector of `lotus-tool map` or `map record` wrote.
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

/// One sample of a thread. Here and below, times are in ns of CLOCK_MONOTONIC, as in the file.
struct sample {
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool in_kernel = false;
};

/// A period during which the built-in collector sampled an operation.
struct sampled_region {
  std::string op;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};

/// The files that each process had mapped as code, with the time of each mapping.
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
  /// Adds a forked process, which starts with the mappings of its parent.
  void forked(std::uint32_t parent, std::uint32_t child);

  /// Returns the mapped file that contained a sample's address; null if there was none. Prefers the
  /// last mapping made before the sample. If there is none, uses the first mapping made after the
  /// sample, because the built-in collector records a mapping only when it first sees the mapping.
  const mapped* find(const sample& s) const;

 private:
  std::map<std::uint32_t, std::vector<mapped>> by_pid_;
};

/// The time of the same moment on two clocks, for samples_file::to_epoch_ns().
struct clock_pair {
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
};

struct samples_file {
  std::uint64_t interval_ns = 0;
  std::vector<sample> samples;
  std::vector<sampled_region> regions;
  std::vector<clock_pair> clocks;  ///< sorted by time; times are in 0..2^61 and 0..2^62
  module_map modules;
  std::map<std::string, std::string> builds;          ///< build ids of files, by path, if known
  std::map<std::uint32_t, std::string> thread_names;  ///< last name of each thread, by thread id
  std::set<std::uint32_t> own_threads;  ///< the library's threads; `samples` excludes them
  std::uint64_t lost = 0;  ///< number of samples that the kernel lost because its buffer was full

  /// Converts a time of the file to ns since 1970, as in logs. Times above 2^61 count as 2^61.
  std::int64_t to_epoch_ns(std::uint64_t monotonic_ns) const;
};

/// Whether a file of this name (without folders) contains samples.
bool is_samples_name(std::string_view name) noexcept;
/// Whether a file contains samples, judged by its name or its first bytes. False if unreadable.
bool is_samples_file(const std::string& path);

/// Reads a file of samples. Ignores an incomplete record at the end, with a note. Throws
/// input_error.
samples_file read_samples(const std::string& path, diagnostic_log& diagnostics);

/// Returns the function at a sample's address; "[kernel]" in the kernel, "[unknown]" outside of
/// mapped files.
/// @param file  the file of samples that contains `s`.
code_place place_of(const sample& s, const samples_file& file, symbol_source& symbols);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_SAMPLE_FILES_HPP
