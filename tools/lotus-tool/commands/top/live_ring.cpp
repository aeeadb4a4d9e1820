#include "commands/top/live_ring.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <lotus/aggregates/aggregate_text.hpp>
#include <lotus/folder/loader_folder.hpp>
#include <lotus/folder/log_appender.hpp>
#include <lotus/folder/safe_open.hpp>
#include <lotus/format/drain.hpp>
#include <lotus/recovery/dead_ring.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregates/live/counted_window.hpp"
#include "log/record_tails.hpp"

namespace lotus::tool {
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
    if (opened == dead_ring_file::state::gone) to_.state = ring_state::gone;
    if (opened != dead_ring_file::state::opened) return;
    dead_ring_file& file = *files_.front();
    const bool running =
        lotus::detail::file_lock_is_taken(file.descriptor(), lotus::detail::owner_lock_byte);
    to_.pid = file.header().pid;
    to_.prefix = file.header().prefix;
    to_.compact = file.compact();
    to_.began_ns = static_cast<std::int64_t>(file.header().began_ns);
    to_.ns_per_tick = static_cast<double>(lotus::detail::mean_rate(file.clocks())) / 4294967296.0;
    file.for_each_ring([this](ring_copy& copy) { read_ring(copy); });
    to_.counted = read_counts(file, {[this](std::uint32_t id) { return line_start(id); },
                                     [this](std::uint32_t loader) { return folder_of(loader); }});
    to_.state = running ? ring_state::running : ring_state::dead;
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
      const bool longest = to_.waiting_since_ns == 0 || since_ns < to_.waiting_since_ns;
      if (longest) to_.waiting_since_ns = since_ns;
    }
    to_.left += left;
    to_.in_memory += committed.in_memory;
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

}  // namespace

live_ring read_live_ring(const std::string& path) {
  live_ring ring;
  ring_reader(path, ring).read();
  return ring;
}

}  // namespace lotus::tool
