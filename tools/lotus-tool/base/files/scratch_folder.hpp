// Provides a folder for the temporary files of a command.
#ifndef LOTUS_TOOL_BASE_FILES_SCRATCH_FOLDER_HPP
#define LOTUS_TOOL_BASE_FILES_SCRATCH_FOLDER_HPP

#include <string>

namespace lotus::tool {

/// A new folder that only this user can access. The destructor removes the folder with its
/// contents. If the process is killed before that, the next scratch_folder that is created in the
/// same parent folder removes it.
class scratch_folder {
 public:
  /// @param parent  the folder in which to create the new one. Throws input_error.
  explicit scratch_folder(const std::string& parent);
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();

  const std::string& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_SCRATCH_FOLDER_HPP
