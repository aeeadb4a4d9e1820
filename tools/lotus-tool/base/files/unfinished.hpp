// Creates files and folders with hidden names, for outputs that are not complete yet and for
// temporary files, and removes such files and folders of killed processes.
#ifndef LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
#define LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP

#include <cstdint>
#include <string>

namespace lotus::tool {

/// A new file or folder: its path, and a descriptor that holds a lock (flock) on it while the
/// descriptor is open. If another process can lock it, the process that created it is dead, so the
/// other process may remove it. On a file system without locks, files and folders of dead processes
/// are never removed.
struct unfinished {
  std::string path;
  int descriptor = -1;  ///< descriptor, to be closed by the caller; -1: creation failed, see errno
};

/// Whether killed processes may have left files in a folder. Use `none` for many files in a folder
/// that this process has created: otherwise the whole folder is read for each of them.
enum class leftovers : std::uint8_t { possible, none };

/// Creates ".STEM.lotus_XXXXXX" in `folder`, accessible only to this user. Also removes files with
/// the same stem whose creators are dead, if they are regular files of this user.
unfinished make_unfinished_file(const std::string& folder, const std::string& stem,
                                leftovers left = leftovers::possible);

/// Like make_unfinished_file(), but for a folder. Folders of dead creators are removed with
/// their contents.
unfinished make_unfinished_folder(const std::string& folder, const std::string& stem);

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

#endif  // LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
