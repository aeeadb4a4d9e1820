// Writes a gzipped tar archive.
#ifndef LOTUS_TOOL_BASE_FILES_TAR_ARCHIVE_HPP
#define LOTUS_TOOL_BASE_FILES_TAR_ARCHIVE_HPP

#include <ostream>
#include <string>
#include <string_view>

#include "base/files/output_file.hpp"

namespace lotus::tool {

/// An archive in the format ustar (POSIX.1-2001). The archive appears under its name only when it
/// is complete. Entries have no time and no owner, so the same files give the same archive.
class tar_archive {
 public:
  /// @param path  path of the archive; "-": `standard_output`. All functions throw input_error.
  tar_archive(const std::string& path, std::ostream& standard_output);

  /// Adds a file.
  /// @param name  name of the file in the archive, at most 99 bytes.
  void add(std::string_view name, std::string_view content);
  void commit();

 private:
  output_file file_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_TAR_ARCHIVE_HPP
