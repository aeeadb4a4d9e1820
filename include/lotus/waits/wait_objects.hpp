// Numbers the objects for which threads wait, such as files and locks, so that a file of waits
// needs to describe each object only once.
#ifndef LOTUS_WAITS_WAIT_OBJECTS_HPP
#define LOTUS_WAITS_WAIT_OBJECTS_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include "lotus/base/build_id.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/base/mappings.hpp"
#include "lotus/config.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Lines that are collected here and then written to a file together.
template <std::size_t Bytes>
struct text_lines {
  char text[Bytes];
  std::size_t bytes = 0;

  /// Appends a line, or nothing if there is not enough space. Returns whether it was appended.
  template <class... Values>
  bool add(const char* format, Values... values) noexcept {
    const std::size_t room = sizeof(text) - bytes;
    const int n = std::snprintf(text + bytes, room, format, values...);
    if (n <= 0 || static_cast<std::size_t>(n) >= room) return false;
    bytes += static_cast<std::size_t>(n);
    return true;
  }
};

using wait_lines = text_lines<5120>;

/// The objects that the file of waits already describes. Not thread-safe. Trivially destructible.
class wait_objects {
 public:
  /// Returns the number of the object that this text describes. If the object is new, also adds the
  /// line that defines it to `to`.
  std::uint32_t of_text(std::string_view text, wait_lines& to) noexcept {
    if (text.empty()) return 0;
    known& place = find(hash(text));
    if (place.key != 0) return place.id;
    add(place, hash(text));
    to.add("object,%u,%.*s\n", place.id, static_cast<int>(text.size()), text.data());
    return place.id;
  }

  /// Returns the number of the global variable at this address. If the variable is new, also adds
  /// the line that defines it to `to`. Returns 0 if there is no such variable, or if there were too
  /// many lookups, which are slow: at most 16 at once and one more every 2 s.
  std::uint32_t of_variable(std::uint64_t address, wait_lines& to) noexcept {
    known& place = find(address);
    if (place.key != 0) return place.id;
    if (!may_look_up()) return 0;
    char path[4096];
    const std::uint64_t base = module_of(address, path);
    if (base == 0) {
      place = {address, 0};
      ++count_;
      return 0;
    }
    add(place, address);
    to.add("variable,%u,%llx,%llx,%s\n", place.id, static_cast<unsigned long long>(address),
           static_cast<unsigned long long>(base), path);
    const build_id id = mapped_build_id(base);
    if (*id.digits != '\0') {
      to.add("build,%u,%s\n", place.id, static_cast<const char*>(id.digits));
    }
    return place.id;
  }

  /// Forgets all objects, so that each is defined again when it is next used.
  void forget() noexcept {
    // Pages that nothing was written to take no memory.
    if (count_ > 0) std::memset(static_cast<void*>(places_), 0, sizeof(places_));
    count_ = 0;
    lookups_ = {};
  }

  /// Describes in `text` the file of a descriptor: by a path, "pipe:[4711]", or the peer of a
  /// socket. Returns the length; 0 if the descriptor is closed.
  static std::size_t describe(int fd, char* text, std::size_t room) noexcept {
    char link[48];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t got = readlink(link, text, room - 1);
    std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
    text[bytes] = '\0';
    if (std::strncmp(text, "socket:", 7) == 0) {
      const std::size_t peer = describe_peer(fd, text, room);
      if (peer > 0) bytes = peer;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
      if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) text[i] = '?';
    }
    return bytes;
  }

 private:
  static constexpr std::size_t capacity = 1024;
  static constexpr std::uint32_t max_lookups = 16;

  /// Limits lookups of variables.
  struct lookup_limit {
    std::uint32_t used = 0;
    std::int64_t since_ns = 0;  ///< when `used` was last decreased (CLOCK_MONOTONIC)
  };

  struct known {
    std::uint64_t key = 0;  ///< hash of a text, or address; 0: free
    std::uint32_t id = 0;
  };

  static std::uint64_t hash(std::string_view text) noexcept {
    std::uint64_t sum = 14695981039346656037ULL;  // the hash is FNV-1a
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return sum | 1;  // odd, unlike the address of a futex, which is a multiple of 4
  }

  known& find(std::uint64_t key) noexcept {
    if (count_ >= capacity / 2) {
      const lookup_limit lookups = lookups_;
      forget();
      lookups_ = lookups;
    }
    auto at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 54);
    while (places_[at].key != 0 && places_[at].key != key) at = (at + 1) % capacity;
    return places_[at];
  }

  /// Counts a lookup if the limit allows it. The first lookups of a recording find the locks that
  /// its threads use most, so the limit allows max_lookups of them without a pause.
  bool may_look_up() noexcept {
    constexpr std::int64_t between_ns = 2'000'000'000;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - lookups_.since_ns >= between_ns) {
      if (lookups_.used > 0 && lookups_.since_ns != 0) --lookups_.used;
      lookups_.since_ns = now_ns;
    }
    if (lookups_.used == max_lookups) return false;
    ++lookups_.used;
    return true;
  }

  void add(known& place, std::uint64_t key) noexcept {
    place = {key, ++last_id_};
    ++count_;
  }

  static std::size_t describe_peer(int fd, char* text, std::size_t room) noexcept {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return 0;
    char name[INET6_ADDRSTRLEN] = "";
    int port = 0;
    if (peer.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
      inet_ntop(AF_INET, &v4.sin_addr, name, sizeof(name));
      port = ntohs(v4.sin_port);
    } else if (peer.ss_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
      inet_ntop(AF_INET6, &v6.sin6_addr, name, sizeof(name));
      port = ntohs(v6.sin6_port);
    } else {
      return 0;
    }
    const int n = std::snprintf(text, room, "%s port %d", name, port);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  /// Finds the program or shared object that has a variable at this address, and writes its path to
  /// `path`. Returns the address at which the file is mapped; 0 if no such file is found.
  static std::uint64_t module_of(std::uint64_t address, char (&path)[4096]) noexcept {
    std::uint64_t base = 0;
    std::uint64_t last_end = 0;
    bool found = false;
    bool has_code = false;  // whether a part of the file at `path` is mapped as code
    path[0] = '\0';
    for_each_mapping([&](std::string_view line) {
      char head[64] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      unsigned long long begin = 0;
      unsigned long long end = 0;
      char permissions[5] = "";
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %4s", &begin, &end, permissions) != 3) return false;
      const std::string_view of = mapped_path(line);
      if (!of.empty() && of != path && of.size() < sizeof(path)) {
        std::memcpy(path, of.data(), of.size());
        path[of.size()] = '\0';
        base = begin;
        has_code = false;
      } else if (of.empty() && (begin != last_end || line.find('[') != std::string_view::npos)) {
        // Variables without an initial value are in memory without a file, directly after the
        // mappings of the file. Any other memory without a file belongs to no module.
        base = 0;
        path[0] = '\0';
      }
      has_code = has_code || permissions[2] == 'x';
      last_end = end;
      found = address >= begin && address < end;
      return found;
    });
    // Mapped files without code, such as a ring file, have no variables.
    return found && has_code ? base : 0;
  }

  known places_[capacity] = {};
  std::size_t count_ = 0;
  std::uint32_t last_id_ = 0;
  lookup_limit lookups_{};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_OBJECTS_HPP
