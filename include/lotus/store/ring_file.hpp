// Provides the ring file: a file mapping from which the rings, names and clock of a process can be
// read after the process has died.
#ifndef LOTUS_STORE_RING_FILE_HPP
#define LOTUS_STORE_RING_FILE_HPP

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/store/run/run_directory.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Makes the file system rewrite the blocks of an empty file in place. Returns false if it cannot:
/// then a rewritten page of a mapping needs a new block, and without one the program dies by
/// SIGBUS.
LOTUS_DETAIL_COLD inline bool rewrite_in_place(int fd) noexcept {
  // Numbers of linux/magic.h and linux/fs.h, which older systems lack or which define too much.
  constexpr unsigned btrfs = 0x9123683E;
  constexpr unsigned bcachefs = 0xCA451A4E;
  constexpr unsigned zfs = 0x2FC12FC1;
  constexpr unsigned long get_flags = _IOR('f', 1, long);
  constexpr unsigned long set_flags = _IOW('f', 2, long);
  constexpr int no_copy_on_write = 0x00800000;
  struct statfs disk {};
  const auto type = fstatfs(fd, &disk) == 0 ? static_cast<unsigned>(disk.f_type) : 0;
  if (type == bcachefs || type == zfs) return false;
  if (type != btrfs) return true;
  int flags = 0;
  if (ioctl(fd, get_flags, &flags) != 0) return false;
  flags |= no_copy_on_write;
  if (ioctl(fd, set_flags, &flags) != 0) return false;
  // Before Linux 6.16, btrfs reserves a new block even if it then rewrites the old one.
  struct utsname is {};
  if (uname(&is) != 0) return false;
  char* after_major = nullptr;
  const long major = std::strtol(is.release, &after_major, 10);
  const long minor = *after_major == '.' ? std::strtol(after_major + 1, nullptr, 10) : 0;
  return major > 6 || (major == 6 && minor >= 16);
}

/// This process's ring file. A file lock on owner_lock_byte shows other processes that this process
/// is running; the kernel releases the lock when the process ends or execs. Without the file,
/// blocks are private memory. Callers hold the lock of run_files. Trivially destructible.
class ring_file {
 public:
  /// Creates the file in the directory `in`, which is borrowed and must outlive this object.
  /// Returns 0 or errno.
  /// @param name_ns  number in the file's name, the same as in the name of the information file.
  /// @param began_ns  start of this recording, in ns of CLOCK_REALTIME.
  LOTUS_DETAIL_COLD int create(run_directory& in, unsigned long long name_ns, const char* prefix,
                               mode_t mode, std::uint32_t flags, const clock_map& clock,
                               std::uint64_t began_ns) noexcept {
    directory_ = &in;
    const int directory = in.descriptor();
    if (directory < 0) return -directory;
    char unfinished[96];
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(name_, sizeof(name_), "%s%u_%llx", ring_file_start, pid, name_ns);
    std::snprintf(unfinished, sizeof(unfinished), "%s%u_%llx", unfinished_ring_file_start, pid,
                  name_ns);
    struct stat status {};
    // Only the owner may write to the file: if others truncated it, this process would die by
    // SIGBUS.
    constexpr mode_t others_write = 022;
    const int fd = open_regular(directory, unfinished, O_RDWR | O_CREAT | O_EXCL, status,
                                mode & ~others_write);
    if (fd < 0) return -fd;
    file_ = {fd, status};
    unshares_ = true;
    int error = rewrite_in_place(fd) ? take_file_lock(fd, owner_lock_byte) : EOPNOTSUPP;
    bytes_ = reserved_ = 0;
    void* header = error == 0 ? map_more(to_file_blocks(sizeof(ring_file_header)), error) : nullptr;
    if (header != nullptr) {
      header_ = static_cast<ring_file_header*>(header);
      fill_header(prefix, flags);
      header_->began_ns = began_ns;
      store_clock(clock);
      // Recovery looks for the new name, so only a complete file gets that name.
      if (renameat(directory, unfinished, directory, name_) != 0) error = errno;
    }
    if (error != 0) {
      unlinkat(directory, unfinished, 0);
      forget();
    }
    return error;
  }

