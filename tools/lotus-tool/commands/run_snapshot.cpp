#include "commands/run_snapshot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <lotus/folder/directory.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/folder/safe_open.hpp>
#include <lotus/folder/snapshot_place.hpp>
#include <lotus/recovery/recovery.hpp>
#include <lotus/recovery/snapshot_folder.hpp>
#include <ostream>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "base/errors.hpp"
#include "log/folder/lost_records.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using lotus::detail::snapshot_place;

class directory_descriptor {
 public:
  explicit directory_descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0) return;
    throw input_error(path + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  directory_descriptor(const directory_descriptor&) = delete;
  directory_descriptor& operator=(const directory_descriptor&) = delete;
  ~directory_descriptor() { close(fd_); }

  int number() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Returns the paths of all complete snapshots in a folder, including those of other runs.
std::set<fs::path> snapshots_in(const fs::path& folder) {
  std::set<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t at = name.rfind(snapshot_place::between);
    const bool is_one =
        at != std::string::npos && entry.path().extension() != ".unfinished" &&
        snapshot_place::is_time(name.c_str() + at + std::strlen(snapshot_place::between));
    if (is_one) found.insert(entry.path());
  }
  return found;
}

/// Returns the snapshots of the run in `dir`; they are next to `dir` or inside it.
std::set<fs::path> snapshots_of(const fs::path& dir) {
  std::set<fs::path> found = snapshots_in(dir);
  found.merge(snapshots_in(dir.parent_path()));
  return found;
}

/// Calls `found` until it returns true or `patience` has passed. Returns the last result.
template <class Found>
bool wait_for(std::chrono::milliseconds patience, Found found) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!found()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool is_recording(int directory, const std::string& dir) {
  bool running = false;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (!is_ring_file_name(name)) continue;
    struct stat status {};
    const int fd = lotus::detail::open_regular(directory, name.c_str(), O_RDONLY, status);
    if (fd < 0) continue;
    running = running || lotus::detail::file_lock_is_taken(fd, lotus::detail::owner_lock_byte);
    close(fd);
  }
  return running;
}

/// Writes a request for a snapshot. Returns whether a process has accepted the request.
bool ask(int directory, const snapshot_options& options) {
  const char* const name = lotus::detail::snapshot_request_name;
  const std::string unfinished = std::string(name) + ".new";
  struct stat status {};
  // An earlier lotus-tool that was killed may have left this file.
  unlinkat(directory, unfinished.c_str(), 0);
  const int fd = lotus::detail::open_regular(directory, unfinished.c_str(),
                                             O_WRONLY | O_CREAT | O_EXCL, status, 0600);
  if (fd < 0) {
    throw input_error(options.dir + ": cannot be written: " + lotus::detail::file_error_text(-fd));
  }
  // If root runs this program, the file is given to the directory's owner, because a recording
  // process of that user accepts no request that root owns.
  const bool is_root = geteuid() == 0 && fstat(directory, &status) == 0;
  if (is_root && fchown(fd, status.st_uid, status.st_gid) != 0) errno = 0;
  const int error = lotus::detail::write_all(fd, options.reason.data(), options.reason.size());
  close(fd);
  // The file gets its final name only when it is complete, so the recording process never reads an
  // incomplete request.
  const bool asked = error == 0 && renameat(directory, unfinished.c_str(), directory, name) == 0;
  if (!asked) unlinkat(directory, unfinished.c_str(), 0);
  const bool accepted = asked && wait_for(options.patience, [&] {
                          return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0;
                        });
  return accepted || (asked && unlinkat(directory, name, 0) != 0);
}

/// Returns the name of the information file in `dir` to which the snapshot adds a line about
/// itself. If there is no such file, returns a name for a new one.
std::string info_in(const std::string& dir) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(lotus::detail::run_info_start, 0) == 0) return name;
  }
  return std::string(lotus::detail::run_info_start) + "0_0";
}

fs::path copy(int directory, const snapshot_options& options, const fs::path& dir) {
  lotus::detail::log_location run{};
  if (run.parse((dir / options.prefix).string()) != 0) {
    throw input_error(options.dir + ": too long a path");
  }
  const auto owners = lotus::detail::file_owners::of_caller(directory);
  lotus::detail::snapshot_folder folder(directory, run, owners, 0666);
  const int error = folder.make(options.reason, info_in(options.dir).c_str());
  if (error != 0) {
    throw input_error(options.dir + ": cannot create a snapshot next to it: " +
                      lotus::detail::file_error_text(error));
  }
  return dir.parent_path() / folder.name();
}

}  // namespace

int run_snapshot(const snapshot_options& options, std::ostream& out, std::ostream& err) {
  const directory_descriptor directory(options.dir);
  const fs::path dir = fs::canonical(options.dir);
  const bool running = is_recording(directory.number(), options.dir);
  if (!running) {
    std::ostream quiet(nullptr);
    run_recover({options.dir}, quiet, err);
  }
  bool has_logs = false;
  const auto owners = lotus::detail::file_owners::of_caller(directory.number());
  lotus::detail::for_each_log(directory.number(), options.prefix.c_str(), owners,
                              [&](const lotus::detail::run_log&) { has_logs = true; });
  // A run without logs may still have aggregated operations, whose sums are stored in other files.
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string start = lotus::detail::aggregates_file_start + options.prefix + '_';
    has_logs = has_logs || entry.path().filename().string().rfind(start, 0) == 0;
  }
  if (!has_logs && !running) {
    throw input_error(options.dir + ": no log found (a log is named " + options.prefix +
                      "..., with a number at the end)");
  }
  if (running) {
    const std::set<fs::path> before = snapshots_of(dir);
    if (ask(directory.number(), options)) {
      std::set<fs::path> fresh;
      const bool created = wait_for(options.patience, [&] {
        const std::set<fs::path> now = snapshots_of(dir);
        std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                            std::inserter(fresh, fresh.end()));
        return !fresh.empty();
      });
      if (!created) {
        throw input_error(
            options.dir +
            ": the process could not make a snapshot; its standard error has the reason");
      }
      out << fresh.rbegin()->string() << '\n';
      return exit_fine;
    }
    err << "lotus-tool: " << options.dir
        << ": the process does not answer; its last records, which are in no log yet, are "
           "missing\n";
  }
  out << copy(directory.number(), options, dir).string() << '\n';
  return exit_fine;
}

}  // namespace lotus::tool
