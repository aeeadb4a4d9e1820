// Files and folders with a hidden name until they are complete; those of killed processes are
// removed.
#ifndef LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
#define LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP

#include <string>

namespace lotus::tool {

/// A new file or folder: its path, and a descriptor that holds a lock (flock) while it is open. If
/// another process finds such a name and can lock it, the creator is dead. On a file system without
/// locks, nothing is ever removed.
struct unfinished {
  std::string path;
  int descriptor = -1;  ///< closed by the caller; -1: it could not be created, see errno
};

/// Creates ".STEM.lotus_XXXXXX" in `folder`, accessible only to this user, and removes those with
/// the same stem whose creators were killed. Ignores everything but regular files of this user.
unfinished make_unfinished_file(const std::string& folder, const std::string& stem);

/// Same for a folder; folders of dead creators are removed with their contents.
unfinished make_unfinished_folder(const std::string& folder, const std::string& stem);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
