// What stands in a file of samples: written by the built-in collector and by lotus-tool.
//
// A file is a header, then records, each as long as its perf_event_header says: those of the
// kernel as they came (perf_event_open(2): PERF_RECORD_SAMPLE, _MMAP2, _FORK, _LOST), and ours.
// Times are nanoseconds of CLOCK_MONOTONIC.
#ifndef LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP
#define LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline constexpr char samples_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'S', 'M', 'P'};
inline constexpr std::uint32_t samples_file_layout = 1;

struct samples_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< where the first record begins
  std::uint32_t pid;
  std::uint32_t unused;
  std::uint64_t interval_ns;  ///< CPU time between two samples of a thread
};

/// What the kernel puts into a sample for sample_type, in its order.
inline constexpr std::uint64_t samples_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
struct sample_record {
  perf_event_header header;
  std::uint64_t address;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time_ns;
};

/// Types of our own records; far above the kernel's.
enum class own_record : std::uint32_t {
  clock = 0x4c4f0001,
  module = 0x4c4f0002,
  region = 0x4c4f0003,
  own_thread = 0x4c4f0004,
};

/// One moment on two clocks; logs are in nanoseconds of CLOCK_REALTIME.
struct clock_record {
  perf_event_header header;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Code that is mapped from a file; its path follows, ended and padded by zeros.
struct module_record {
  perf_event_header header;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t file_offset;  ///< of `begin`, in bytes
  std::uint64_t time_ns;      ///< when it was seen
  std::uint32_t pid;
  std::uint32_t unused;
};

/// One collected pass of a LOTUS_MAP_REGION; its name follows, ended and padded by zeros.
struct region_record {
  perf_event_header header;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t pid;
  std::uint32_t tid;
};

/// A thread of the library: its samples are none of the program's.
struct own_thread_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t tid;
};

static_assert(sizeof(samples_file_header) == 32 && sizeof(sample_record) == 32 &&
                  sizeof(clock_record) == 24 && sizeof(module_record) == 48 &&
                  sizeof(region_record) == 32 && sizeof(own_thread_record) == 16,
              "files are read by other builds");

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP
