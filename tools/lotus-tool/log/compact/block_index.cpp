#include "log/compact/block_index.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <lotus/folder/log_appender.hpp>
#include <lotus/format/compact_layout.hpp>
#include <lotus/recovery/ring_copy.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/files/found_file.hpp"
#include "log/folder/log_files.hpp"
#include "log/window/time_window.hpp"

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

}  // namespace lotus::tool
