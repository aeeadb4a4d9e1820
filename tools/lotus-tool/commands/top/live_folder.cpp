#include "commands/top/live_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <lotus/aggregates/aggregate_chain.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/folder/log_appender.hpp>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "commands/top/clock_time.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/lost_records.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

lotus::detail::log_role role_of(const log_file& file) noexcept {
  return file.role == file_role::main   ? lotus::detail::log_role::main
         : file.role == file_role::side ? lotus::detail::log_role::side
                                        : lotus::detail::log_role::worker;
}

/// Returns the ending that the names of a process's ring file and information file share.
std::string ending_of(const std::string& ring_path) {
  const std::string name = fs::path(ring_path).filename().string();
  return name.substr(std::string_view(lotus::detail::ring_file_start).size());
}

/// Returns the middle of a bucket in ticks, as an estimate of the durations in this bucket.
double middle_of(std::uint32_t bucket) {
  return static_cast<double>(lotus::detail::bucket_begin(bucket)) +
         static_cast<double>(lotus::detail::bucket_width(bucket) - 1) / 2;
}

}  // namespace

void live_folder::look(std::int64_t now_ns) {
  walk();
  read_rings();
  place_window(now_ns);
  read_logs();
  place_window(now_ns);
  std::size_t bytes = 0;
  for (auto& [path, log] : logs_) {
    log.lines.trim(begin_ns_);
    bytes += log.lines.bytes();
  }
  while (bytes > max_bytes) {
    begin_ns_ += (end_ns_ - begin_ns_) / 4 + 1;
    bytes = 0;
    for (auto& [path, log] : logs_) {
      log.lines.trim(begin_ns_);
      bytes += log.lines.bytes();
    }
  }
  for (auto at = logs_.begin(); at != logs_.end();) {
    const bool forget = at->second.on_disk.inode == 0 && at->second.lines.bytes() == 0;
    at = forget ? logs_.erase(at) : std::next(at);
  }
}

/// Reads the sizes of all logs. Must be called before the rings are read, because the rings contain
/// newer sizes.
void live_folder::walk() {
  for (auto& [path, log] : logs_) log.on_disk = {};
  for (auto& [path, log] : compact_) log.on_disk = {};
  for (auto& [path, ring] : rings_) ring.there = false;
  with_info_.clear();
  std::error_code error;
  if (!fs::is_directory(dir_, error)) {
    throw input_error(dir_ + ": no such directory; give the folder that holds the log files");
  }
  fs::recursive_directory_iterator at(dir_, fs::directory_options::skip_permission_denied, error);
  if (error) throw input_error(dir_ + ": cannot be read: " + error.message());
  while (at != fs::recursive_directory_iterator()) {
    found(*at);
    at.increment(error);
    if (error) break;  // the folder was removed
  }
  for (auto ring = rings_.begin(); ring != rings_.end();) {
    const bool there = ring->second.there;
    if (!there) forget(ring->first, ring->second);
    ring = there ? std::next(ring) : rings_.erase(ring);
  }
  for (auto ring = ended_.begin(); ring != ended_.end();) {
    ring = ring->second.counted.last_ns() < begin_ns_ ? ended_.erase(ring) : std::next(ring);
  }
}

/// Stores the aggregated calls of a process whose ring file was removed, if they are recent enough
/// to be shown.
void live_folder::forget(const std::string& path, kept_ring& ring) {
  if (ring.counted.last_ns() >= begin_ns_) ended_.emplace(path, std::move(ring));
}

void live_folder::found(const fs::directory_entry& entry) {
  const std::string path = entry.path().string();
  const std::string name = entry.path().filename().string();
  const bool is_ring = is_ring_file_name(name);
  const bool is_info = name.rfind(lotus::detail::run_info_start, 0) == 0;
  if ((!is_ring && !is_info && !log_named(path, prefix_)) || !is_found_file(entry)) return;
  if (is_info) {
    with_info_.insert(entry.path().parent_path().string());
    return;
  }
  if (is_ring) {
    if (const auto known = rings_.find(path); known != rings_.end()) {
      known->second.there = true;
      return;
    }
    rings_.emplace(path, kept_ring{entry.path().parent_path().string(),
                                   std::make_unique<live_ring>(path),
                                   {},
                                   true,
                                   counted_window(window_ns_)});
    return;
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const bool compact = log_named(path, prefix_)->role == file_role::compact;
  (compact ? compact_at(path)->on_disk : log_at(path)->on_disk) = {status.st_ino, size, size};
}

/// Returns the entry of `compact_` for a compact log, and creates the entry if there is none.
/// Returns null if the path does not belong to a log.
live_folder::kept_blocks* live_folder::compact_at(const std::string& path) {
  if (const auto at = compact_.find(path); at != compact_.end()) return &at->second;
  std::optional<log_file> what = log_named(path, prefix_);
  if (!what) return nullptr;
  return &compact_.emplace(path, kept_blocks{std::move(*what), growing_blocks(path), {}})
              .first->second;
}

std::string live_folder::log_path(const std::string& folder, lotus::detail::log_role role,
                                  bool compact, std::uint64_t number) const {
  char name[lotus::detail::log_name_bytes];
  lotus::detail::put_log_name(name, sizeof(name), prefix_.c_str(), role, compact,
                              static_cast<std::uint32_t>(number));
  return (fs::path(folder) / name).string();
}

/// Returns the entry of `logs_` for a text log, and creates the entry if there is none. Returns
/// null if the path does not belong to a log.
live_folder::kept_log* live_folder::log_at(const std::string& path) {
  if (const auto at = logs_.find(path); at != logs_.end()) return &at->second;
  std::optional<log_file> what = log_named(path, prefix_);
  if (!what) return nullptr;
  const bool is_side_log = what->role == file_role::side;
  const auto at = logs_.emplace(
      path, kept_log{std::move(*what), {path, is_side_log}, line_window(is_side_log), {}});
  return &at.first->second;
}

void live_folder::read_rings() {
  held_.clear();
  for (auto at = rings_.begin(); at != rings_.end();) {
    kept_ring& ring = at->second;
    ring_look look;
    const live_ring::state state = ring.ring->look(look);
    const bool gone = state == live_ring::state::gone;
    if (!gone) {
      ring.process = {ring.ring->pid(), state, look.left, look.in_memory, look.waiting_since_ns};
    }
    if (gone) forget(at->first, ring);
    if (!gone && ring.ring->prefix() == prefix_) {
      if (look.counted && state == live_ring::state::running) {
        ring.counted.add(ring.ring->began_ns(), time_of(CLOCK_REALTIME), std::move(*look.counted));
        ring.ns_per_tick = ring.ring->ns_per_tick();
      }
      add_ring_contents(ring, std::move(look));
    }
    at = gone ? rings_.erase(at) : std::next(at);
  }
}

void live_folder::add_ring_contents(const kept_ring& from, ring_look look) {
  for (const std::uint64_t number : look.held) held_.emplace(from.dir, number);
  const bool compact = from.ring->compact();
  const auto path_of = [&](const ring_log& log, bool of_blocks) {
    return log_path((fs::path(from.dir) / log.folder).string(), log.role, of_blocks, log.number);
  };
  for (const ring_look::committed& at : look.logs) {
    // A compact log contains the records of all roles, so its size is taken from only one role.
    if (compact && at.log.role != lotus::detail::log_role::side) continue;
    log_extent* on_disk = nullptr;
    if (kept_blocks* const log = compact ? compact_at(path_of(at.log, true)) : nullptr) {
      on_disk = &log->on_disk;
    } else if (kept_log* const text = compact ? nullptr : log_at(path_of(at.log, false))) {
      on_disk = &text->on_disk;
    }
    if (on_disk == nullptr) continue;
    // The log may have been created after walk() read the directory.
    if (on_disk->inode == 0) *on_disk = {at.inode, at.bytes, at.bytes};
    if (on_disk->inode != at.inode) continue;
    on_disk->bytes = at.bytes;
    on_disk->size = std::max(on_disk->size, at.bytes);
  }
  for (ring_look::new_lines& grown : look.lines) {
    kept_log* const log = log_at(path_of(grown.log, false));
    if (log == nullptr) continue;
    ring_log blocks = grown.log;
    blocks.role = lotus::detail::log_role::side;
    log->blocks = compact ? compact_at(path_of(blocks, true)) : nullptr;
    log->coming.push_back(std::move(grown.lines));
  }
}

/// Whether a log must not be read in this update, because the recording process changed the log
/// while live_folder read the ring of the process. The ring file may be in the parent folder of the
/// log, because each loader has a subfolder for its logs.
bool live_folder::is_held(const log_file& log) const {
  const fs::path folder = fs::path(log.path).parent_path();
  return !held_.empty() && (held_.count({folder.string(), log.number}) != 0 ||
                            held_.count({folder.parent_path().string(), log.number}) != 0);
}

/// Reads the new lines of all logs, and adds the lines that were found in rings. The process
/// appends those lines to the log later, so the reader of the log must skip them there.
void live_folder::read_logs() {
  for (auto& [path, log] : compact_) {
    if (log.on_disk.inode != 0 && !is_held(log.what)) read_blocks(path, log);
  }
  for (auto& [path, log] : logs_) {
    if (log.on_disk.inode != 0 && !is_held(log.what)) {
      log.lines.add(log.reader.read(log.on_disk, begin_ns_));
    }
    for (std::string& lines : log.coming) {
      const auto count = static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
      if (log.blocks != nullptr) {
        log.blocks->reader.expect(role_of(log.what), count);
      } else {
        log.reader.expect(count);
      }
      log.lines.add(std::move(lines));
    }
    log.coming.clear();
  }
}

/// Stores the lines of a compact log under the paths that text logs with these lines would have.
void live_folder::read_blocks(const std::string& path, kept_blocks& log) {
  growing_blocks::lines_by_role lines = log.reader.read(log.on_disk, begin_ns_);
  for (std::size_t role = 0; role < lines.size(); ++role) {
    if (lines[role].empty()) continue;
    kept_log* const to =
        log_at(log_path(fs::path(path).parent_path().string(),
                        static_cast<lotus::detail::log_role>(role), false, log.what.number));
    if (to != nullptr) to->lines.add(std::move(lines[role]));
  }
}

/// Sets the window, which is the interval that is shown. At the first update no lines have been
/// read yet, so the time of the last record is read from the ends of the logs.
void live_folder::place_window(std::int64_t now_ns) {
  const bool first_update = !first_begin_ns_;
  bool running = false;
  for (const auto& [path, ring] : rings_) {
    running |= ring.process.state == live_ring::state::running;
  }
  for (const auto& [path, log] : logs_) {
    last_ns_ = std::max(last_ns_, log.lines.last_ns());
    if (!first_update || log.on_disk.inode == 0) continue;
    const bool is_side_log = log.what.role == file_role::side;
    last_ns_ = std::max(last_ns_, last_record_ns(path, log.on_disk.bytes, is_side_log));
  }
  for (const auto& [path, log] : compact_) {
    if (!first_update || log.on_disk.inode == 0) continue;
    last_ns_ = std::max(last_ns_, last_block_ns(path, log.on_disk.bytes));
  }
  // If no process is running any more, the window ends with the last record; otherwise it would
  // become empty. Without information files it is unknown whether processes run, so they count as
  // ended after `silence_ns` without a record.
  const std::int64_t silence_ns = std::min<std::int64_t>(2'000'000'000, window_ns_);
  const bool over =
      !running && last_ns_ && (!with_info_.empty() || now_ns - *last_ns_ > silence_ns);
  // The records may come from a machine whose clock is ahead of this machine's clock.
  end_ns_ = over ? *last_ns_ : std::max(now_ns, last_ns_.value_or(now_ns));
  begin_ns_ = end_ns_ - window_ns_;
  if (first_update) first_begin_ns_ = begin_ns_;
}

std::vector<run_files> live_folder::runs() const {
  logs_by_folder logs;
  for (const auto& [path, log] : logs_) {
    if (log.lines.last_ns() < first_begin_ns_) continue;
    log_file file = log.what;
    file.tail = log.lines.text();
    logs[fs::path(path).parent_path().string()].push_back(std::move(file));
  }
  std::vector<run_files> runs = runs_of(std::move(logs), with_info_);
  for (run_files& run : runs) run.lost_in_rings = lost_in_rings(run.info_dir);
  return runs;
}

std::set<std::string> live_folder::with_processes() const {
  std::set<std::string> dirs;
  for (const auto& [path, ring] : rings_) {
    if (ring.process.state != live_ring::state::unreadable) dirs.insert(ring.dir);
  }
  return dirs;
}

std::vector<seen_process> live_folder::processes(const std::string& info_dir) const {
  std::vector<seen_process> found;
  for (const auto& [path, ring] : rings_) {
    if (ring.dir == info_dir) found.push_back(ring.process);
  }
  return found;
}

std::map<std::string, std::uint64_t> live_folder::lost_in_rings(const std::string& info_dir) const {
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [path, ring] : rings_) {
    const bool killed = ring.process.state == live_ring::state::dead;
    if (ring.dir == info_dir && killed && ring.process.in_memory > 0) {
      lost[ending_of(path)] = ring.process.in_memory;
    }
  }
  return lost;
}

std::vector<seen_calls> live_folder::calls(const std::string& info_dir) const {
  std::vector<seen_calls> found;
  for (const auto* rings : {&rings_, &ended_}) {
    for (const auto& [path, ring] : *rings) {
      if (ring.dir != info_dir) continue;
      const auto interval = ring.counted.since(begin_ns_);
      if (!interval) continue;
      for (const auto& [of, calls] : interval->calls) {
        const auto ns = [ns_per_tick = ring.ns_per_tick](double ticks) {
          return std::llround(ticks * ns_per_tick);
        };
        seen_calls& seen = found.emplace_back();
        seen.dir = of.first.empty() ? ring.dir : (fs::path(ring.dir) / of.first).string();
        seen.ring = ending_of(path);
        seen.name = of.second;
        seen.count = calls.count;
        seen.total_ns = ns(static_cast<double>(calls.total_ticks));
        seen.self_ns = ns(static_cast<double>(calls.self_ticks));
        if (!calls.buckets.empty()) seen.max_ns = ns(middle_of(calls.buckets.back().first));
        seen.interval_ns = interval->ns;
      }
    }
  }
  return found;
}

bool live_folder::needs_second_reading() const {
  return std::any_of(rings_.begin(), rings_.end(),
                     [](const auto& ring) { return ring.second.counted.needs_second_reading(); });
}

}  // namespace lotus::tool
