#include "commands/top/live_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <lotus/aggregates/aggregates.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "commands/top/clock_time.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/lost_records.hpp"
#include "log/record_tails.hpp"
#include "log/window/log_window.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

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

bool has_inode(const std::string& path, std::uint64_t inode) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && status.st_ino == inode;
}

/// Lets a log end where its process says that the records in its ring begin.
void end_at(log_file& file, const ring_log& log) {
  if (has_inode(file.path, log.inode)) {
    file.bytes = log.bytes;
    file.inode = log.inode;
    return;
  }
  for (older_part& part : file.older) {
    if (!part.packed && has_inode(part.path, log.inode)) part.bytes = log.bytes;
  }
}

}  // namespace

void live_folder::look(std::int64_t now_ns) {
  for (auto& [path, ring] : rings_) ring.there = false;
  files_ = find_live_runs(
      dir_, prefix_, max_log_bytes,
      [this](const std::string& dir, logs_by_folder& logs) { read_rings(dir, logs); });
  place_window(now_ns);
  begin_ns_ = narrow_to_end(files_.runs, begin_ns_, max_log_bytes, max_bytes);
  forget_old();
}

/// Forgets the processes that have ended and the runs that were over before the first window.
void live_folder::forget_old() {
  for (auto at = rings_.begin(); at != rings_.end();) {
    const bool old = !at->second.there && at->second.counted.last_ns() < begin_ns_;
    at = old ? rings_.erase(at) : std::next(at);
  }
  std::vector<run_files>& runs = files_.runs;
  for (run_files& run : runs) {
    run.lost_in_rings = lost_in_rings(run.info_dir);
    run.aggregated.clear();  // of ended processes, without times
    for (std::vector<log_file>* files : {&run.files, &run.side_files}) {
      files->erase(std::remove_if(files->begin(), files->end(),
                                  [this](const log_file& file) {
                                    const bool empty = file.first == file.bytes &&
                                                       file.tail.empty() && file.older.empty();
                                    if (!empty) with_records_.insert(file.path);
                                    return with_records_.count(file.path) == 0;
                                  }),
                   files->end());
    }
  }
  runs.erase(std::remove_if(
                 runs.begin(), runs.end(),
                 [](const run_files& run) { return run.files.empty() && run.side_files.empty(); }),
             runs.end());
}

void live_folder::read_rings(const std::string& dir, logs_by_folder& logs) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    if (!is_ring_file_name(entry.path().filename().string())) continue;
    const std::string path = entry.path().string();
    live_ring ring = read_live_ring(path);
    if (ring.state == ring_state::gone) continue;
    kept_ring& kept = rings_.try_emplace(path, window_ns_).first->second;
    kept.dir = dir;
    kept.there = true;
    kept.process = {ring.pid, ring.state, ring.left, ring.in_memory, ring.waiting_since_ns};
    if (ring.prefix != prefix_) continue;
    if (!ring.counted.empty() && ring.state == ring_state::running) {
      kept.counted.add(ring.began_ns, time_of(CLOCK_REALTIME), std::move(ring.counted));
      kept.ns_per_tick = ring.ns_per_tick;
    }
    add_ring(dir, std::move(ring), logs);
  }
}

void live_folder::add_ring(const std::string& dir, live_ring&& ring, logs_by_folder& logs) const {
  tailed_logs to(dir, logs, max_bytes);
  for (ring_log& log : ring.logs) {
    const std::string folder = log.folder.empty() ? dir : (fs::path(dir) / log.folder).string();
    if (!log.lines.empty()) {
      to.file_of(folder, prefix_.c_str(), log.role, false, log.number).tail += log.lines;
      continue;
    }
    // A compact log contains the records of all roles; its size is that of the side log's role.
    if (ring.compact && log.role != lotus::detail::log_role::side) continue;
    end_at(to.file_of(folder, prefix_.c_str(), log.role, ring.compact, log.number), log);
  }
}

/// Sets the window, which is the interval that is shown.
void live_folder::place_window(std::int64_t now_ns) {
  const bool running = std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) {
    return ring.second.there && ring.second.process.state == ring_state::running;
  });
  last_ns_ = std::max(last_ns_, last_record_ns(files_.runs));
  // If no process is running any more, the window ends with the last record; otherwise it would
  // become empty. Without information files it is unknown whether processes run, so they count as
  // ended after `silence_ns` without a record.
  const std::int64_t silence_ns = std::min<std::int64_t>(2'000'000'000, window_ns_);
  const bool over =
      !running && last_ns_ && (!files_.with_info.empty() || now_ns - *last_ns_ > silence_ns);
  // The records may come from a machine whose clock is ahead of this machine's clock.
  end_ns_ = over ? *last_ns_ : std::max(now_ns, last_ns_.value_or(now_ns));
  begin_ns_ = end_ns_ - window_ns_;
}

std::set<std::string> live_folder::with_processes() const {
  std::set<std::string> dirs;
  for (const auto& [path, ring] : rings_) {
    if (ring.there && ring.process.state != ring_state::unreadable) dirs.insert(ring.dir);
  }
  return dirs;
}

std::vector<seen_process> live_folder::processes(const std::string& info_dir) const {
  std::vector<seen_process> found;
  for (const auto& [path, ring] : rings_) {
    if (ring.there && ring.dir == info_dir) found.push_back(ring.process);
  }
  return found;
}

std::map<std::string, std::uint64_t> live_folder::lost_in_rings(const std::string& info_dir) const {
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [path, ring] : rings_) {
    const bool killed = ring.there && ring.process.state == ring_state::dead;
    if (ring.dir == info_dir && killed && ring.process.in_memory > 0) {
      lost[ending_of(path)] = ring.process.in_memory;
    }
  }
  return lost;
}

std::vector<seen_calls> live_folder::calls(const std::string& info_dir) const {
  std::vector<seen_calls> found;
  for (const auto& [path, ring] : rings_) {
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
  return found;
}

bool live_folder::needs_second_reading() const {
  return std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) {
    return ring.second.there && ring.second.counted.needs_second_reading();
  });
}

}  // namespace lotus::tool
