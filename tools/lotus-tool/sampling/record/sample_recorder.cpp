#include "sampling/record/sample_recorder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/sampling/sample_layout.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/files/build_ids.hpp"
#include "base/files/output_file.hpp"

namespace lotus::tool {
namespace {

namespace layout = lotus::detail;

constexpr std::size_t ring_pages = 128;
/// Maximum number of bytes kept in memory while it is unknown in which folder the logs are.
constexpr std::size_t max_pending_bytes = std::size_t{64} << 20U;
constexpr std::int64_t clock_every_ns = 1'000'000'000;

/// Returns the time of a clock in ns. In libstdc++, steady_clock uses CLOCK_MONOTONIC and
/// system_clock uses CLOCK_REALTIME.
template <class Clock>
std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

template <class Record>
std::string_view bytes_of(const Record& record) noexcept {
  return {reinterpret_cast<const char*>(&record), sizeof record};  // NOLINT(*-reinterpret-cast)
}

/// Returns the file name in a PERF_RECORD_MMAP2, see perf_event_open(2).
std::string_view path_of_mapping(std::string_view mapping) noexcept {
  constexpr std::size_t name_at = 72;
  const std::string_view name = mapping.substr(std::min(name_at, mapping.size()));
  return name.substr(0, name.find('\0'));
}

/// Returns the folder of a ring file, "…/.lotus_ring_1_2" or, during creation, "…/.lotus_new_1_2".
std::string_view folder_of_ring_file(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view name = path.substr(slash + 1);
  for (const char* start : {static_cast<const char*>(layout::ring_file_start),
                            static_cast<const char*>(layout::unfinished_ring_file_start)}) {
    const std::string_view wanted = start;
    if (name.substr(0, wanted.size()) == wanted) return path.substr(0, slash);
  }
  return {};
}

}  // namespace

sample_recorder::sample_recorder(pid_t process, double rate_hz, std::string output)
    : process_(process),
      process_descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))),
      output_(std::move(output)),
      interval_ns_(static_cast<std::uint64_t>(1e9 / rate_hz)) {
  open_events(process, rate_hz);
  note_clock();
  if (output_.empty()) return;
  open_file("");
  write_out();
}

sample_recorder::~sample_recorder() {
  stop();
  if (file_ >= 0) ::close(file_);
  if (process_descriptor_ >= 0) ::close(process_descriptor_);
}

void sample_recorder::open_events(pid_t process, double rate_hz) {
  perf_event_attr attr = layout::sampling_event(static_cast<std::uint64_t>(1e9 / rate_hz));
  attr.exclude_kernel = 0;
  attr.enable_on_exec = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.mmap_data = 1;
  attr.task = 1;
  attr.comm = 1;
  attr.wakeup_watermark = static_cast<std::uint32_t>(ring_pages * 1024);
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  int error = ENODEV;
  for (int cpu = 0; cpu < processors; ++cpu) {
    int event = layout::open_event(attr, process, cpu);
    if ((event == -EACCES || event == -EPERM) && with_kernel_ && events_.empty()) {
      with_kernel_ = false;
      attr.exclude_kernel = 1;
      event = layout::open_event(attr, process, cpu);
    }
    if (event < 0) {
      error = -event;
      continue;  // usually because this processor is offline
    }
    layout::perf_ring ring;
    error = ring.map(event, ring_pages);
    if (error != 0) {
      ::close(event);
      continue;
    }
    events_.push_back(event);
    rings_.push_back(ring);
  }
  if (events_.empty()) {
    throw input_error(
        "the kernel does not permit sampling (perf_event_open: " + error_text(error) +
        "): set kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container also "
        "allow perf_event_open in the seccomp profile. Without it, 'map run --collector callgrind' "
        "works on a probe");
  }
}

void sample_recorder::stop() noexcept {
  for (layout::perf_ring& ring : rings_) ring.unmap();
  for (const int event : events_) ::close(event);
  rings_.clear();
  events_.clear();
}

