#include "base/files/unfinished.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errors.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view any = "XXXXXX";

/// Returns how the names of the hidden temporary files for an output with the name `stem` begin.
/// Truncates a long stem, because file systems limit the length of names.
std::string start_of(const std::string& stem) {
  constexpr std::size_t max_bytes = 200;
  return '.' + stem.substr(0, max_bytes) + ".lotus_";
}

bool is_unfinished(std::string_view name, std::string_view start) {
  if (name.size() != start.size() + any.size() || name.substr(0, start.size()) != start) {
    return false;
  }
  name.remove_prefix(start.size());
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

/// Returns whether `path` still names the file that is open as `descriptor`.
bool is_named(const std::string& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void remove_if_dead(const std::string& path, bool folder) {
  const int kind = folder ? O_DIRECTORY : O_NONBLOCK;
  // NOLINTNEXTLINE(*-vararg)
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | kind);
  if (descriptor < 0) return;
  struct stat status {};
  const bool ours = ::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid() &&
                    (folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
  if (ours && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_named(path, descriptor)) {
    std::error_code ignored;
    folder ? fs::remove_all(path, ignored) : fs::remove(path, ignored);
  }
  ::close(descriptor);
}

void remove_dead(const std::string& in, const std::string& start, bool folders) {
  std::error_code error;
  for (fs::directory_iterator at(in, error), end; !error && at != end; at.increment(error)) {
    if (is_unfinished(at->path().filename().native(), start)) {
      remove_if_dead(at->path().native(), folders);
    }
  }
}

/// Creates a file or folder with a hidden name in `folder` and locks it. Before that, removes such
/// files or folders of dead processes, unless there are none (see `left`).
/// @param make  creates the file or folder. It gets a path, replaces the last letters of the path
/// by unique ones, and returns a descriptor, or -1.
template <class Make>
unfinished make_locked(const std::string& folder, const std::string& stem, bool folders,
                       leftovers left, Make&& make) {
  const std::string start = start_of(stem);
  if (left == leftovers::possible) remove_dead(folder, start, folders);
  constexpr int max_tries = 100;
  unfinished made;
  for (int tries = 0; tries < max_tries; ++tries) {
    made.path = folder;
    made.path += '/';
    made.path += start;
    made.path += any;
    made.descriptor = make(made.path);
    if (made.descriptor < 0) return made;
    // Another process may remove the file before it is locked, because an unlocked file looks
    // abandoned. In this case, create another file.
    const bool locked = ::flock(made.descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && is_named(made.path, made.descriptor)) return made;
    ::close(made.descriptor);
  }
  made.descriptor = -1;
  errno = EAGAIN;
  return made;
}

}  // namespace

unfinished make_unfinished_file(const std::string& folder, const std::string& stem,
                                leftovers left) {
  return make_locked(folder, stem, false, left,
                     [](std::string& path) { return ::mkostemp(path.data(), O_CLOEXEC); });
}

unfinished make_unfinished_folder(const std::string& folder, const std::string& stem) {
  return make_locked(folder, stem, true, leftovers::possible, [](std::string& path) {
    for (int tries = 0; tries < 100; ++tries) {
      if (::mkdtemp(path.data()) == nullptr) return -1;
      // NOLINTNEXTLINE(*-vararg)
      const int opened = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
      if (opened >= 0 || errno != ENOENT) return opened;
      // mkdtemp() created the folder, but it no longer existed when this function opened it,
      // because another process had removed it. Create a folder with another name.
      path.replace(path.size() - any.size(), any.size(), any);
    }
    return -1;
  });
}

scratch_folder::scratch_folder(const std::string& parent) {
  unfinished made = make_unfinished_folder(parent, "lotus_tool");
  path_ = std::move(made.path);
  lock_ = made.descriptor;
  if (lock_ < 0) throw input_error(parent + ": cannot create a folder in it: " + error_text(errno));
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace lotus::tool