  bool exists() const noexcept { return header_ != nullptr; }

  /// Returns a new ring block for the thread `tid`; null if there is no memory. If the file cannot
  /// grow, the block is a small ring in the spare space or, if that is used up, private memory.
  /// @param error  set to 0 if the block is in the file; otherwise to the errno of the reason.
  ring_block* add_ring(std::uint32_t tid, std::uint32_t capacity, bool may_be_small,
                       int& error) noexcept {
    if (ring_block* const whole = add_whole_ring(tid, capacity, error)) return whole;
    std::size_t bytes = to_file_blocks(ring_block::bytes_for(min_ring_records));
    void* const spare = may_be_small ? map_spare(bytes, error) : nullptr;
    if (spare != nullptr) return make_ring(spare, bytes, tid, min_ring_records);
    bytes = to_file_blocks(ring_block::bytes_for(capacity));
    return make_ring(map_memory(bytes), bytes, tid, capacity);
  }

  /// Returns a new ring block in the file; null if the file cannot grow.
  ring_block* add_whole_ring(std::uint32_t tid, std::uint32_t capacity, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(capacity));
    error = ENOENT;
    void* const memory = exists() ? map_more(bytes, error) : nullptr;
    return make_ring(memory, bytes, tid, capacity);
  }

  /// Returns a new block for aggregates; see add_ring().
  /// @param chain  number of the chain of blocks to which the block belongs; each thread has one
  /// chain.
  aggregates_block* add_aggregates(std::uint32_t tid, std::uint32_t chain, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(aggregates_block_bytes);
    error = ENOENT;
    void* memory = exists() ? map_more(bytes, error) : nullptr;
    if (memory == nullptr) memory = map_memory(bytes);
    if (memory == nullptr) return nullptr;
    auto* block = static_cast<aggregates_block*>(memory);
    block->chain = chain;
    block->threads.store(1, std::memory_order_relaxed);
    block->tid.store(tid, std::memory_order_relaxed);
    block->header.bytes = bytes;
    block->header.kind.store(block_kind::aggregates, std::memory_order_release);
    return block;
  }

  /// Copies a ring's records before `heads` to the file. Returns false if the file cannot grow.
  bool add_copy(ring_block& from, const lane_heads& heads) noexcept {
    if (!exists()) return false;
    int error = 0;
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(from.capacity));
    void* const grown = map_more(bytes, error);
    auto* ring = static_cast<ring_block*>(grown != nullptr ? grown : map_spare(bytes, error));
    if (ring == nullptr) return false;
    ring->tid.store(from.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring->capacity = from.capacity;
    copy_records(from, heads, *ring);
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    munmap(ring, bytes);
    return true;
  }

  /// Unmaps a ring. Its block stays in the file.
  static void unmap(ring_block* ring) noexcept { munmap(ring, ring->header.bytes); }

  /// Lets the thread store its next records without page faults: the kernel delays the first store
  /// to a page of a file, also after each time when it has written the page to the disk. Does
  /// nothing for few records, because most threads do not fill their rings.
  static void make_writable(ring_block& ring, std::uint64_t records) noexcept {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
    if (records * sizeof(record) < min_page_bytes) return;
    const std::uint64_t at = ring.published[0].load(std::memory_order_relaxed);
    const std::uint64_t first = at & (ring.capacity - 1);
    const bool wraps = first + records > ring.capacity;
    const record* const begin = ring.slots() + (wraps ? 0 : first);
    const record* const end = ring.slots() + (wraps ? ring.capacity : first + records);
    const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(begin) & ~(page_bytes - 1);
    const int error = errno;
    madvise(reinterpret_cast<void*>(from), reinterpret_cast<std::uintptr_t>(end) - from,
            populate_write);
    errno = error;
  }

  /// Replaces a ring's mapping by zeroed private memory at the same address.
  static void replace(ring_block* ring) noexcept {
    static_cast<void>(mmap(ring, ring->header.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  }

  /// Stores the names that were added since the last call. Returns false if the file cannot grow.
  LOTUS_DETAIL_COLD bool store_names(const name_table& names) noexcept {
    if (!exists()) return false;
    while (names_stored_ < names.size()) {
      const std::string_view text = names.entry(names_stored_ + 1).line_start();
      const std::size_t bytes = padded_name_bytes(text.size());
      if (names_left_ < bytes && !add_names_block()) return false;
      const std::uint64_t used = names_->used_bytes.load(std::memory_order_relaxed);
      const stored_name head{names_stored_ + 1, static_cast<std::uint32_t>(text.size())};
      std::memcpy(names_->entries() + used, &head, sizeof(head));
      std::memcpy(names_->entries() + used + sizeof(head), text.data(), text.size());
      names_->used_bytes.store(used + bytes, std::memory_order_release);
      names_left_ -= bytes;
      ++names_stored_;
    }
    return true;
  }
  std::uint32_t names_stored() const noexcept { return names_stored_; }

  /// Gives the file blocks of its own again if it shares them with a copy (cp --reflink), because a
  /// rewritten page would otherwise need a new block. Returns 0 or errno. Does nothing where the
  /// file system does not offer that, or less than half a second after the last call.
  int unshare_blocks() noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (!exists() || !unshares_ || now_ns - unshared_ns_ < 500'000'000 || !file_.holds()) return 0;
    unshared_ns_ = now_ns;
    const int how = FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(file_.number(), how, 0, static_cast<off_t>(bytes_)) == 0) return 0;
    unshares_ = errno == ENOSPC || errno == EDQUOT;
    return unshares_ ? errno : 0;
  }

  void store_clock(const clock_map& clock) noexcept {
    if (!exists()) return;
    const std::uint32_t next = 1 - header_->clock_index.load(std::memory_order_relaxed);
    header_->clocks[next] = clock;
    header_->clock_index.store(next, std::memory_order_release);
  }

  /// Closes the file. The rings stay mapped, because their threads may be writing to them.
  /// @param keep  whether the file stays on the disk, because it contains records that are not in
  /// the logs.
  /// @param complete  whether no more records are stored, so that others may recover these records.
  void finish(bool keep, bool complete) noexcept {
    if (!exists()) return;
    const int directory = directory_->descriptor();
    if (complete && file_.holds()) release_file_lock(file_.number(), owner_lock_byte);
    if (!keep && directory >= 0) unlinkat(directory, name_, 0);
    forget();
  }

  /// Closes the file, but does not delete it: a forked child does so with its parent's file.
  void forget() noexcept {
    file_.close();
    if (header_ != nullptr) munmap(header_, header_->header_bytes);
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    *this = ring_file{};
  }

 private:
  static constexpr std::size_t names_block_bytes = std::size_t{64} << 10;
  /// Enough for the aggregates of ten names with durations within a factor of ten each.
  static constexpr std::size_t aggregates_block_bytes = std::size_t{16} << 10;
  /// Disk space at the end of the file that is reserved in advance for what the file still needs
  /// when the disk is full: new names, and small rings for threads that start then. With pages of
  /// 4 KiB, it suffices for 64 threads, or 32 and several thousand names.
  static constexpr std::size_t spare_bytes = std::size_t{256} << 10;

  static ring_block* make_ring(void* memory, std::size_t bytes, std::uint32_t tid,
                               std::uint32_t capacity) noexcept {
    auto* const ring = static_cast<ring_block*>(memory);
    if (ring == nullptr) return nullptr;
    ring->tid.store(tid, std::memory_order_relaxed);
    ring->capacity = capacity;
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    return ring;
  }

  /// Extends the file and maps the new pages, whose disk space is reserved: otherwise, storing a
  /// record in them would crash with SIGBUS if the disk is full. The spare space after the new
  /// pages is extended to spare_bytes, or stays as large as it was.
  LOTUS_DETAIL_COLD void* map_more(std::size_t bytes, int& error) noexcept {
    error = file_.holds() ? 0 : reopen();
    if (error == 0 && reserve_up_to(bytes_ + bytes + spare_bytes) != 0) {
      error = reserve_up_to(reserved_ + bytes);
    }
    return error == 0 ? map_reserved(bytes, error) : nullptr;
  }

  /// Maps pages of the spare space. Returns null, without a change of `error`, if it is too small.
  LOTUS_DETAIL_COLD void* map_spare(std::size_t bytes, int& error) noexcept {
    if (!exists() || bytes_ + bytes > reserved_) return nullptr;
    error = file_.holds() ? 0 : reopen();
    return error == 0 ? map_reserved(bytes, error) : nullptr;
  }

  /// Reserves disk space for the first `end` bytes of the file. Returns 0 or errno.
  int reserve_up_to(std::size_t end) noexcept {
    const int error = end <= reserved_ ? 0 : reserve(file_.number(), reserved_, end - reserved_);
    if (error == 0 && end > reserved_) reserved_ = end;
    return error;
  }

  void* map_reserved(std::size_t bytes, int& error) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        file_.number(), static_cast<off_t>(bytes_));
    if (memory == MAP_FAILED) {
      error = errno;
      return nullptr;
    }
    bytes_ += bytes;
    return memory;
  }

  /// Reopens the file after the program has closed the descriptor. Returns 0 or errno. The owner's
  /// lock is still held, because the mapped header keeps the file's first open file description
  /// alive.
  int reopen() noexcept {
    const int directory = directory_->descriptor();
    if (directory < 0) return -directory;
    struct stat status {};
    const int fd = open_regular(directory, name_, O_RDWR, status);
    if (fd < 0) return -fd;
    if (!file_.file().is(status)) {
      close(fd);
      return ESTALE;
    }
    file_ = {fd, status};
    return 0;
  }

  void fill_header(const char* prefix, std::uint32_t flags) noexcept {
    ring_file_header& h = *header_;
    h.layout = ring_file_layout;
    h.header_bytes = static_cast<std::uint32_t>(bytes_);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.flags = flags;
    std::snprintf(h.version, sizeof(h.version), "%s", LOTUS_DETAIL_VERSION_STRING);
    std::snprintf(h.prefix, sizeof(h.prefix), "%s", prefix);
    std::memcpy(h.magic, ring_file_magic, sizeof(h.magic));
  }

  bool add_names_block() noexcept {
    int error = 0;
    void* memory = map_more(names_block_bytes, error);
    if (memory == nullptr) memory = map_spare(names_block_bytes, error);
    if (memory == nullptr) return false;
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    names_ = static_cast<names_block*>(memory);
    names_->header.bytes = names_block_bytes;
    names_->header.kind.store(block_kind::names, std::memory_order_release);
    names_left_ = names_block_bytes - sizeof(names_block);
    return true;
  }

  run_directory* directory_ = nullptr;
  owned_descriptor file_;
  char name_[64] = {};
  ring_file_header* header_ = nullptr;
  std::size_t bytes_ = 0;  ///< size of the header and all blocks
  bool unshares_ = true;   ///< whether unshare_blocks() may have an effect
  std::int64_t unshared_ns_ = 0;
  std::size_t reserved_ = 0;  ///< size of the file; the bytes after bytes_ are the spare space
  names_block* names_ = nullptr;
  std::size_t names_left_ = 0;
  std::uint32_t names_stored_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RING_FILE_HPP
