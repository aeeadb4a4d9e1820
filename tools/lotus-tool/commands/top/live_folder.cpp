#include "commands/top/live_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <lotus/aggregates/aggregate_text.hpp>
#include <lotus/aggregates/aggregates.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/folder/loader_folder.hpp>
#include <lotus/folder/log_appender.hpp>
#include <lotus/folder/safe_open.hpp>
#include <lotus/format/drain.hpp>
#include <lotus/recovery/dead_ring.hpp>
#include <memory>
#include <string_view>
#include <system_error>

#include "log/folder/lost_records.hpp"
#include "log/record_tails.hpp"
#include "log/window/log_window.hpp"

namespace lotus::tool {
namespace fs = std::filesystem;

namespace {

using lotus::detail::commit_point;
using lotus::detail::dead_ring_file;
using lotus::detail::log_position;
using lotus::detail::ring_block;
using lotus::detail::ring_copy;

bool same(const commit_point& a, const commit_point& b) {
  if (a.loader != b.loader || !std::equal(a.tail, a.tail + lotus::detail::lanes, b.tail))
    return false;
  return std::equal(a.logs, a.logs + lotus::detail::log_roles, b.logs,
                    [](const log_position& x, const log_position& y) {
                      return x.inode == y.inode && x.length == y.length && x.number == y.number &&
                             x.loader == y.loader;
                    });
}

class ring_reader {
 public:
  ring_reader(std::string path, live_ring& to) : path_(std::move(path)), to_(to) {}

  void read() {
    const dead_ring_file::state opened = open();
    if (opened == dead_ring_file::state::gone) to_.process.state = ring_state::gone;
    if (opened != dead_ring_file::state::opened) return;
    dead_ring_file& file = *files_.front();
    const bool running =
        lotus::detail::file_lock_is_taken(file.descriptor(), lotus::detail::owner_lock_byte);
    to_.process.pid = file.header().pid;
    to_.prefix = file.header().prefix;
    to_.compact = file.compact();
    to_.began_ns = static_cast<std::int64_t>(file.header().began_ns);
    to_.ns_per_tick = static_cast<double>(lotus::detail::mean_rate(file.clocks())) / 4294967296.0;
    file.for_each_ring([this](ring_copy& copy) { read_ring(copy); });
    to_.counted = read_counts(file, {[this](std::uint32_t id) { return line_start(id); },
                                     [this](std::uint32_t loader) { return folder_of(loader); }});
    to_.process.state = running ? ring_state::running : ring_state::dead;
  }

 private:
  dead_ring_file::state open() {
    struct stat status {};
    if (lstat(path_.c_str(), &status) != 0) return dead_ring_file::state::gone;
    auto file = std::make_unique<dead_ring_file>();
    const dead_ring_file::state opened =
        file->open_any(AT_FDCWD, path_.c_str(), lotus::detail::file_owners::only(status.st_uid));
    if (opened != dead_ring_file::state::opened) return opened;
    file->read_blocks();
    files_.push_back(std::move(file));
    return opened;
  }

  /// Returns the start of a line with the name of this id. If the process has added the name since
  /// the names were read, reads them again.
  std::string_view line_start(std::uint64_t id) {
    constexpr std::size_t max_readings = 8;  // limits the work for a damaged file
    const auto known = [this, id] {
      return files_.back()->line_start(id).data() != lotus::detail::lost_line_start.data();
    };
    if (id != 0 && !known() && files_.size() < max_readings) open();
    return files_.back()->line_start(id);
  }

  std::string folder_of(std::uint32_t loader) {
    if (loader == 0) return {};
    char name[lotus::detail::max_folder_name_bytes + 1];
    lotus::detail::put_loader_folder_name(name, line_start(loader));
    return name;
  }

  /// Reads the records of a ring. If the process moves records from the ring to a log meanwhile,
  /// the copy is inconsistent, so the function tries again a few times. In the end it reads only
  /// where the logs end; the records after that come with the next reading.
  void read_ring(ring_copy& copy) {
    const std::uint64_t bytes = copy.ring().header.bytes;
    for (int i = 0; i < 8; ++i) {
      if (i > 0) usleep(200);
      if (i > 0 && !copy.copy(files_.front()->descriptor(), copy.file_offset(), bytes)) return;
      if (try_ring(copy)) return;
    }
    if (!copy.copy(files_.front()->descriptor(), copy.file_offset(), bytes)) return;
    const commit_point committed = copy.ring().committed();
    add_logs(copy.ring(), committed);
  }

  bool try_ring(ring_copy& copy) {
    ring_block& block = copy.ring();
    const commit_point committed = block.committed();
    const std::uint64_t left = copy.left();
    tail_sink sink(block);
    const lotus::detail::tick_converter clock = files_.front()->clock();
    const auto names = [this](std::uint64_t id) { return line_start(id); };
    lotus::detail::line_filler fill(clock, names, *buffer_);
    while (copy.fetch()) {
      lotus::detail::drain_ring(block, lotus::detail::lane_heads(block), fill, sink);
    }
    if (!is_unchanged(copy, committed)) return false;
    const std::uint64_t waiting = block.waiting_since.load(std::memory_order_relaxed);
    if (waiting != 0) {
      const std::int64_t since_ns = clock.convert(waiting, waiting).start_ns;
      std::int64_t& longest_ns = to_.process.waiting_since_ns;
      if (longest_ns == 0 || since_ns < longest_ns) longest_ns = since_ns;
    }
    to_.process.in_ring += left;
    to_.process.in_memory += committed.in_memory;
    add_logs(block, committed);
    for (auto& [loader, tails] : sink.tails) {
      for (std::size_t role = 0; role < lotus::detail::log_roles; ++role) {
        if (tails[role].empty()) continue;
        to_.logs.push_back({folder_of(loader), static_cast<lotus::detail::log_role>(role),
                            lotus::detail::log_number(block, committed.logs[role]), 0, 0,
                            std::move(tails[role])});
      }
    }
    return true;
  }

  void add_logs(const ring_block& block, const commit_point& committed) {
    for (std::size_t role = 0; role < lotus::detail::log_roles; ++role) {
      const log_position& at = committed.logs[role];
      if (at.inode == 0) continue;
      to_.logs.push_back({folder_of(at.loader),
                          static_cast<lotus::detail::log_role>(role),
                          lotus::detail::log_number(block, at),
                          at.inode,
                          at.length,
                          {}});
    }
  }

  /// Whether `before` is still the process's latest commit, which says how many records of the
  /// ring are in a log.
  bool is_unchanged(const ring_copy& copy, const commit_point& before) const {
    if (!lotus::detail::read_at(files_.front()->descriptor(), static_cast<void*>(reread_.get()),
                                sizeof(*reread_), copy.file_offset())) {
      return false;
    }
    const std::uint32_t index = reread_->commit_index.load(std::memory_order_relaxed);
    return index <= 1 && same(reread_->commits[index], before);
  }

  std::string path_;
  live_ring& to_;
  // The ring file, read once or, to get names that were added meanwhile, several times.
  std::vector<std::unique_ptr<dead_ring_file>> files_;
  std::unique_ptr<ring_block> reread_ = std::make_unique<ring_block>();
  std::unique_ptr<lotus::detail::drain_buffer> buffer_ =
      std::make_unique<lotus::detail::drain_buffer>();
};

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

live_ring read_live_ring(const std::string& path) {
  live_ring ring;
  ring_reader(path, ring).read();
  return ring;
}

void live_folder::look(std::int64_t now_ns, std::int64_t steady_ns) {
  notice_setting(now_ns, steady_ns);
  for (auto& [path, ring] : rings_) ring.there = false;
  files_ = find_live_runs(
      dir_, prefix_, max_log_bytes,
      [this](const std::string& dir, logs_by_folder& logs) { read_rings(dir, logs); });
  place_window(now_ns);
  begin_ns_ = narrow_to_end(files_.runs, begin_ns_, max_log_bytes, max_bytes);
  forget_old();
}

/// If the clock was set back, the latest record would be of the future, and keep the window there.
void live_folder::notice_setting(std::int64_t now_ns, std::int64_t steady_ns) {
  constexpr std::int64_t least_ns = 500'000'000;  // more than clocks are adjusted between two looks
  const std::int64_t by_ns = now_ns - steady_ns - offset_ns_.value_or(now_ns - steady_ns);
  offset_ns_ = now_ns - steady_ns;
  if (std::abs(by_ns) < least_ns) return;
  last_ns_.reset();
  clock_set_ns_ = by_ns;
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
  runs.erase(std::remove_if(runs.begin(), runs.end(), std::mem_fn(&run_files::empty)), runs.end());
}

void live_folder::read_rings(const std::string& dir, logs_by_folder& logs) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    if (!is_ring_file_name(entry.path().filename().string())) continue;
    const std::string path = entry.path().string();
    live_ring ring = read_live_ring(path);
    if (ring.process.state == ring_state::gone) continue;
    kept_ring& kept = rings_.try_emplace(path, window_ns_).first->second;
    kept.dir = dir;
    kept.there = true;
    kept.process = ring.process;
    if (ring.prefix != prefix_) continue;
    if (!ring.counted.empty() && ring.process.state == ring_state::running) {
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
  // The records may come from a machine whose clock is ahead of this machine's clock, unless it was
  // this clock that was set.
  const std::int64_t latest_ns = clock_set_ns_ == 0 ? last_ns_.value_or(now_ns) : now_ns;
  end_ns_ = over ? *last_ns_ : std::max(now_ns, latest_ns);
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
