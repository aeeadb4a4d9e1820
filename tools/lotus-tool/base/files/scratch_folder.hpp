// A folder for temporary files between two steps.
#ifndef LOTUS_TOOL_BASE_FILES_SCRATCH_FOLDER_HPP
#define LOTUS_TOOL_BASE_FILES_SCRATCH_FOLDER_HPP

#include <string>

namespace lotus::tool {

/// A new folder, accessible only to this user, that is removed with its contents at the end. After
/// a kill, it is removed when the next one is created in the same place.
class scratch_folder {
 public:
  /// @param parent  the folder to create it in. Throws input_error.
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
