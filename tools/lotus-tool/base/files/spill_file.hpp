// What memory shall not hold.
#ifndef LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP
#define LOTUS_TOOL_BASE_FILES_SPILL_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

namespace lotus::tool {

/// A file without a name, in the folder that TMPDIR names, else in /var/tmp, which is on a disk
/// also where /tmp is memory. It is gone with its last byte's owner, however that ends. Made when
/// it is first needed. Thread-safe.
class spill_file {
 public:
  spill_file() = default;
  spill_file(const spill_file&) = delete;
  spill_file& operator=(const spill_file&) = delete;
  ~spill_file();

  /// Where the bytes stand; none where they could not be written, as when the disk is full.
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
