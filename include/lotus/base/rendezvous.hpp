// Lets all shared objects of one process find an object that exists only once in the process.
//
// If shared objects are built with hidden visibility and the program exports nothing, neither an
// inline variable nor dlsym can find that object. So the first shared object that needs the object
// stores its address in a page at a known address or, if that page is not available, in a mapping
// whose name is visible in /proc/self/maps.
#ifndef LOTUS_BASE_RENDEZVOUS_HPP
#define LOTUS_BASE_RENDEZVOUS_HPP

#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/mappings.hpp"
#include "lotus/base/meeting_page.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The place where shared objects store and find the address of a T. The address is null until one
/// is stored. The T is never destroyed.
template <class T>
using meeting_point = std::atomic<T*>;

/// Returns the address of this process's memory mapping with this name, or null.
LOTUS_DETAIL_COLD inline void* find_named_mapping(std::string_view name) noexcept {
  void* found = nullptr;
  for_each_mapping([&](std::string_view line) {
    const std::string_view path = mapped_path(line);
    if (path.rfind("/memfd:", 0) != 0 || path.find(name) == std::string_view::npos) return false;
    found =
        reinterpret_cast<void*>(strtoull(line.data(), nullptr, 16));  // the address ends at the '-'
    return true;
  });
  return found;
}

/// Creates a mapping with this name and closes its descriptor immediately. Returns null if this
/// fails, or if the mapping does not appear in /proc/self/maps.
inline void* make_named_mapping(const char* name, std::size_t bytes) noexcept {
  const int fd = move_to_high_fd(memfd_create(name, MFD_CLOEXEC));
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (lengthen(fd, bytes) == 0) {
    // The mapping is private, so a forked child gets a copy of its parent's mapping.
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  if (find_named_mapping(name) == memory) return memory;
  munmap(memory, bytes);
  return nullptr;
}

/// Returns this process's meeting point with this name; null if there is none. Allocates nothing.
template <class T>
meeting_point<T>* find_meeting_point(std::string_view name) noexcept {
  meeting_page* page = find_meeting_page();
  void* found = page != nullptr ? page->find(name) : nullptr;
  return static_cast<meeting_point<T>*>(found != nullptr ? found : find_named_mapping(name));
}

/// Returns the meeting point `name`, and creates it if there is none. Returns null if it cannot be
/// created.
template <class T>
meeting_point<T>* find_or_make_meeting_point(const char* name) noexcept {
  static_assert(sizeof(meeting_point<T>) == sizeof(meeting_page::point::value));
  if (meeting_point<T>* found = find_meeting_point<T>(name)) return found;
  meeting_page* page = find_meeting_page();
  if (page == nullptr) page = make_meeting_page();
  void* made = page != nullptr ? page->add(name) : nullptr;
  if (made == nullptr) made = make_named_mapping(name, sizeof(meeting_point<T>));
  return static_cast<meeting_point<T>*>(made);
}

/// Finds or creates the meeting point `name`, and calls `use(meeting_point<T>*)` with it, or with
/// null if it cannot be created. Holds the dynamic loader's lock, which is common to all shared
/// objects, so that no two threads create a meeting point at the same time.
template <class T, class Use>
LOTUS_DETAIL_PER_MODULE void meet_at(const char* name, Use use) noexcept {
  struct request {
    const char* name;
    Use& use;
  } asked{name, use};
  iterate_objects(
      [](dl_phdr_info*, std::size_t, void* from) {
        auto& asking = *static_cast<request*>(from);
        asking.use(find_or_make_meeting_point<T>(asking.name));
        return 1;
      },
      &asked);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_RENDEZVOUS_HPP
