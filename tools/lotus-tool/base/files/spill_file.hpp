// Provides a temporary file for data that does not fit into memory.
#ifndef LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace lotus::tool {

/// A file without a name, which disappears when its process ends for any reason. The first put()
/// creates the file in the folder that TMPDIR names, otherwise in /var/tmp, which is usually on
/// disk even if /tmp is in memory. Thread-safe.
class spill_file {
 public:
  spill_file() = default;
  spill_file(const spill_file&) = delete;
  spill_file& operator=(const spill_file&) = delete;
  ~spill_file();

  /// Writes `bytes` and returns their position in the file. Returns nullopt if writing fails, for
  /// example because the disk is full.
  std::optional<std::uint64_t> put(std::string_view bytes);
  /// Reads bytes that put() has written at position `at`. Throws input_error when reading fails.
  void get(std::uint64_t at, char* to, std::size_t bytes) const;

 private:
  bool is_open();

  std::mutex mutex_;
  int descriptor_ = -1;     // guarded by mutex_ until the file is open
  bool failed_ = false;     // guarded by mutex_
  std::uint64_t used_ = 0;  // guarded by mutex_
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP
