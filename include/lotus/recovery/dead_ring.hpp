// Reads the ring file of a process that has died, to recover its records. All contents are checked
// before they are used, because the file may be damaged or may come from another user.
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

/// Returns whether a time limit, in ns of CLOCK_MONOTONIC, has passed; false if there is no limit.
inline bool is_over(std::optional<std::int64_t> until_ns) noexcept {
  return until_ns && clock_ns(CLOCK_MONOTONIC) > *until_ns;
}

/// The ring file of a dead process. A lock on the file keeps other processes from recovering it at
/// the same time.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,           ///< the file does not exist; another process may have recovered and deleted it
    running,        ///< the process that writes the file is running
    busy,           ///< another process is recovering the file
    damaged,        ///< the file does not begin with the header of a ring file
    other_version,  ///< another version of the library wrote the file
    refused,        ///< the file cannot be opened safely; see error()
    doubted,        ///< parts of the file are damaged, so it is kept after recovery
  };

  /// Opens the file `name` in `directory` (borrowed).
  /// @param writable  true to recover and delete the file; false to only read it.
  LOTUS_DETAIL_COLD state open(int directory, const char* name, bool writable,
                               const file_owners& owners) noexcept {
    fd_ = writable ? open_own(directory, name, O_RDWR, owners, status_)
                   : open_regular(directory, name, O_RDONLY, status_);
    if (fd_ < 0) return not_opened(directory, name);
    if (file_lock_is_taken(fd_, owner_lock_byte)) return state::running;
    if (writable) {
      error_ = take_file_lock(fd_, recovery_lock_byte);
      if (error_ != 0) return error_ == EAGAIN ? state::busy : state::refused;
    } else if (being_recovered()) {
      return state::busy;
    }
    if (fstat(fd_, &status_) != 0 || status_.st_nlink == 0) return state::gone;
    return check_header();
  }

  /// Opens the file for reading, even if its process is still running. If that process changes the
  /// file meanwhile, the reader may see only some of the changes.
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

  /// The error for which open() returned state::refused; file_error_text() can describe it.
  int error() const noexcept { return error_; }
  const ring_file_header& header() const noexcept { return *header_; }
  const struct stat& status() const noexcept { return status_; }
  int descriptor() const noexcept { return fd_; }

  /// Whether another process is recovering the file, or has recovered it since this object opened
  /// it.
  bool being_recovered() const noexcept {
    struct stat now {};
    return file_lock_is_taken(fd_, recovery_lock_byte) || fstat(fd_, &now) != 0 ||
           now.st_nlink == 0;
  }

  /// Reads the names in the file, and finds the rings and aggregates, up to the first damaged
  /// block. Ignores further blocks and names if there are more than a process can have.
  /// @param until_ns  time limit, in ns of CLOCK_MONOTONIC; none: no limit.
  /// @return 0, ENOMEM, or ETIME if the time limit was reached.
  LOTUS_DETAIL_COLD int read_blocks(std::optional<std::int64_t> until_ns = {}) noexcept {
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    std::uint64_t at = header_->header_bytes;
    for (std::size_t blocks = 0; size - at >= min_page_bytes; ++blocks) {
      block_header block{};
      const bool read = read_at(fd_, static_cast<void*>(&block), sizeof(block), at);
      const block_kind kind = block.kind.load(std::memory_order_relaxed);
      if (read && kind == block_kind::none) return 0;
      if (!read || block.bytes < min_page_bytes || block.bytes > size - at ||
          block.bytes % min_page_bytes != 0) {
        damaged_ = true;
        return 0;
      }
      if (blocks == max_blocks) {
        limit_exceeded_ = true;
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

  /// Calls `each(ring_copy&)` for every ring that can be copied.
  /// @return number of rings of which at least a part is damaged; all blocks that read_blocks()
  /// ignored count as one.
  std::uint64_t for_each_ring(function_ref<void(ring_copy&)> each) noexcept {
    std::uint64_t doubted = limit_exceeded_ || damaged_ ? 1 : 0;
    ring_copy copy;
    for (std::size_t i = 0; i < rings_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(rings_.data())[i];
      const bool sound = copy.copy(fd_, place.at, place.bytes);
      if (sound) each(copy);
      if (!sound || copy.doubted()) ++doubted;
    }
    return doubted;
  }

  /// Calls `each(at, bytes)` with the file position and size of every block of aggregates.
  void for_each_aggregates_block(
      function_ref<void(std::uint64_t at, std::uint64_t bytes)> each) const noexcept {
    for (std::size_t i = 0; i < aggregates_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(aggregates_.data())[i];
      each(place.at, place.bytes);
    }
  }

  /// Returns the converter from the records' ticks to time.
  tick_converter clock() const noexcept { return tick_converter{clocks(), nullptr}; }
  const clock_map& clocks() const noexcept {
    return header_->clocks[header_->clock_index.load(std::memory_order_relaxed) & 1];
  }

  /// Whether the process's logs are in the compact format.
  bool compact() const noexcept { return (header_->flags & compact_flag) != 0; }

  /// Returns the start of a log line, "S<name>,", for the name with this id.
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
  /// Maximum number of blocks. A process cannot have more: Linux allows it 65,530 mappings by
  /// default, and each ring needs one for itself and one for the stack of its thread.
  static constexpr std::size_t max_blocks = std::size_t{1} << 16;
  /// Maximum size of all names together: enough for 300,000 names of maximum length, or for
  /// name_table::limit names of usual length.
  static constexpr std::size_t max_text_bytes = std::size_t{256} << 20;
  /// Maximum size of a block of names. The library creates only smaller blocks.
  static constexpr std::size_t max_names_block_bytes = std::size_t{1} << 20;

  /// Determines why the file could not be opened for writing. To find out whether the file's
  /// process is running, opens the file for reading, for which this process may have permission.
  state not_opened(int directory, const char* name) noexcept {
    error_ = -fd_;
    if (error_ == ENOENT) return state::gone;
    fd_ = open_regular(directory, name, O_RDONLY, status_);
    if (fd_ >= 0 && file_lock_is_taken(fd_, owner_lock_byte)) return state::running;
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
                        h.header_bytes % min_page_bytes == 0 && is_prefix(h.prefix) && index <= 1 &&
                        h.clocks[index].valid();
    return usable ? state::opened : state::damaged;
  }

  /// Whether `prefix` can begin a file name: it is not empty and has no '/' or control characters.
  static bool is_prefix(const char (&prefix)[max_prefix_bytes + 1]) noexcept {
    const void* const end = std::memchr(prefix, '\0', sizeof(prefix));
    if (end == nullptr || end == prefix) return false;
    for (const char* c = prefix; c != end; ++c) {
      if (*c == '/' || static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    }
    return true;
  }

  /// Reads a block of names. Returns false if the block is damaged: ids must be consecutive, and an
  /// id that occurs again must have the same name.
  LOTUS_DETAIL_COLD bool read_names(std::uint64_t at, std::uint64_t bytes) noexcept {
    std::uint64_t used = 0;
    if (bytes > max_names_block_bytes ||
        !read_at(fd_, &used, sizeof(used), at + offsetof(names_block, used_bytes)) ||
        used > bytes - sizeof(names_block)) {
      return false;
    }
    growing_memory block;
    void* const copy = block.add(static_cast<std::size_t>(used) + 1);
    if (copy == nullptr || !read_at(fd_, copy, used, at + sizeof(names_block))) return false;
    for (std::uint64_t i = 0; used - i >= sizeof(stored_name);) {
      if (names_.bytes() / sizeof(name_place) == name_table::limit ||
          text_.bytes() > max_text_bytes) {
        limit_exceeded_ = true;
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

  /// Adds a name, in the form of the start of a line. Escapes it if it does not have that form,
  /// because then the file is damaged.
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
  growing_memory rings_;       ///< array of ring_place
  growing_memory aggregates_;  ///< array of ring_place
  growing_memory names_;       ///< array of name_place, indexed by id - 1
  growing_memory text_;
  bool limit_exceeded_ = false;
  bool damaged_ = false;  ///< whether a damaged block, and everything after it, was ignored
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_RING_HPP
