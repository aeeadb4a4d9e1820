// Reads older parts of a log, which logrotate or the program renamed while the log was written.
#ifndef LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP
#define LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct gzFile_s;

namespace lotus::tool {

/// One part of a log. Its name is "<log>.3" or "<log>.3.gz" if logrotate renamed the log, or
/// "<prefix>_part<time>_worker_pid_7" if the program did so to limit the size of its logs.
struct older_part {
  std::string path;
  std::uint64_t age = 0;    ///< position in the order of the log's parts; a higher number is older
  bool packed = false;      ///< whether the file is compressed with gzip
  std::uint64_t bytes = 0;  ///< number of bytes of the file to read
};

/// The components of an older part's name.
struct older_part_name {
  std::string log;  ///< name of the log to which the part belongs
  std::uint64_t age;
  bool packed;
};

/// Parses a file name. Returns nullopt if the name does not have the form of a part's name. The
/// caller must check whether `log` is the name of a log, because logrotate also renames other
/// files.
std::optional<older_part_name> older_part_name_of(std::string_view name, std::string_view prefix);

/// Reads one part, which must outlive the reader. Throws input_error if it cannot be opened.
class older_part_reader {
 public:
  explicit older_part_reader(const older_part& part);
  older_part_reader(const older_part_reader&) = delete;
  older_part_reader& operator=(const older_part_reader&) = delete;
  ~older_part_reader();

  /// Reads and decompresses the next bytes. Returns their number; 0 at the end. Throws input_error
  /// if reading fails or the file is a gzip bomb.
  std::size_t read(char* to, std::size_t room);

 private:
  std::size_t read_plain(char* to, std::size_t room);
  std::size_t read_packed(char* to, std::size_t room);

  const older_part& part_;
  int descriptor_ = -1;
  gzFile_s* unpacked_ = nullptr;
  std::uint64_t done_ = 0;  // number of bytes of the file that were read so far
  std::uint64_t unpacked_bytes_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_OLDER_PART_HPP
