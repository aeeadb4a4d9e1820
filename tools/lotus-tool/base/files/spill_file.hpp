// Keeps data on disk that is too large for memory.
#ifndef LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace lotus::tool {

/// A file without a name, in the folder that TMPDIR names, else in /var/tmp, which is on a disk
/// even if /tmp is in memory. It disappears when its owner ends, for whatever reason. Created when
/// it is first needed. Thread-safe.
class spill_file {
 public:
  spill_file() = default;
  spill_file(const spill_file&) = delete;
  spill_file& operator=(const spill_file&) = delete;
  ~spill_file();

  /// Returns the position of the bytes; nullopt if they could not be written, for example because
  /// the disk is full.
  std::optional<std::uint64_t> put(std::string_view bytes);
  /// Throws input_error when reading fails.
  void get(std::uint64_t at, char* to, std::size_t bytes) const;

 private:
  bool is_open();

  std::mutex mutex_;
  int descriptor_ = -1;     // guarded by mutex_ until it is open
  bool failed_ = false;     // guarded by mutex_
  std::uint64_t used_ = 0;  // guarded by mutex_
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP
