// Copies one ring of a dead process's ring file to private memory, a limited number of records at a
// time.
//
// Any user who may write to the directory could have created the file, and could change or shorten
// it while it is being read. So the file is not mapped into memory: each byte is read only once,
// and only the copy is checked and used.
#ifndef LOTUS_RECOVERY_RING_COPY_HPP
#define LOTUS_RECOVERY_RING_COPY_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy of one ring, with at most window_records of its records at a time.
class ring_copy {
 public:
  static constexpr std::size_t window_records = 4096;

  ring_copy() noexcept = default;
  ring_copy(const ring_copy&) = delete;
  ring_copy& operator=(const ring_copy&) = delete;
  ~ring_copy() {
    if (ring_ != nullptr) munmap(ring_, ring_block::bytes_for(window_records));
  }

  /// Copies the ring at position `at` of the file, except for the records of its main lane, which
  /// fetch() copies. Returns false if the ring is damaged or if there is no memory.
  /// @param bytes  size of the ring's block.
  bool copy(int fd, std::uint64_t at, std::uint64_t bytes) noexcept {
    if (ring_ == nullptr) {
      ring_ = static_cast<ring_block*>(map_memory(ring_block::bytes_for(window_records)));
    }
    if (ring_ == nullptr || bytes < sizeof(ring_block)) return false;
    if (!read_at(fd, static_cast<void*>(ring_), sizeof(ring_block), at)) return false;
    fd_ = fd;
    at_ = at;
    doubted_ = false;
    capacity_ = ring_->capacity;
    if (capacity_ == 0 || (capacity_ & (capacity_ - 1)) != 0) return false;
    if (ring_block::bytes_for(capacity_) > bytes) return false;
    if (ring_->commit_index.load(std::memory_order_relaxed) > 1) return false;
    ring_->capacity = window_records;
    for (log_position& log : ring_->commits[ring_->commit_index.load()].logs) {
      // Reads the member `appending` as a byte, because in a damaged file this byte may not be a
      // valid bool.
      unsigned char appending = 0;
      std::memcpy(&appending, &log.appending, 1);
      log.appending = appending != 0;
    }
    const commit_point& c = ring_->committed();
    head_ = ring_->published[0].load(std::memory_order_relaxed);
    const std::uint64_t interrupt_head = ring_->published[1].load(std::memory_order_relaxed);
    if (head_ - c.tail[0] > capacity_ || interrupt_head - c.tail[1] > interrupt_lane_records) {
      return false;
    }
    std::uint64_t good = c.tail[1];
    while (good != interrupt_head && has_known_kind(ring_->slot(1, good))) ++good;
    if (good != interrupt_head) doubt(good);
    ring_->published[1].store(good, std::memory_order_relaxed);
    ring_->published[0].store(c.tail[0], std::memory_order_relaxed);
    return true;
  }

  /// Copies the next records of the main lane that are not in the logs yet. Returns false if no
  /// records are left in either lane.
  bool fetch() noexcept {
    const std::uint64_t at = ring_->committed().tail[0];
    const std::uint64_t in_window = window_records - (at & (window_records - 1));
    const std::uint64_t in_file = capacity_ - (at & (capacity_ - 1));
    std::uint64_t count = head_ - at < in_window ? head_ - at : in_window;
    if (count > in_file) count = in_file;
    const std::uint64_t first = at_ + sizeof(ring_block) + (at & (capacity_ - 1)) * sizeof(record);
    std::uint64_t good = at;
    if (count > 0 && read_at(fd_, &ring_->slot(0, at), count * sizeof(record), first)) {
      while (good != at + count && has_known_kind(ring_->slot(0, good))) ++good;
    }
    if (good != at + count) doubt(good);
    ring_->published[0].store(good, std::memory_order_relaxed);
    return good != at || left() > 0;
  }

  ring_block& ring() noexcept { return *ring_; }
  std::uint64_t file_offset() const noexcept { return at_; }
  /// Returns how many of the ring's records are not in the logs yet, without those that are ignored
  /// (see doubted()).
  std::uint64_t left() const noexcept {
    const commit_point& c = ring_->committed();
    return (head_ - c.tail[0]) + (ring_->published[1].load(std::memory_order_relaxed) - c.tail[1]);
  }
  /// Whether a record of the ring cannot be read or has an unknown kind. That record and all later
  /// ones are ignored.
  bool doubted() const noexcept { return doubted_; }

 private:
  static bool has_known_kind(const record& r) noexcept {
    return kind_of(r.tag).kind != event_kind::none;
  }

  void doubt(std::uint64_t good) noexcept {
    doubted_ = true;
    // No record of the ring after the first invalid one is used.
    const std::uint64_t tail = ring_->committed().tail[0];
    head_ = good - tail <= head_ - tail ? good : tail;
  }

  ring_block* ring_ = nullptr;
  int fd_ = -1;
  std::uint64_t at_ = 0;
  std::uint64_t capacity_ = 0;  ///< number of records that the ring in the file can hold
  std::uint64_t head_ = 0;
  bool doubted_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RING_COPY_HPP
