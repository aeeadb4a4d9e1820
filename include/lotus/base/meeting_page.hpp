// Provides a memory page at a fixed address, through which the shared objects of a process find the
// library's common data.
#ifndef LOTUS_BASE_MEETING_PAGE_HPP
#define LOTUS_BASE_MEETING_PAGE_HPP

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A page with named pointers, by which the shared objects of a process find common data without
/// /proc and without a file. All versions of the library use this layout: if you change it, change
/// the constant `ours` too.
struct meeting_page {
  struct point {
    char name[56];
    alignas(8) unsigned char value[8];  ///< a std::atomic<T*>, initially null
  };
  static constexpr std::size_t bytes = 4096;
  static constexpr std::uint64_t ours = 0x3173'7574'6f6c'fe01;

  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> used;
  point points[(bytes - 16) / sizeof(point)];

  /// Returns the address at which the pointer with this name is stored; null if the page has no
  /// such name.
  void* find(std::string_view name) noexcept {
    const std::uint64_t count = used.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (name == points[i].name) return points[i].value;
    }
    return nullptr;
  }

  /// Adds a pointer with this name, and returns the address at which it is stored; null if the page
  /// is full. Only one thread at a time may call this function.
  void* add(std::string_view name) noexcept {
    const std::uint64_t count = used.load(std::memory_order_relaxed);
    if (count == sizeof(points) / sizeof(point) || name.size() >= sizeof(point::name)) {
      return nullptr;
    }
    std::memcpy(points[count].name, name.data(), name.size());
    used.store(count + 1, std::memory_order_release);
    return points[count].value;
  }
};
static_assert(sizeof(meeting_page) <= meeting_page::bytes);

/// Addresses at which the meeting page may be; it is created at the first of them that is free.
/// Every kernel can map these addresses, even with three levels of page tables, and
/// AddressSanitizer does not use them.
inline constexpr std::uintptr_t meeting_page_addresses[] = {0x21'4c4f'0000, 0x7a4f'0000,
                                                            0x2a4f'4c4f'0000};

/// Returns whether memory at this address can be read. Asks the kernel to read it, because reading
/// unmapped memory here would crash the program.
inline bool is_readable(const void* address) noexcept {
  unsigned char resident = 0;
  if (mincore(const_cast<void*>(address), 1, &resident) != 0) return false;
  // The system call fails in any case, because `no_request` is invalid. But the kernel first reads
  // the signal set at `address`, and reports EFAULT if it cannot.
  constexpr int no_request = -1;
  return syscall(SYS_rt_sigprocmask, no_request, address, nullptr, 8) != 0 && errno != EFAULT;
}

/// Returns the meeting page of this process; null if no page was created yet.
inline meeting_page* find_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    auto* page = reinterpret_cast<meeting_page*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (is_readable(page) && page->magic.load(std::memory_order_acquire) == meeting_page::ours) {
      return page;
    }
  }
  return nullptr;
}

/// Creates the meeting page of this process. Returns null if all addresses are in use, or if the
/// kernel (before 4.17) cannot report whether an address is in use. Only one thread at a time may
/// call this function.
inline meeting_page* make_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    void* wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    // The mapping is private, so a forked child gets a copy and does not share its parent's page.
    void* memory = mmap(wanted, meeting_page::bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) continue;
    if (memory == wanted) {
      auto* page = static_cast<meeting_page*>(memory);
      page->magic.store(meeting_page::ours, std::memory_order_release);
      return page;
    }
    munmap(memory, meeting_page::bytes);
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_MEETING_PAGE_HPP
