// Files and folders that have a hidden name until they are whole, and go when their maker has died.
#ifndef LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
#define LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP

#include <string>

namespace lotus::tool {

/// What was made: its path, and a descriptor that is locked (flock) as long as it is open. Whoever
/// finds such a name and can take the lock knows that its maker is dead. Where the file system has
/// no locks, nothing is ever removed.
struct unfinished {
  std::string path;
  int descriptor = -1;  ///< the caller's to close; -1: errno says why there is none
};

/// Makes ".STEM.lotus_XXXXXX" in `folder`, only for this user, and removes those of that stem whose
/// makers were killed. What is not a regular file of this user's is left alone.
unfinished make_unfinished_file(const std::string& folder, const std::string& stem);

/// The same as a folder; what is in the dead ones goes too.
unfinished make_unfinished_folder(const std::string& folder, const std::string& stem);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_UNFINISHED_HPP
