// Parts of a log that were renamed while it was written, as by logrotate.
#ifndef LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP
#define LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct gzFile_s;

namespace lotus::tool {

/// "<log>.3" or "<log>.3.gz", as named by logrotate, or "<prefix>_part<time>_worker_pid_7", as
/// named by a program with limits.
struct older_part {
  std::string path;
  std::uint64_t age = 0;    ///< a higher number is older
  bool packed = false;      ///< with gzip
  std::uint64_t bytes = 0;  ///< number of the file's bytes that count
};

/// The components of an older part's name.
struct older_part_name {
  std::string log;  ///< name of the log that it was part of
  std::uint64_t age;
  bool packed;
};

/// Returns nullopt if `name` does not have the form of a part's name. With a name in logrotate's
/// form, the caller must check whether `log` is the name of a log.
std::optional<older_part_name> older_part_name_of(std::string_view name, std::string_view prefix);

/// Reads one part. Throws input_error if it cannot be opened. `part` must outlive the reader.
class older_part_reader {
 public:
  explicit older_part_reader(const older_part& part);
  older_part_reader(const older_part_reader&) = delete;
  older_part_reader& operator=(const older_part_reader&) = delete;
  ~older_part_reader();

  /// Reads the next bytes, unpacked; returns 0 at the end. Throws input_error if reading fails or
  /// the file is a gzip bomb.
  std::size_t read(char* to, std::size_t room);

 private:
  std::size_t read_plain(char* to, std::size_t room);
  std::size_t read_packed(char* to, std::size_t room);

  const older_part& part_;
  int descriptor_ = -1;
  gzFile_s* unpacked_ = nullptr;
  std::uint64_t done_ = 0;  // bytes of the file
  std::uint64_t unpacked_bytes_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP
