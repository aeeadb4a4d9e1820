// How all shared objects of one process find the one session.
//
// Neither an inline variable nor dlsym finds it when objects are built with hidden visibility and
// the program exports nothing. So the first object to ask puts a hub into a mapping with a name
// that everyone can see in /proc/self/maps.
#ifndef LOTUS_PROCESS_HPP
#define LOTUS_PROCESS_HPP

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/loader.hpp"
#include "lotus/lock.hpp"
#include "lotus/options.hpp"
#include "lotus/record.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct producer;
struct module_state;

/// lotus::options without the std::string, which objects may have been built with different ones
/// of.
struct start_request {
  const char* log_file;
  std::size_t log_file_bytes;
  full_ring when_full;
  std::uint32_t ring_records;
  std::uint32_t drain_interval_ms;
  std::size_t backlog_bytes;
  void (*on_message)(const char*);
};

/// What the session does for the objects that share it. The code is that of the object which made
/// the hub; it is never unloaded.
struct services {
  producer* (*this_thread)() noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;
  bool (*start)(const start_request&) noexcept;
  void (*stop)() noexcept;
  void (*flush)() noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// A shared object wants to know from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins, and ends, on a profiler's timeline; only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  void (*end_task)() noexcept;
};

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,    ///< this object has not asked yet
  annotated = 3,  ///< scopes show on a profiler's timeline too, and are logged if recording is on
};

/// What one shared object knows of the session.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
  ~module_state() {
    if (const services* s = hub.load(std::memory_order_acquire)) s->leave(*this);
  }
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Makes the session and returns its services; session.hpp.
LOTUS_DETAIL_PER_MODULE const services* make_services() noexcept;

/// Bump the number whenever services, start_request, module_state, producer or record change.
inline constexpr char hub_name[] = "lotus-hub-2-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// The address of the mapping called `name` of this process, or null. Allocates nothing.
inline void* find_mapping(const char* name) noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  char text[8192];
  std::size_t held = 0;
  void* found = nullptr;
  ssize_t got = 0;
  while (found == nullptr && (got = read(fd, text + held, sizeof(text) - 1 - held)) > 0) {
    held += static_cast<std::size_t>(got);
    text[held] = '\0';
    char* line = text;
    while (char* end = static_cast<char*>(
               std::memchr(line, '\n', held - static_cast<std::size_t>(line - text)))) {
      *end = '\0';
      if (std::strstr(line, name) != nullptr && std::strstr(line, "/memfd:") != nullptr) {
        found = reinterpret_cast<void*>(strtoull(line, nullptr, 16));
        break;
      }
      line = end + 1;
    }
    held -= static_cast<std::size_t>(line - text);
    if (held == sizeof(text) - 1) held = 0;  // one absurdly long line
    std::memmove(text, line, held);
  }
  close(fd);
  return found;
}

struct hub_page {
  std::atomic<const services*> table;
};

/// The hub of the process, made if there is none. Runs under the loader's lock, which all objects
/// share, so two threads never make two.
LOTUS_DETAIL_PER_MODULE inline int find_or_make_hub(dl_phdr_info*, std::size_t,
                                                    void* result) noexcept {
  auto* table = static_cast<const services**>(result);
  if (void* page = find_mapping(hub_name)) {
    *table = static_cast<hub_page*>(page)->table.load(std::memory_order_acquire);
    return 1;
  }
  *table = make_services();
  const int fd = memfd_create(hub_name, MFD_CLOEXEC);
  if (fd < 0) return 1;  // every object keeps a session for itself then
  if (ftruncate(fd, sizeof(hub_page)) == 0) {
    // Private: a forked child has the hub too, but not its parent's.
    void* page = mmap(nullptr, sizeof(hub_page), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (page != MAP_FAILED) {
      static_cast<hub_page*>(page)->table.store(*table, std::memory_order_release);
    }
  }
  close(fd);
  return 1;
}

/// The session's services; makes the session at the first call of the process.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline const services& join_session(
    bool environment_counts) noexcept {
  module_state& m = this_module;
  const services* s = m.hub.load(std::memory_order_acquire);
  if (s != nullptr && m.mode.load(std::memory_order_relaxed) != recording::unknown) return *s;
  const signals_blocked quiet;
  if (s == nullptr) iterate_objects(find_or_make_hub, static_cast<void*>(&s));
  s->join(m, environment_counts);
  return *s;
}

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Whether this object's scopes have to be measured.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void begin_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).begin_task(tag);
}
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void end_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).end_task();
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_PROCESS_HPP
