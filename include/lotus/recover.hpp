// What processes that died left in their ring files.
#ifndef LOTUS_RECOVER_HPP
#define LOTUS_RECOVER_HPP

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/directory.hpp"
#include "lotus/drain.hpp"
#include "lotus/layout.hpp"
#include "lotus/line.hpp"
#include "lotus/lock.hpp"
#include "lotus/ring_file.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The ring file of a dead process, locked against everyone else who may want to recover it.
/// Whatever is in the file is checked before it is believed: it may be damaged.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,     ///< recovered and deleted by somebody else meanwhile, or not readable
    living,   ///< its process lives, or somebody recovers it at this moment
    damaged,  ///< not a ring file of this version
  };

  /// Opens `name` in `directory` (borrowed).
  /// @param writable  to append to the logs and delete it; otherwise only to read.
  state open(int directory, const char* name, bool writable) noexcept {
    fd_ = openat(directory, name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd_ < 0) return state::gone;
    if (flock(fd_, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) return state::living;
    struct stat status {};
    if (fstat(fd_, &status) != 0 || status.st_nlink == 0) return state::gone;
    bytes_ = static_cast<std::size_t>(status.st_size);
    if (bytes_ < sizeof(ring_file_header)) return state::damaged;
    // Private when only read: the process's commits are worked on, the file stays as it is.
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, writable ? MAP_SHARED : MAP_PRIVATE, fd_, 0);
    if (memory == MAP_FAILED) return state::gone;
    memory_ = static_cast<char*>(memory);
    return usable() && index_names() ? state::opened : state::damaged;
  }

  dead_ring_file() noexcept = default;
  dead_ring_file(const dead_ring_file&) = delete;
  dead_ring_file& operator=(const dead_ring_file&) = delete;
  ~dead_ring_file() {
    if (names_ != nullptr) munmap(names_, names_bytes_);
    if (memory_ != nullptr) munmap(memory_, bytes_);
    if (fd_ >= 0) close(fd_);
  }

  const ring_file_header& header() const noexcept {
    return *reinterpret_cast<const ring_file_header*>(memory_);
  }

  /// Calls `each(ring_block&)` for every ring that makes sense.
  template <class Each>
  void for_each_ring(Each&& each) noexcept {
    for_each_block([&](block_header& block) {
      if (block.kind.load(std::memory_order_relaxed) != block_kind::ring) return;
      auto& ring = reinterpret_cast<ring_block&>(block);
      if (block.bytes < sizeof(ring_block) || !sound(ring)) return;
      each(ring);
    });
  }

  /// The clock to convert the records with.
  tick_converter clock() const noexcept {
    return tick_converter{header().clocks[header().clock_index.load(std::memory_order_relaxed)],
                          nullptr};
  }

  /// How a line begins that has the name `id`.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id == 0 || id > name_count_ || names_[id - 1].data() == nullptr) return "Sname_lost,";
    return names_[id - 1];
  }

 private:
  bool usable() const noexcept {
    const ring_file_header& h = header();
    const std::uint32_t index = h.clock_index.load(std::memory_order_relaxed);
    return std::memcmp(h.magic, ring_file_magic, sizeof(h.magic)) == 0 &&
           h.layout == ring_file_layout && h.header_bytes >= sizeof(ring_file_header) &&
           h.header_bytes <= bytes_ && h.header_bytes % least_page_bytes == 0 &&
           std::memchr(h.prefix, '\0', sizeof(h.prefix)) != nullptr &&
           std::strchr(h.prefix, '/') == nullptr && index <= 1 && h.clocks[index].valid();
  }

  static bool sound(ring_block& ring) noexcept {
    const std::size_t capacity = ring.capacity;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return false;
    if (ring_block::bytes_for(capacity) > ring.header.bytes) return false;
    if (ring.commit_index.load(std::memory_order_relaxed) > 1) return false;
    const commit_point& c = ring.committed();
    return ring.published[0].load(std::memory_order_relaxed) - c.tail[0] <= capacity &&
           ring.published[1].load(std::memory_order_relaxed) - c.tail[1] <= interrupt_lane_records;
  }

  template <class Each>
  void for_each_block(Each&& each) noexcept {
    std::size_t at = header().header_bytes;
    while (bytes_ - at >= least_page_bytes) {
      auto& block = *reinterpret_cast<block_header*>(memory_ + at);
      if (block.kind.load(std::memory_order_relaxed) == block_kind::none) return;
      if (block.bytes < sizeof(block_header) || block.bytes > bytes_ - at ||
          block.bytes % least_page_bytes != 0) {
        return;
      }
      each(block);
      at += block.bytes;
    }
  }

  template <class Each>
  void for_each_name(Each&& each) noexcept {
    for_each_block([&](block_header& block) {
      if (block.kind.load(std::memory_order_relaxed) != block_kind::names) return;
      auto& names = reinterpret_cast<names_block&>(block);
      if (block.bytes < sizeof(names_block)) return;
      const std::size_t room = block.bytes - sizeof(names_block);
      const std::size_t used = names.used_bytes.load(std::memory_order_relaxed);
      std::size_t at = 0;
      while (used <= room && used - at >= sizeof(stored_name)) {
        stored_name head{};
        std::memcpy(&head, names.entries() + at, sizeof(head));
        if (head.bytes > used - at - sizeof(head) || head.bytes > max_line_name_bytes + 1) return;
        each(head.id, std::string_view{names.entries() + at + sizeof(head), head.bytes});
        at += padded_name_bytes(head.bytes);
        if (at > used) return;
      }
    });
  }

  bool index_names() noexcept {
    for_each_name([&](std::uint32_t, std::string_view) { ++name_count_; });
    if (name_count_ == 0) return true;
    names_bytes_ = name_count_ * sizeof(std::string_view);
    void* memory = map_memory(names_bytes_);
    if (memory == nullptr) return false;
    names_ = static_cast<std::string_view*>(memory);
    for_each_name([&](std::uint32_t id, std::string_view text) {
      if (id >= 1 && id <= name_count_) names_[id - 1] = text;
    });
    return true;
  }

  int fd_ = -1;
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::string_view* names_ = nullptr;  ///< by id - 1
  std::size_t names_bytes_ = 0;
  std::uint64_t name_count_ = 0;
};

struct recovery {
  std::uint64_t files = 0;    ///< dead ring files that were read to their end
  std::uint64_t records = 0;  ///< lines appended to the logs
  std::uint64_t living = 0;   ///< ring files left alone because their processes live
  std::uint64_t damaged = 0;  ///< ring files that could not be read
  int error = 0;              ///< errno of the first thing that failed, or 0
};

/// Appends to the logs what the rings of one dead process still hold, then deletes the ring file.
/// May be killed at any instant and run again: the commits in the file say how far it came.
inline void recover_file(int directory, const char* name, dead_ring_file& file, recovery& result,
                         drain_buffer& buffer) noexcept {
  int error = 0;
  file.for_each_ring([&](ring_block& ring) {
    open_logs opened;
    log_appender logs{directory, file.header().prefix, ring, opened};
    logs.undo_torn();
    const lane_heads heads{ring};
    const std::uint64_t before = heads.beyond(ring.committed());
    const auto names = [&](std::uint64_t id) { return file.line_start(id); };
    const int failed = drain_ring(ring, heads, file.clock(), names, logs, buffer);
    result.records += before - heads.beyond(ring.committed());
    if (failed != 0) error = failed;
    opened.close_all();
  });
  if (error == 0) {
    unlinkat(directory, name, 0);
    ++result.files;
  } else if (result.error == 0) {
    result.error = error;
  }
}

/// Deletes a ring file whose process died while making it, a minute ago or more: it holds nothing.
inline void delete_if_unfinished(int directory, const char* name) noexcept {
  const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  const bool abandoned = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 &&
                         time(nullptr) - status.st_mtime > 60;
  if (abandoned) unlinkat(directory, name, 0);
  close(fd);
}

/// Recovers every dead ring file in `directory` (borrowed).
/// @param prefix  only those of runs with this prefix; null: all.
inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery result;
  drain_buffer* buffer = nullptr;
  for_each_entry(directory, [&](const char* name) {
    if (std::strncmp(name, unfinished_ring_file_start, sizeof(unfinished_ring_file_start) - 1) ==
        0) {
      return delete_if_unfinished(directory, name);
    }
    if (std::strncmp(name, ring_file_start, sizeof(ring_file_start) - 1) != 0) return;
    dead_ring_file file;
    const dead_ring_file::state state = file.open(directory, name, true);
    if (state == dead_ring_file::state::living) ++result.living;
    if (state == dead_ring_file::state::damaged) ++result.damaged;
    if (state != dead_ring_file::state::opened) return;
    if (prefix != nullptr && std::strcmp(prefix, file.header().prefix) != 0) return;
    if (buffer == nullptr) buffer = static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
    if (buffer != nullptr) recover_file(directory, name, file, result, *buffer);
  });
  if (buffer != nullptr) munmap(buffer, sizeof(drain_buffer));
  return result;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECOVER_HPP
