// Reads the ring file that a process left. All its contents are checked before they are used.
#ifndef LOTUS_RECOVERY_DEAD_RING_HPP
#define LOTUS_RECOVERY_DEAD_RING_HPP

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/line.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/recovery/ring_copy.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Whether a moment of CLOCK_MONOTONIC has passed; false if none is given.
inline bool is_over(std::optional<std::int64_t> until_ns) noexcept {
  return until_ns && clock_ns(CLOCK_MONOTONIC) > *until_ns;
}

/// The ring file of a dead process. While it is being recovered, it is locked against other
/// processes.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,           ///< another process has recovered and deleted it meanwhile
    living,         ///< its process is running
    busy,           ///< another process is recovering it at this moment
    damaged,        ///< not a ring file
    other_version,  ///< written by another version of the library
    refused,        ///< see error()
    doubted,        ///< some of its contents are damaged and exist nowhere else
  };

  /// Opens `name` in `directory` (borrowed).
  /// @param writable  to recover and delete it; otherwise only to read it.
  LOTUS_DETAIL_COLD state open(int directory, const char* name, bool writable,
                               const file_owners& owners) noexcept {
    fd_ = writable ? open_own(directory, name, O_RDWR, owners, status_)
                   : open_regular(directory, name, O_RDONLY, status_);
    if (fd_ < 0) return not_opened(directory, name);
    if (file_lock_is_taken(fd_, owner_lock_byte)) return state::living;
    if (writable) {
      error_ = take_file_lock(fd_, recovery_lock_byte);
      if (error_ != 0) return error_ == EAGAIN ? state::busy : state::refused;
    } else if (being_recovered()) {
      return state::busy;
    }
    if (fstat(fd_, &status_) != 0 || status_.st_nlink == 0) return state::gone;
    return check_header();
  }

  /// Opens the file for reading whether or not its process runs. Changes that the process makes
  /// meanwhile may be seen in part.
  state open_any(int directory, const char* name, const file_owners& owners) noexcept {
    fd_ = open_own(directory, name, O_RDONLY, owners, status_);
    if (fd_ >= 0) return check_header();
    error_ = -fd_;
    return error_ == ENOENT ? state::gone : state::refused;
  }

  dead_ring_file() noexcept = default;
  dead_ring_file(const dead_ring_file&) = delete;
  dead_ring_file& operator=(const dead_ring_file&) = delete;
  ~dead_ring_file() {
    if (header_ != nullptr) munmap(header_, sizeof(ring_file_header));
    if (fd_ >= 0) close(fd_);
  }

  /// Why the file was refused; file_error_text() knows it.
  int error() const noexcept { return error_; }
  const ring_file_header& header() const noexcept { return *header_; }
  const struct stat& status() const noexcept { return status_; }
  int descriptor() const noexcept { return fd_; }

  /// Whether another process has recovered the file since it was opened for reading, or is doing
  /// so.
  bool being_recovered() const noexcept {
    struct stat now {};
    return file_lock_is_taken(fd_, recovery_lock_byte) || fstat(fd_, &now) != 0 ||
           now.st_nlink == 0;
  }

  /// Finds rings, names and aggregates up to the first damaged block. Ignores what exceeds the
  /// limits of a real process.
  /// @param until_ns  of CLOCK_MONOTONIC; none: unlimited.
  /// @return 0, ENOMEM, or ETIME if the time was exceeded.
  LOTUS_DETAIL_COLD int read_blocks(std::optional<std::int64_t> until_ns = {}) noexcept {
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    std::uint64_t at = header_->header_bytes;
    for (std::size_t blocks = 0; size - at >= least_page_bytes; ++blocks) {
      block_header block{};
      const bool read = read_at(fd_, static_cast<void*>(&block), sizeof(block), at);
      const block_kind kind = block.kind.load(std::memory_order_relaxed);
      if (read && kind == block_kind::none) return 0;
      if (!read || block.bytes < least_page_bytes || block.bytes > size - at ||
          block.bytes % least_page_bytes != 0) {
        damaged_ = true;
        return 0;
      }
      if (blocks == most_blocks) {
        too_much_ = true;
        return 0;
      }
      if (is_over(until_ns)) return ETIME;
      switch (kind) {
        case block_kind::ring: {
          auto* place = static_cast<ring_place*>(rings_.add(sizeof(ring_place)));
          if (place == nullptr) return ENOMEM;
          *place = {at, block.bytes};
          break;
        }
        case block_kind::aggregates: {
          auto* place = static_cast<ring_place*>(aggregates_.add(sizeof(ring_place)));
          if (place == nullptr) return ENOMEM;
          *place = {at, block.bytes};
          break;
        }
        case block_kind::names:
          if (!read_names(at, block.bytes)) {
            damaged_ = true;
            return 0;
          }
          break;
        default:
          damaged_ = true;
          return 0;
      }
      at += block.bytes;
    }
    return 0;
  }

  /// Calls `each(ring_copy&)` for every valid ring.
  /// @return how many rings are damaged completely or in part; all blocks that were ignored count
  /// as one.
  std::uint64_t for_each_ring(function_ref<void(ring_copy&)> each) noexcept {
    std::uint64_t doubted = too_much_ || damaged_ ? 1 : 0;
    ring_copy copy;
    for (std::size_t i = 0; i < rings_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(rings_.data())[i];
      const bool sound = copy.copy(fd_, place.at, place.bytes);
      if (sound) each(copy);
      if (!sound || copy.doubted()) ++doubted;
    }
    return doubted;
  }

  /// Calls `each(at, bytes)` for every block of aggregates.
  void for_each_aggregates_block(
      function_ref<void(std::uint64_t at, std::uint64_t bytes)> each) const noexcept {
    for (std::size_t i = 0; i < aggregates_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(aggregates_.data())[i];
      each(place.at, place.bytes);
    }
  }

  /// The clock to convert the records with.
  tick_converter clock() const noexcept { return tick_converter{clocks(), nullptr}; }
  const clock_map& clocks() const noexcept {
    return header_->clocks[header_->clock_index.load(std::memory_order_relaxed) & 1];
  }

  /// Whether its logs are compact.
  bool compact() const noexcept { return (header_->flags & compact_flag) != 0; }

  /// The beginning of a line with the name `id`.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id == unnamed_id) return unnamed_line_start;
    if (id == 0 || id > names_.bytes() / sizeof(name_place)) return lost_line_start;
    const name_place& n = reinterpret_cast<const name_place*>(names_.data())[id - 1];
    return {text_.data() + n.at, n.bytes};
  }
  name_lookup names() const noexcept {
    return {this, [](const void* file, std::uint64_t id) noexcept {
              return static_cast<const dead_ring_file*>(file)->line_start(id);
            }};
  }

 private:
  struct ring_place {
    std::uint64_t at;
    std::uint64_t bytes;
  };
  struct name_place {
    std::uint32_t at;  ///< position in text_
    std::uint32_t bytes;
  };
  /// Maximum number of blocks. Each ring of a running process is a mapping next to its thread's
  /// stack, and Linux allows a process 65,530 mappings.
  static constexpr std::size_t most_blocks = std::size_t{1} << 16;
  /// Maximum size of all names: 300,000 of the longest ones, or as many usual ones as a process can
  /// have.
  static constexpr std::size_t most_text_bytes = std::size_t{256} << 20;
  /// The library's blocks are smaller; a larger one is not read.
  static constexpr std::size_t most_names_block_bytes = std::size_t{1} << 20;

  /// A file that cannot be written may still belong to a running process.
  state not_opened(int directory, const char* name) noexcept {
    error_ = -fd_;
    if (error_ == ENOENT) return state::gone;
    fd_ = open_regular(directory, name, O_RDONLY, status_);
    if (fd_ >= 0 && file_lock_is_taken(fd_, owner_lock_byte)) return state::living;
    return state::refused;
  }

  LOTUS_DETAIL_COLD state check_header() noexcept {
    header_ = static_cast<ring_file_header*>(map_memory(sizeof(ring_file_header)));
    if (header_ == nullptr) {
      error_ = ENOMEM;
      return state::refused;
    }
    const ring_file_header& h = *header_;
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    if (!read_at(fd_, static_cast<void*>(header_), offsetof(ring_file_header, pid), 0) ||
        std::memcmp(h.magic, ring_file_magic, sizeof(h.magic)) != 0) {
      return state::damaged;
    }
    if (h.layout != ring_file_layout) return state::other_version;
    if (!read_at(fd_, static_cast<void*>(header_), sizeof(ring_file_header), 0)) {
      return state::damaged;
    }
    const std::uint32_t index = h.clock_index.load(std::memory_order_relaxed);
    const bool usable = h.layout == ring_file_layout &&
                        h.header_bytes >= sizeof(ring_file_header) && h.header_bytes <= size &&
                        h.header_bytes % least_page_bytes == 0 && is_prefix(h.prefix) &&
                        index <= 1 && h.clocks[index].valid();
    return usable ? state::opened : state::damaged;
  }

  /// Whether `prefix` is a plain file name, as it precedes "_main_pid_1".
  static bool is_prefix(const char (&prefix)[max_prefix_bytes + 1]) noexcept {
    const void* const end = std::memchr(prefix, '\0', sizeof(prefix));
    if (end == nullptr || end == prefix) return false;
    for (const char* c = prefix; c != end; ++c) {
      if (*c == '/' || static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    }
    return true;
  }

  /// Returns false if the block is damaged: names are numbered consecutively, and a name that
  /// occurs again must be the same.
  LOTUS_DETAIL_COLD bool read_names(std::uint64_t at, std::uint64_t bytes) noexcept {
    std::uint64_t used = 0;
    if (bytes > most_names_block_bytes ||
        !read_at(fd_, &used, sizeof(used), at + offsetof(names_block, used_bytes)) ||
        used > bytes - sizeof(names_block)) {
      return false;
    }
    growing_memory block;
    void* const copy = block.add(static_cast<std::size_t>(used) + 1);
    if (copy == nullptr || !read_at(fd_, copy, used, at + sizeof(names_block))) return false;
    for (std::uint64_t i = 0; used - i >= sizeof(stored_name);) {
      if (names_.bytes() / sizeof(name_place) == name_table::limit ||
          text_.bytes() > most_text_bytes) {
        too_much_ = true;
        return true;
      }
      stored_name head{};
      std::memcpy(&head, block.data() + i, sizeof(head));
      if (head.bytes > used - i - sizeof(head)) return false;
      const std::string_view text{block.data() + i + sizeof(head), head.bytes};
      const std::size_t known = names_.bytes() / sizeof(name_place);
      const bool again = head.id >= 1 && head.id <= known;
      if (again ? text != line_start(head.id) : head.id != known + 1 || !add_name(text)) {
        return false;
      }
      i += padded_name_bytes(head.bytes);
      if (i > used) return false;
    }
    return true;
  }

  /// Escapes a name that the library did not write itself.
  bool add_name(std::string_view start) noexcept {
    char line[max_line_name_bytes + 1];
    if (!is_line_start(start)) {
      const std::size_t bytes = write_line_name(start, line);
      line[bytes] = ',';
      start = {line, bytes + 1};
    }
    auto* place = static_cast<name_place*>(names_.add(sizeof(name_place)));
    void* const text = text_.add(start.size());
    if (place == nullptr || text == nullptr) return false;
    std::memcpy(text, start.data(), start.size());
    *place = {static_cast<std::uint32_t>(text_.bytes() - start.size()),
              static_cast<std::uint32_t>(start.size())};
    return true;
  }

  int fd_ = -1;
  int error_ = 0;
  struct stat status_ {};
  ring_file_header* header_ = nullptr;
  growing_memory rings_;       ///< of ring_place
  growing_memory aggregates_;  ///< of ring_place
  growing_memory names_;       ///< of name_place, by id - 1
  growing_memory text_;
  bool too_much_ = false;
  bool damaged_ = false;  ///< a block and everything after it were ignored
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_RING_HPP