void sample_recorder::work(int max_ms) {
  // The process descriptor makes poll() return as soon as the process ends.
  std::vector<pollfd> waits{{process_descriptor_, POLLIN, 0}};
  for (const int event : events_) waits.push_back({event, POLLIN, 0});
  ::poll(waits.data(), static_cast<nfds_t>(waits.size()), max_ms);
  const bool no_more_samples = std::all_of(
      waits.begin() + 1, waits.end(), [](const pollfd& w) { return (w.revents & POLLHUP) != 0; });
  // poll() returns immediately for an event whose threads have all ended. So if no more samples
  // will come, wait only for the process.
  if (no_more_samples && waits[0].revents == 0) ::poll(waits.data(), 1, max_ms);
  drain();
}

void sample_recorder::drain() {
  if (now_ns<std::chrono::steady_clock>() - last_clock_ns_ >= clock_every_ns) note_clock();
  for (layout::perf_ring& ring : rings_) {
    ring_bytes_.clear();
    ring.drain([this](const char* data, std::size_t bytes) { ring_bytes_.append(data, bytes); });
    take(ring_bytes_);
  }
  if (file_ < 0 && pending_.size() > max_pending_bytes) open_file("");
  if (file_ >= 0) write_out();
}

void sample_recorder::take(std::string_view records) {
  while (records.size() >= sizeof(perf_event_header)) {
    perf_event_header header{};
    std::memcpy(&header, records.data(), sizeof header);
    const std::string_view record = records.substr(0, header.size);
    records.remove_prefix(header.size);
    const bool is_mapping = header.type == PERF_RECORD_MMAP2;
    const std::string_view path = is_mapping ? path_of_mapping(record) : std::string_view();
    look_for_logs(path);
    // Skip mappings of data, which are frequent and contain no functions.
    if (is_mapping && (header.misc & PERF_RECORD_MISC_MMAP_DATA) != 0) continue;
    pending_ += record;
    note_build(std::string(path));
  }
}

/// Records the build id of the file in the record before.
void sample_recorder::note_build(const std::string& path) {
  const std::string build = path.empty() ? path : build_id_of(path);
  if (build.empty()) return;
  layout::build_record r{};
  constexpr std::size_t padding = 8;
  const std::size_t bytes = (sizeof r + build.size() + padding) / padding * padding;
  r.header = {static_cast<std::uint32_t>(layout::own_record::build), 0,
              static_cast<std::uint16_t>(bytes)};
  r.pid = static_cast<std::uint32_t>(process_);
  pending_.append(bytes_of(r)).append(build).append(bytes - sizeof r - build.size(), '\0');
}

void sample_recorder::look_for_logs(std::string_view path) {
  const std::string_view folder = saw_logs() ? std::string_view() : folder_of_ring_file(path);
  if (folder.empty()) return;
  logs_ = folder;
  if (file_ < 0) open_file(logs_);
}

void sample_recorder::note_clock() {
  layout::clock_record r{};
  r.header = {static_cast<std::uint32_t>(layout::own_record::clock), 0, sizeof r};
  r.monotonic_ns = now_ns<std::chrono::steady_clock>();
  r.realtime_ns = now_ns<std::chrono::system_clock>();
  last_clock_ns_ = r.monotonic_ns;
  pending_ += bytes_of(r);
}

void sample_recorder::open_file(const std::string& folder) {
  path_ = output_;
  if (path_.empty()) {
    path_ = (folder.empty() ? "" : folder + '/') +
            static_cast<const char*>(layout::samples_file_start) + std::to_string(process_) + '_' +
            std::to_string(now_ns<std::chrono::system_clock>());
  }
  // Rename the file before writing, so that its samples can be read even if this process is killed.
  const new_output created = open_new_output(path_);
  file_ = created.descriptor;
  if (!created.incomplete.empty() && ::rename(created.incomplete.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(created.incomplete.c_str());
    throw input_error(path_ + ": cannot be written: " + error_text(error));
  }
  layout::samples_file_header head{};
  std::memcpy(head.magic, layout::samples_file_magic, sizeof head.magic);
  head.layout = layout::samples_file_layout;
  head.header_bytes = sizeof head;
  head.pid = static_cast<std::uint32_t>(process_);
  head.interval_ns = interval_ns_;
  pending_.insert(0, bytes_of(head));
}

void sample_recorder::write_out() {
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw input_error(path_ + ": cannot be written: " + error_text(errno));
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  pending_.clear();
}

std::string sample_recorder::finish() {
  drain();
  note_clock();
  stop();
  if (file_ < 0) open_file("");
  write_out();
  ::close(std::exchange(file_, -1));
  return path_;
}

}  // namespace lotus::tool
