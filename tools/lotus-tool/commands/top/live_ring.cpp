#include "commands/top/live_ring.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <lotus/aggregates/aggregate_text.hpp>
#include <lotus/folder/loader_folder.hpp>
#include <lotus/folder/log_appender.hpp>
#include <lotus/folder/safe_open.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "log/record_tails.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::block_kind;
using lotus::detail::commit_point;
using lotus::detail::read_at;
using lotus::detail::ring_file_header;

// A file whose values exceed these limits is damaged, because no process needs that much.
constexpr std::size_t max_rings = std::size_t{1} << 16U;
constexpr std::size_t max_names_bytes = std::size_t{64} << 20U;
constexpr std::uint64_t max_names_block_bytes = std::uint64_t{1} << 20U;

bool same(const commit_point& a, const commit_point& b) {
  if (a.loader != b.loader || !std::equal(a.tail, a.tail + lotus::detail::lanes, b.tail))
    return false;
  return std::equal(a.logs, a.logs + lotus::detail::log_roles, b.logs,
                    [](const lotus::detail::log_position& x, const lotus::detail::log_position& y) {
                      return x.inode == y.inode && x.length == y.length && x.number == y.number &&
                             x.loader == y.loader;
                    });
}

/// Whether position `a` is after position `b`; positions may wrap around.
bool is_ahead(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b) > 0;
}

}  // namespace

live_ring::~live_ring() {
  if (fd_ >= 0) close(fd_);
}

live_ring::state live_ring::look(ring_look& to) {
  if (fd_ < 0 && !open()) return state::unreadable;
  struct stat status {};
  if (fstat(fd_, &status) != 0 || status.st_nlink == 0) return state::gone;
  const bool running = lotus::detail::file_lock_is_taken(fd_, lotus::detail::owner_lock_byte);
  if (!checked_ && !read_header()) return state::unreadable;
  if (!read_clock()) return state::unreadable;
  read_blocks();
  // read_ring() may append to rings_, so the loop must read the size of rings_ again each time.
  std::size_t next = 0;
  while (next < rings_.size()) read_ring(rings_[next++], to);
  if (counts_.any()) {
    to.counted = counts_.read(fd_, {[this](std::uint32_t id) { return line_start(id); },
                                    [this](std::uint32_t loader) { return folder_of(loader); }});
  }
  return running ? state::running : state::dead;
}

bool live_ring::open() {
  struct stat status {};
  const int fd = lotus::detail::open_regular(AT_FDCWD, path_.c_str(), O_RDONLY, status);
  if (fd < 0) return false;
  fd_ = fd;
  header_ = std::make_unique<ring_file_header>();
  reread_ = std::make_unique<lotus::detail::ring_block>();
  buffer_ = std::make_unique<lotus::detail::drain_buffer>();
  return true;
}

bool live_ring::read_header() {
  ring_file_header& h = *header_;
  if (!read_at(fd_, static_cast<void*>(&h), sizeof(h), 0)) return false;
  const auto* const end = static_cast<const char*>(std::memchr(h.prefix, '\0', sizeof(h.prefix)));
  checked_ = std::memcmp(h.magic, lotus::detail::ring_file_magic, sizeof(h.magic)) == 0 &&
             h.layout == lotus::detail::ring_file_layout && h.header_bytes >= sizeof(h) &&
             h.header_bytes % lotus::detail::min_page_bytes == 0 && end != nullptr &&
             end != h.prefix && std::memchr(h.prefix, '/', sizeof(h.prefix)) == nullptr;
  if (!checked_) return false;
  pid_ = h.pid;
  prefix_ = h.prefix;
  began_ns_ = static_cast<std::int64_t>(h.began_ns);
  compact_ = (h.flags & lotus::detail::compact_flag) != 0;
  next_block_ = h.header_bytes;
  return true;
}

/// Reads the clock parameters of the process; tries again if the process changes them meanwhile.
bool live_ring::read_clock() {
  ring_file_header& h = *header_;
  constexpr std::uint64_t index_at = offsetof(ring_file_header, clock_index);
  for (int i = 0; i < 4; ++i) {
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    if (!read_at(fd_, &before, sizeof(before), index_at) || before > 1) return false;
    if (!read_at(fd_, static_cast<void*>(&h.clocks[before]), sizeof(h.clocks[0]),
                 offsetof(ring_file_header, clocks) + before * sizeof(h.clocks[0])) ||
        !read_at(fd_, &after, sizeof(after), index_at)) {
      return false;
    }
    if (before != after) continue;
    h.clock_index.store(before, std::memory_order_relaxed);
    return h.clocks[before].valid();
  }
  return false;
}

/// Reads the blocks (rings and lists of names) that were appended to the file since the last call.
void live_ring::read_blocks() {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  while (size >= next_block_ && size - next_block_ >= lotus::detail::min_page_bytes &&
         rings_.size() < max_rings) {
    lotus::detail::block_header block{};
    if (!read_at(fd_, static_cast<void*>(&block), sizeof(block), next_block_)) return;
    const auto kind = block.kind.load(std::memory_order_relaxed);
    if (kind != block_kind::ring && kind != block_kind::names && kind != block_kind::aggregates)
      return;
    if (block.bytes < lotus::detail::min_page_bytes || block.bytes > size - next_block_ ||
        block.bytes % lotus::detail::min_page_bytes != 0) {
      return;
    }
    if (kind == block_kind::aggregates) {
      counts_.found(next_block_, block.bytes);
    } else if (kind == block_kind::ring) {
      rings_.push_back({next_block_, block.bytes, {}, 0, false});
    } else {
      read_names();  // reads the rest of the previous block of names, which is full
      names_block_ = {next_block_, block.bytes, 0};
    }
    next_block_ += block.bytes;
  }
}

/// Reads the names that were added since the last call.
void live_ring::read_names() {
  std::uint64_t used = 0;
  if (names_block_.bytes == 0 || names_block_.bytes > max_names_block_bytes ||
      !read_at(fd_, &used, sizeof(used),
               names_block_.at + offsetof(lotus::detail::names_block, used_bytes)) ||
      used > names_block_.bytes - sizeof(lotus::detail::names_block) || used <= names_block_.done) {
    return;
  }
  std::string text(used - names_block_.done, '\0');
  const std::uint64_t at = names_block_.at + sizeof(lotus::detail::names_block) + names_block_.done;
  if (!read_at(fd_, text.data(), text.size(), at)) return;
  std::size_t i = 0;
  while (text.size() - i >= sizeof(lotus::detail::stored_name) && names_bytes_ < max_names_bytes) {
    lotus::detail::stored_name head{};
    std::memcpy(&head, text.data() + i, sizeof(head));
    const std::size_t room = text.size() - i;
    if (head.id != names_.size() + 1 || head.bytes > room - sizeof(head)) return;
    const std::string_view start(text.data() + i + sizeof(head), head.bytes);
    names_.emplace_back(lotus::detail::is_line_start(start) ? start : "Sname_lost,");
    names_bytes_ += sizeof(std::string) + start.size();
    i += std::min(room, lotus::detail::padded_name_bytes(head.bytes));
  }
  names_block_.done += i;
}

double live_ring::ns_per_tick() const {
  const auto& map = header_->clocks[header_->clock_index.load(std::memory_order_relaxed)];
  return static_cast<double>(lotus::detail::mean_rate(map)) / 4294967296.0;
}

std::string_view live_ring::line_start(std::uint64_t id) {
  if (id == lotus::detail::unnamed_id) return lotus::detail::unnamed_line_start;
  if (id > names_.size()) {
    read_blocks();
    read_names();
  }
  return id == 0 || id > names_.size() ? "Sname_lost," : std::string_view(names_[id - 1]);
}

std::string live_ring::folder_of(std::uint32_t loader) {
  if (loader == 0) return {};
  char name[lotus::detail::max_folder_name_bytes + 1];
  lotus::detail::put_loader_folder_name(name, line_start(loader));
  return name;
}

/// Copies the new records of a ring. If the process moves records from the ring to a log meanwhile,
/// the copy is inconsistent, so the function tries again a few times.
void live_ring::read_ring(seen_ring& ring, ring_look& to) {
  for (int i = 0; i < 8; ++i) {
    if (try_ring(ring, to)) {
      ring.was_read = true;
      return;
    }
    usleep(200);
  }
  if (read_at(fd_, static_cast<void*>(reread_.get()), sizeof(*reread_), ring.at)) {
    to.held.push_back(reread_->tid.load(std::memory_order_relaxed));
    for (const lotus::detail::log_position& at : reread_->commits[0].logs)
      to.held.push_back(at.number);
    for (const lotus::detail::log_position& at : reread_->commits[1].logs)
      to.held.push_back(at.number);
  }
}

/// Whether `before` is still the process's latest commit, which says how many records of the ring
/// are in a log.
bool live_ring::is_unchanged(const seen_ring& ring, const commit_point& before) {
  if (!read_at(fd_, static_cast<void*>(reread_.get()), sizeof(*reread_), ring.at)) return false;
  const std::uint32_t index = reread_->commit_index.load(std::memory_order_relaxed);
  return index <= 1 && same(reread_->commits[index], before);
}

bool live_ring::try_ring(seen_ring& ring, ring_look& to) {
  if (!copy_.copy(fd_, ring.at, ring.bytes)) return false;
  lotus::detail::ring_block& block = copy_.ring();
  const commit_point committed = block.committed();
  const std::uint64_t interrupts = block.published[1].load(std::memory_order_relaxed);
  const std::uint64_t all = copy_.left();
  const std::uint64_t heads[] = {committed.tail[0] + all - (interrupts - committed.tail[1]),
                                 interrupts};
  commit_point read_point = committed;
  for (std::size_t lane = 0; lane < lotus::detail::lanes; ++lane) {
    const std::uint64_t seen = ring.seen[lane];
    if (!ring.was_read || !is_ahead(seen, read_point.tail[lane]) || is_ahead(seen, heads[lane])) {
      continue;
    }
    read_point.tail[lane] = seen;
    if (lane == 0) read_point.loader = ring.loader;
  }
  block.commit(read_point);
  tail_sink sink(block);
  const lotus::detail::clock_map& map =
      header_->clocks[header_->clock_index.load(std::memory_order_relaxed)];
  const auto names = [this](std::uint64_t id) { return line_start(id); };
  const lotus::detail::tick_converter clock{map, nullptr};
  lotus::detail::line_filler fill(clock, names, *buffer_);
  while (copy_.fetch()) {
    lotus::detail::drain_ring(block, lotus::detail::lane_heads(block), fill, sink);
  }
  if (!is_unchanged(ring, committed)) return false;
  const std::uint64_t waiting = block.waiting_since.load(std::memory_order_relaxed);
  if (waiting != 0) {
    const std::int64_t since_ns = clock.convert(waiting, waiting).start_ns;
    const bool longest = to.waiting_since_ns == 0 || since_ns < to.waiting_since_ns;
    if (longest) to.waiting_since_ns = since_ns;
  }
  const commit_point now = block.committed();
  std::copy(now.tail, now.tail + lotus::detail::lanes, ring.seen);
  ring.loader = now.loader;
  to.left += all;
  to.in_memory += committed.in_memory;
  const auto log_of = [&](std::uint32_t loader, std::size_t role) {
    return ring_log{folder_of(loader), static_cast<lotus::detail::log_role>(role),
                    lotus::detail::log_number(block, committed.logs[role])};
  };
  for (std::size_t role = 0; role < lotus::detail::log_roles; ++role) {
    const lotus::detail::log_position& at = committed.logs[role];
    if (at.inode != 0) to.logs.push_back({log_of(at.loader, role), at.inode, at.length});
  }
  for (auto& [loader, tails] : sink.tails) {
    for (std::size_t role = 0; role < lotus::detail::log_roles; ++role) {
      if (tails[role].empty()) continue;
      to.lines.push_back({log_of(loader, role), std::move(tails[role])});
    }
  }
  return true;
}

}  // namespace lotus::tool
