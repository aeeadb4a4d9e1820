// Writes and parses the names of logs. If the size of logs is limited, a log that has grown too
// long is renamed: it becomes a part, whose name contains the time, and a new log begins.
#ifndef LOTUS_FOLDER_LOG_PARTS_HPP
#define LOTUS_FOLDER_LOG_PARTS_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Size of a buffer for the longest log name and its terminating zero.
inline constexpr std::size_t log_name_bytes = max_prefix_bytes + 72;

/// Writes the name of a log to `out` (log_name_bytes): "<prefix>_<main|worker>_pid_<number>", or
/// for hidden logs ".lotus_beside_<prefix>_pid_<number>" (side log) or
/// ".lotus_compact_<prefix>_pid_<number>". The name of a part has "_part<k>" after the prefix.
/// @param compact  whether the hidden log is a compact log, the thread's only log.
/// @param part     time at which the part was completed, in ms since the Unix epoch; 0 if the log
///   still grows.
inline void put_log_name(char* out, std::size_t bytes, const char* prefix, log_role role,
                         bool compact, std::uint32_t number, std::uint64_t part = 0) noexcept {
  char which[32] = "";
  if (part != 0) {
    std::snprintf(which, sizeof(which), "_part%llu", static_cast<unsigned long long>(part));
  }
  const bool hidden = role == log_role::side;
  const char* const start = !hidden ? "" : compact ? compact_log_start : side_log_start;
  const char* const kind = hidden ? "" : role == log_role::main ? "_main" : "_worker";
  std::snprintf(out, bytes, "%s%s%s%s_pid_%u", start, prefix, which, kind, number);
}

/// The largest time in ms since the Unix epoch that fits into 64 bits as ns.
inline constexpr std::uint64_t max_part_ms = INT64_MAX / 1'000'000 - 1;

/// The components of a log's name.
struct log_name {
  log_role role = log_role::side;
  bool compact = false;  ///< whether it is a compact log, the only log of its thread
  /// Time at which the part was completed, in ms since the Unix epoch; 0 if the log still grows.
  std::uint64_t part = 0;
  std::size_t part_at = 0;      ///< position of "_part<k>" in the name
  std::size_t part_length = 0;  ///< length of "_part<k>"
  std::uint64_t number = 0;     ///< the number at the end of the name

  /// Parses a file name. Returns false if it is not the name of a log with this prefix.
  LOTUS_DETAIL_COLD bool parse(const char* name, const char* prefix) noexcept {
    *this = log_name{};
    const char* p = name;
    compact = take(p, compact_log_start);
    const bool hidden = compact || take(p, side_log_start);
    if (!take(p, prefix)) return false;
    const char* const behind_prefix = p;
    if (take(p, "_part") && take_number(p, part) && part != 0 && part <= max_part_ms) {
      part_at = static_cast<std::size_t>(behind_prefix - name);
      part_length = static_cast<std::size_t>(p - behind_prefix);
    } else {
      part = 0;
      p = behind_prefix;
    }
    if (!hidden) {
      if (take(p, "_main")) {
        role = log_role::main;
      } else if (take(p, "_worker")) {
        role = log_role::worker;
      } else {
        return false;
      }
    }
    return take(p, "_pid_") && take_number(p, number) && *p == '\0';
  }

 private:
  static bool take(const char*& p, const char* text) noexcept {
    const std::size_t bytes = std::strlen(text);
    if (std::strncmp(p, text, bytes) != 0) return false;
    p += bytes;
    return true;
  }

  /// Reads a number of at most 18 digits at `p`, and moves `p` to the character after the number.
  /// Returns false if there is no digit at `p`.
  static bool take_number(const char*& p, std::uint64_t& value) noexcept {
    const char* const first = p;
    for (value = 0; *p >= '0' && *p <= '9' && p - first < 18; ++p) {
      value = value * 10 + static_cast<std::uint64_t>(*p - '0');
    }
    return p != first;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_PARTS_HPP
