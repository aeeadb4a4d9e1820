// Parts of a log that were moved out of the way while it was written, as logrotate does.
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

/// "<log>.3" or "<log>.3.gz", as logrotate names them; or "<prefix>_part<time>_worker_pid_7", as a
/// program with limits does.
struct older_part {
  std::string path;
  std::uint64_t age = 0;    ///< a higher one is older
  bool packed = false;      ///< with gzip
  std::uint64_t bytes = 0;  ///< what counts of the file
};

/// What the name of an older part is made of.
struct older_part_name {
  std::string log;  ///< name of the log that it was
  std::uint64_t age;
  bool packed;
};

/// None where `name` has not the form of one; whether `log` is a log's is looked at only where it
/// is no name of logrotate's.
std::optional<older_part_name> older_part_name_of(std::string_view name, std::string_view prefix);

/// Reads one part. Throws input_error when it cannot be opened. `part` must outlive the reader.
class older_part_reader {
 public:
  explicit older_part_reader(const older_part& part);
  older_part_reader(const older_part_reader&) = delete;
  older_part_reader& operator=(const older_part_reader&) = delete;
  ~older_part_reader();

  /// The next bytes, unpacked; 0 at the end. Throws input_error when reading fails, or
  /// at a gzip bomb.
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
