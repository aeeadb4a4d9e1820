#include "log/compact/block_index.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <lotus/folder/log_appender.hpp>
#include <lotus/format/compact_layout.hpp>
#include <utility>

#include "base/files/found_file.hpp"
#include "log/compact/compact_reader.hpp"
#include "lotus/format/compact_layout.hpp"

namespace lotus::tool {
namespace {

using lotus::detail::compact_block_header;

bool is_header(const compact_block_header& header) noexcept {
  return std::memcmp(header.magic, lotus::detail::compact_block_magic, sizeof(header.magic)) == 0 &&
         header.bytes >= sizeof(header) && header.bytes <= lotus::detail::max_append_bytes;
}

class block_times final : public log_times {
 public:
  explicit block_times(std::vector<indexed_block> blocks, std::uint64_t bytes)
      : blocks_(std::move(blocks)), bytes_(bytes) {}

  seen_times seen() const override {
    seen_times all;
    std::int64_t last_ns = INT64_MIN;
    for (const indexed_block& b : blocks_) {
      all.first_ns = std::min(all.first_ns, b.first_ns);
      all.last_ns = std::max(all.last_ns, b.last_ns);
      all.longest_ns = std::max(all.longest_ns, b.base_ns - b.first_ns);
      if (b.last_ns < last_ns) all.back_ns = std::max(all.back_ns, last_ns - b.last_ns);
      last_ns = std::max(last_ns, b.last_ns);
    }
    return all;
  }

  std::int64_t last_ns() const override {
    return blocks_.empty() ? INT64_MIN : blocks_.back().last_ns;
  }

  std::uint64_t begin_for(std::int64_t time_ns) const override {
    const auto first =
        std::find_if(blocks_.begin(), blocks_.end(),
                     [time_ns](const indexed_block& b) { return b.last_ns >= time_ns; });
    std::uint64_t begin = first == blocks_.end() ? bytes_ : 0;
    for (auto b = blocks_.begin(); first != blocks_.end() && b <= first; ++b) {
      if (b->anew) begin = b->byte;
    }
    return begin;
  }
  std::uint64_t end_for(std::int64_t time_ns) const override {
    std::uint64_t end = 0;
    for (const indexed_block& b : blocks_) {
      if (b.base_ns <= time_ns) end = b.byte + b.bytes;
    }
    return end;
  }
  std::optional<std::int64_t> time_at(std::uint64_t byte) const override {
    const auto at = std::find_if(blocks_.begin(), blocks_.end(),
                                 [byte](const indexed_block& b) { return b.byte >= byte; });
    return at == blocks_.end() ? std::nullopt : std::optional(at->base_ns);
  }

 private:
  std::vector<indexed_block> blocks_;
  std::uint64_t bytes_;
};

}  // namespace

std::optional<std::vector<indexed_block>> index_blocks(const log_file& file) {
  std::vector<indexed_block> blocks;
  if (file.bytes == 0) return blocks;
  const int fd = open_found(file.path);
  std::uint64_t at = 0;
  compact_block_header header{};
  // Threads that record little write small blocks, so several headers lie close together. Read 16
  // KiB at a time to get these headers with one system call.
  std::vector<char> read(std::size_t{16} << 10U);
  std::uint64_t begin = 0;
  std::size_t used = 0;
  while (at < file.bytes) {
    if (at < begin || at + sizeof(header) > begin + used) {
      begin = at;
      used = std::min<std::uint64_t>(read.size(), file.bytes - at);
      if (used < sizeof(header) || !lotus::detail::read_at(fd, read.data(), used, at)) break;
    }
    std::memcpy(&header, read.data() + (at - begin), sizeof(header));
    if (!is_header(header) || header.bytes > file.bytes - at) break;
    blocks.push_back({at, header.base_ns, header.first_ns, header.last_ns, header.bytes,
                      header.roles, (header.flags & lotus::detail::compact_begins_anew) != 0});
    at += header.bytes;
  }
  ::close(fd);
  return at == file.bytes ? std::optional(std::move(blocks)) : std::nullopt;
}

std::unique_ptr<log_times> times_of_blocks(const log_file& file) {
  std::optional<std::vector<indexed_block>> blocks = index_blocks(file);
  if (!blocks) return nullptr;
  return std::make_unique<block_times>(std::move(*blocks), file.bytes);
}

namespace {

/// Returns for which roles (main, worker and side log) a compact log has records: a bit for each
/// log_role. Reads the whole log and verifies the checksums.
unsigned roles_read(const log_file& file) {
  compact_reader blocks(file);
  lotus::detail::compact_block_header header{};
  unsigned roles = 0;
  while (!blocks.next(header).empty()) roles |= header.roles;
  return roles;
}

/// Returns the same as roles_read(), but reads only headers if no bytes lie between the blocks.
unsigned roles_in(const log_file& file) {
  if (!file.older.empty()) return roles_read(file);
  const std::optional<std::vector<indexed_block>> blocks = index_blocks(file);
  // A block counts as valid if another header follows exactly where its own header says that it
  // ends. If the file has only one block, no header follows, so roles_read() must verify its
  // checksum.
  if (!blocks || blocks->size() < 2) return roles_read(file);
  unsigned roles = 0;
  for (const indexed_block& block : *blocks) roles |= block.roles;
  return roles;
}

}  // namespace

void take_compact_apart(std::vector<log_file>& files, diagnostic_log& diagnostics) {
  std::vector<log_file> roles;
  for (const log_file& file : files) {
    if (file.role != file_role::compact) continue;
    const unsigned found = roles_in(file);
    if (found == 0 && (file.bytes > 0 || !file.older.empty())) {
      diagnostics.warning(
          file.path +
          ": ignored: it contains no valid block; it is damaged, or written by another version");
    }
    for (const lotus::detail::log_role role :
         {lotus::detail::log_role::main, lotus::detail::log_role::worker,
          lotus::detail::log_role::side}) {
      if ((found >> static_cast<unsigned>(role) & 1U) == 0) continue;
      log_file& one = roles.emplace_back(file);
      one.role = file_role_of(role);
      one.compact = true;
      const auto in_ring = std::find_if(files.begin(), files.end(), [&](const log_file& other) {
        return other.role == one.role && other.number == one.number && other.bytes == 0 &&
               other.older.empty();
      });
      if (in_ring == files.end()) continue;
      one.tail = std::move(in_ring->tail);
      // `in_ring` stands for a text log that is not on disk and has only lines from a dead
      // process's ring. These lines now belong to `one`, so `in_ring` is not needed any more. Its
      // new role `compact` makes the code below remove it from `files`.
      in_ring->role = file_role::compact;
    }
  }
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const log_file& file) { return file.role == file_role::compact; }),
              files.end());
  std::move(roles.begin(), roles.end(), std::back_inserter(files));
}

}  // namespace lotus::tool
