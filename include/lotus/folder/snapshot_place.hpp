// Determines the folder in which snapshots of a run are stored, and the names of snapshots.
#ifndef LOTUS_FOLDER_SNAPSHOT_PLACE_HPP
#define LOTUS_FOLDER_SNAPSHOT_PLACE_HPP

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/descriptor.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines where the snapshots of one run are stored. Snapshots of the run directory "run" are
/// stored next to it, as run.snapshot-<UTC>-<reason>. If the run directory is the program's working
/// directory, snapshots are stored in it, and their names begin with the logs' prefix. Snapshots
/// sorted by name are also sorted by time.
class snapshot_place {
 public:
  /// @param directory  descriptor of the run's directory, borrowed.
  snapshot_place(int directory, const log_location& run) noexcept {
    const char* const slash = std::strrchr(run.directory, '/');
    const char* name = slash == nullptr ? run.directory : slash + 1;
    const bool inside =
        *name == '\0' || std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
    parent_ = open_at_high_fd(directory, inside ? "." : "..", O_RDONLY | O_DIRECTORY);
    if (parent_ < 0) error_ = errno;
    std::snprintf(start_, sizeof(start_), "%.150s%s", inside ? run.prefix : name, between);
  }
  snapshot_place(const snapshot_place&) = delete;
  snapshot_place& operator=(const snapshot_place&) = delete;
  ~snapshot_place() {
    if (parent_ >= 0) close(parent_);
  }

  /// Returns 0, or the errno with which opening the folder for snapshots failed.
  int error() const noexcept { return error_; }
  int parent() const noexcept { return parent_; }

  /// Whether a folder with this name is a snapshot of this run, complete or incomplete.
  bool is_one(const char* name) const noexcept {
    const std::size_t bytes = std::strlen(start_);
    return std::strncmp(name, start_, bytes) == 0 && is_time(name + bytes);
  }

  /// Writes the name of a new snapshot to `out`: "<run>.snapshot-20261123T101500.123456Z-<reason>".
  /// If `attempt` is not 0, adds a number, because earlier attempts found that the name exists.
  void put_name(char* out, std::size_t bytes, std::string_view reason, std::int64_t ns,
                unsigned attempt) const noexcept {
    const time_t seconds = ns / 1'000'000'000;
    struct tm utc {};
    gmtime_r(&seconds, &utc);
    char when[32];
    strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &utc);
    const auto us = static_cast<unsigned>(ns / 1000 % 1'000'000);
    char why[max_reason_bytes + 1] = {};
    for (std::size_t i = 0; i < reason.size() && i < sizeof(why) - 1; ++i) {
      const char c = reason[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
      why[i] = plain ? c : '-';
    }
    char again[16] = "";
    if (attempt > 0) std::snprintf(again, sizeof(again), "-%u", attempt + 1);
    std::snprintf(out, bytes, "%s%s.%06uZ-%s%s", start_, when, us, why, again);
  }

  static constexpr char between[] = ".snapshot-";
  static constexpr std::size_t max_reason_bytes = 64;

  /// Whether `text` begins with a time such as "20261123T101500.123456Z-".
  static bool is_time(const char* text) noexcept {
    for (const char form : std::string_view{"ddddddddTdddddd.ddddddZ-"}) {
      const char c = *text++;
      if (form == 'd' ? c < '0' || c > '9' : c != form) return false;
    }
    return true;
  }

 private:
  int parent_ = -1;
  int error_ = 0;
  char start_[192] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_SNAPSHOT_PLACE_HPP
