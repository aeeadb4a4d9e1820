// Defines the layout of a sample file, which the built-in collector and lotus-tool write.
//
// A sample file consists of a header and records. Each record begins with a perf_event_header,
// which contains the record's length. Records are either copied from the kernel
// (perf_event_open(2): PERF_RECORD_SAMPLE, _MMAP2, _FORK, _LOST), or of the types in own_record.
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
  std::uint32_t header_bytes;  ///< position of the first record in the file
  std::uint32_t pid;
  std::uint32_t unused;
  std::uint64_t interval_ns;  ///< CPU time between two samples of a thread
};

/// The fields that the kernel stores in each sample. sample_record has the same fields in this
/// order.
inline constexpr std::uint64_t samples_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
struct sample_record {
  perf_event_header header;
  std::uint64_t address;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time_ns;
};

/// Types of records that the library adds to those of the kernel. Their numbers are far above those
/// of the kernel.
enum class own_record : std::uint32_t {
  clock = 0x4c4f0001,
  module = 0x4c4f0002,
  region = 0x4c4f0003,
  own_thread = 0x4c4f0004,
  build = 0x4c4f0005,
};

/// One moment, on the clock of samples (CLOCK_MONOTONIC) and on that of logs (CLOCK_REALTIME).
struct clock_record {
  perf_event_header header;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Code mapped from a file. The file's path follows this struct, terminated and padded with zeros.
struct module_record {
  perf_event_header header;
  std::uint64_t begin;
  std::uint64_t end;
  /// Offset, in bytes, of the part of the file that is mapped at `begin`.
  std::uint64_t file_offset;
  std::uint64_t time_ns;  ///< time at which the library found the mapping
  std::uint32_t pid;
  std::uint32_t unused;
};

/// The build id of the file in the last module_record or PERF_RECORD_MMAP2 before it. The id
/// follows this struct as text, terminated and padded with zeros.
struct build_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t unused;
};

/// One execution of a LOTUS_MAP_REGION during which samples were taken. The region's name follows
/// this struct, terminated and padded with zeros.
struct region_record {
  perf_event_header header;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t pid;
  std::uint32_t tid;
};

/// A thread of the library, whose samples do not belong to the program.
struct own_thread_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t tid;
};

static_assert(sizeof(samples_file_header) == 32 && sizeof(sample_record) == 32 &&
                  sizeof(clock_record) == 24 && sizeof(module_record) == 48 &&
                  sizeof(region_record) == 32 && sizeof(own_thread_record) == 16 &&
                  sizeof(build_record) == 16,
              "files are read by other builds");

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP
