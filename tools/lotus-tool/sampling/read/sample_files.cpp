#include "sampling/read/sample_files.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/sampling/sample_layout.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

namespace layout = lotus::detail;

std::string_view magic() noexcept {
  return {static_cast<const char*>(layout::samples_file_magic), sizeof layout::samples_file_magic};
}

/// Limits for times in a file: 73 years after the machine's start for the monotonic clock, and the
/// year 2116 for times since 1970. Sums of two such times do not overflow.
constexpr std::int64_t end_of_clock_ns = std::int64_t{1} << 61U;
constexpr std::int64_t end_of_time_ns = end_of_clock_ns * 2;

/// Copies the part of a record that has a fixed size. Returns false if `bytes` are too short.
template <class Record>
bool take(std::string_view bytes, Record& record) noexcept {
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  return true;
}

/// Returns the zero-terminated text after the first `fixed` bytes of a record.
std::string text_behind(std::string_view bytes, std::size_t fixed) {
  const std::string_view text = bytes.substr(fixed);
  return std::string(text.substr(0, text.find('\0')));
}

/// The fields that the kernel appends to records other than samples, because we request them.
struct record_end {
  std::uint32_t pid, tid;
  std::uint64_t time_ns;
};

/// A PERF_RECORD_MMAP2 of perf_event_open(2). The file's name follows the record.
struct mmap_record {
  perf_event_header header;
  std::uint32_t pid, tid;
  std::uint64_t address, length, file_offset;
  std::uint64_t file_identity[3];
  std::uint32_t protection, flags;
};

/// A PERF_RECORD_FORK of perf_event_open(2).
struct fork_record {
  perf_event_header header;
  std::uint32_t pid, parent_pid, tid, parent_tid;
  std::uint64_t time_ns;
};

/// A PERF_RECORD_COMM of perf_event_open(2). The thread's name follows the record.
struct name_record {
  perf_event_header header;
  std::uint32_t pid, tid;
};

/// A PERF_RECORD_LOST of perf_event_open(2).
struct lost_record {
  perf_event_header header;
  std::uint64_t id, lost;
};

/// A change of the code in a process's memory: a new mapping, or a fork, which inherits mappings.
struct map_change {
  std::uint64_t time_ns;
  std::uint32_t pid;
  std::uint32_t parent_pid;  ///< parent of a forked process; 0: the change is a mapping
  module_map::mapped code;
};

/// A thread's new name, or the start of a thread, which inherits its parent's name.
struct name_change {
  std::uint64_t time_ns;
  std::uint32_t tid;
  std::uint32_t parent_tid;  ///< parent of a started thread; 0: the change is a new name
  std::string name;
};

struct file_changes {
  std::vector<map_change> maps;
  std::vector<name_change> names;
  std::string last_module;  ///< path in the last record of a mapping
};

void read_record(const perf_event_header& header, std::string_view bytes, samples_file& file,
                 file_changes& changes) {
  switch (header.type) {
    case PERF_RECORD_SAMPLE: {
      layout::sample_record r{};
      if (!take(bytes, r)) return;
      const bool kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
      file.samples.push_back({r.time_ns, r.address, r.pid, r.tid, kernel});
      return;
    }
    case PERF_RECORD_MMAP2: {
      mmap_record r{};
      record_end end{};
      if (!take(bytes, r) || bytes.size() < sizeof r + sizeof end) return;
      if ((r.protection & PROT_EXEC) == 0) return;
      take(bytes.substr(bytes.size() - sizeof end), end);
      changes.last_module = text_behind(bytes, sizeof r);
      changes.maps.push_back(
          {end.time_ns,
           r.pid,
           0,
           {r.address, r.address + r.length, r.file_offset, end.time_ns, changes.last_module}});
      return;
    }
    case PERF_RECORD_FORK: {
      fork_record r{};
      if (!take(bytes, r)) return;
      if (r.pid != r.parent_pid) changes.maps.push_back({r.time_ns, r.pid, r.parent_pid, {}});
      changes.names.push_back({r.time_ns, r.tid, r.parent_tid, {}});
      return;
    }
    case PERF_RECORD_COMM: {
      name_record r{};
      record_end end{};
      if (!take(bytes, r) || bytes.size() < sizeof r + sizeof end) return;
      take(bytes.substr(bytes.size() - sizeof end), end);
      changes.names.push_back({end.time_ns, r.tid, 0, text_behind(bytes, sizeof r)});
      return;
    }
    case PERF_RECORD_LOST: {
      lost_record r{};
      if (take(bytes, r)) file.lost += r.lost;
      return;
    }
    case static_cast<std::uint32_t>(layout::own_record::clock): {
      layout::clock_record r{};
      const auto within = [](std::int64_t ns, std::int64_t end) { return ns >= 0 && ns < end; };
      if (take(bytes, r) && within(r.monotonic_ns, end_of_clock_ns) &&
          within(r.realtime_ns, end_of_time_ns)) {
        file.clocks.push_back({r.monotonic_ns, r.realtime_ns});
      }
      return;
    }
    case static_cast<std::uint32_t>(layout::own_record::module): {
      layout::module_record r{};
      if (!take(bytes, r)) return;
      changes.last_module = text_behind(bytes, sizeof r);
      file.modules.add(r.pid, {r.begin, r.end, r.file_offset, r.time_ns, changes.last_module});
      return;
    }
    case static_cast<std::uint32_t>(layout::own_record::build): {
      layout::build_record r{};
      if (take(bytes, r)) file.builds[changes.last_module] = text_behind(bytes, sizeof r);
      return;
    }
    case static_cast<std::uint32_t>(layout::own_record::region): {
      layout::region_record r{};
      if (!take(bytes, r)) return;
      file.regions.push_back({text_behind(bytes, sizeof r), r.begin_ns, r.end_ns, r.pid, r.tid});
      return;
    }
    case static_cast<std::uint32_t>(layout::own_record::own_thread): {
      layout::own_thread_record r{};
      if (take(bytes, r)) file.own_threads.insert(r.tid);
      return;
    }
    default:
      return;  // a record of the kernel that is not needed here
  }
}

}  // namespace

void module_map::add(std::uint32_t pid, mapped code) {
  by_pid_[pid].push_back(std::move(code));
}

void module_map::forked(std::uint32_t parent, std::uint32_t child) {
  const std::vector<mapped> inherited = by_pid_[parent];
  by_pid_[child] = inherited;
}

const module_map::mapped* module_map::find(const sample& s) const {
  const auto maps = by_pid_.find(s.pid);
  if (maps == by_pid_.end()) return nullptr;
  // The last mapping made before the sample and the first mapping made after it.
  const mapped* before = nullptr;
  const mapped* after = nullptr;
  for (const mapped& m : maps->second) {
    if (s.address < m.begin || s.address >= m.end) continue;
    if (m.time_ns <= s.time_ns) {
      if (before == nullptr || m.time_ns >= before->time_ns) before = &m;
    } else if (after == nullptr || m.time_ns < after->time_ns) {
      after = &m;
    }
  }
  return before != nullptr ? before : after;
}

std::int64_t samples_file::to_epoch_ns(std::uint64_t monotonic_ns) const {
  const auto now = static_cast<std::int64_t>(
      std::min<std::uint64_t>(monotonic_ns, static_cast<std::uint64_t>(end_of_clock_ns)));
  if (clocks.empty()) return now;
  const auto after = std::find_if(clocks.begin(), clocks.end(),
                                  [now](const clock_pair& c) { return c.monotonic_ns > now; });
  const clock_pair& from = after == clocks.begin() ? *after : *(after - 1);
  const std::int64_t offset_ns = from.realtime_ns - from.monotonic_ns;
  if (after == clocks.begin() || after == clocks.end()) return now + offset_ns;
  // Interpolate between the readings of the wall clock before and after this time. If the clock
  // jumped between them, interpolation would be wrong, so use only the reading before.
  const std::int64_t drift_ns = after->realtime_ns - after->monotonic_ns - offset_ns;
  constexpr std::int64_t step_ns = 1'000'000;
  if (drift_ns > step_ns || drift_ns < -step_ns) return now + offset_ns;
  const double part = static_cast<double>(now - from.monotonic_ns) /
                      static_cast<double>(after->monotonic_ns - from.monotonic_ns);
  return now + offset_ns + static_cast<std::int64_t>(part * static_cast<double>(drift_ns));
}

bool is_samples_name(std::string_view name) noexcept {
  const std::string_view start = static_cast<const char*>(layout::samples_file_start);
  return name.substr(0, start.size()) == start;
}

bool is_samples_file(const std::string& path) {
  if (is_samples_name(path.substr(path.rfind('/') + 1))) return true;
  std::ifstream in(path, std::ios::binary);
  std::string beginning(magic().size(), '\0');
  return in.read(beginning.data(), static_cast<std::streamsize>(beginning.size())) &&
         beginning == magic();
}

samples_file read_samples(const std::string& path, diagnostic_log& diagnostics) {
  // If the path has the name of a file of samples, the file is in a folder of logs. Other users may
  // have put links or pipes there, which read_found() refuses.
  const bool found = is_samples_name(path.substr(path.rfind('/') + 1));
  const std::string text = found ? read_found(path) : read_text(path);
  layout::samples_file_header head{};
  if (!take(text, head) || text.compare(0, magic().size(), magic()) != 0) {
    throw input_error(path + ": not a file of samples");
  }
  if (head.layout != layout::samples_file_layout || head.header_bytes > text.size()) {
    throw input_error(path + ": samples written by another version of the library");
  }
  samples_file file;
  file.interval_ns = head.interval_ns;
  file_changes changes;
  std::string_view rest = std::string_view(text).substr(head.header_bytes);
  while (!rest.empty()) {
    perf_event_header header{};
    if (!take(rest, header) || header.size < sizeof header || header.size > rest.size()) {
      diagnostics.note(path + ": incomplete end ignored");
      break;
    }
    read_record(header, rest.substr(0, header.size), file, changes);
    rest.remove_prefix(header.size);
  }
  // Only records of the same processor are in order of time, so sort the records of all processors.
  const auto sort = [](auto& of) {
    std::stable_sort(of.begin(), of.end(),
                     [](const auto& x, const auto& y) { return x.time_ns < y.time_ns; });
  };
  sort(changes.maps);
  for (map_change& change : changes.maps) {
    const bool forked = change.parent_pid != 0;
    if (forked) file.modules.forked(change.parent_pid, change.pid);
    if (!forked) file.modules.add(change.pid, std::move(change.code));
  }
  sort(changes.names);
  for (name_change& change : changes.names) {
    std::string& name = file.thread_names[change.tid];
    name = change.parent_tid == 0 ? std::move(change.name) : file.thread_names[change.parent_tid];
  }
  const auto own = [&file](const sample& s) { return file.own_threads.count(s.tid) != 0; };
  file.samples.erase(std::remove_if(file.samples.begin(), file.samples.end(), own),
                     file.samples.end());
  if (file.lost > 0) {
    diagnostics.warning(path + ": " + std::to_string(file.lost) +
                        " samples were lost; take a lower --rate");
  }
  return file;
}

code_place place_of(const sample& s, const samples_file& file, symbol_source& symbols) {
  if (s.in_kernel) return {"[kernel]", "[kernel]", {}};
  const module_map::mapped* code = file.modules.find(s);
  if (code == nullptr) return {"[unknown]", "[unknown]", {}};
  if (code->path.empty() || code->path.front() != '/') return {code->path, code->path, {}};
  const auto build = file.builds.find(code->path);
  return symbols.at(code->path, s.address - code->begin + code->file_offset,
                    build == file.builds.end() ? std::string() : build->second);
}

}  // namespace lotus::tool
