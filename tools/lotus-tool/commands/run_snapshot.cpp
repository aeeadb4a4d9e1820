#include "commands/run_snapshot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <lotus/folder/directory.hpp>
#include <lotus/folder/hidden_files.hpp>
#include <lotus/folder/log_appender.hpp>
#include <lotus/folder/safe_open.hpp>
#include <lotus/folder/snapshot_place.hpp>
#include <lotus/recovery/recovery.hpp>
#include <lotus/recovery/snapshot_folder.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/files/unfinished.hpp"
#include "log/folder/lost_records.hpp"
#include "log/folder/starts.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;
using lotus::detail::snapshot_place;

class directory_descriptor {
 public:
  explicit directory_descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0) return;
    throw input_error(path + ": " + error_text(errno));
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

namespace {

/// Writes the logs of runs to a folder that was new or empty when the command began.
class unpacker {
 public:
  unpacker(const unpack_options& options, std::ostream& out, diagnostic_log& diagnostics)
      : options_(options), out_(out), diagnostics_(diagnostics) {}

  void unpack(const run_files& run) {
    const fs::path to = place_of(run.dir);
    for (const log_file& file : run.files) write<log_line>(file, to);
    for (const log_file& file : run.side_files) write<side_line>(file, to);
    for (const log_file& file : run.aggregated) copy(file, to);
    if (informed_.insert(run.info_dir).second) copy_information(run);
  }

  std::uint64_t lines() const noexcept { return lines_; }

 private:
  /// Creates the folder in the output that corresponds to `dir` in the input, and returns its path.
  fs::path place_of(const std::string& dir) const {
    const fs::path relative = fs::path(dir).lexically_relative(options_.dir);
    fs::path to = options_.output;
    if (!relative.empty() && relative != ".") to /= relative;
    std::error_code error;
    fs::create_directories(to, error);
    if (error) throw input_error(to.string() + ": cannot be created: " + error.message());
    return to;
  }

  /// Returns the file name of the text log that a log is converted to.
  std::string name_of(const log_file& file) const {
    if (!file.compact) return fs::path(file.path).filename().string();
    const lotus::detail::log_role role =
        file.role == file_role::main     ? lotus::detail::log_role::main
        : file.role == file_role::worker ? lotus::detail::log_role::worker
                                         : lotus::detail::log_role::side;
    char name[lotus::detail::log_name_bytes];
    lotus::detail::put_log_name(name, sizeof(name), options_.prefix.c_str(), role, false,
                                static_cast<std::uint32_t>(file.number));
    return name;
  }

  template <class Line>
  void write(const log_file& file, const fs::path& folder) {
    output_file to((folder / name_of(file)).string(), out_, false, leftovers::none);
    std::string text;
    read_lines<Line>(file, &diagnostics_, [&](const Line& line) {
      text.clear();
      append_text(line, text);
      to.write(text);
      ++lines_;
    });
    to.commit();
  }

  /// Copies a log that already is a text log.
  void copy(const log_file& file, const fs::path& folder) {
    output_file to((folder / fs::path(file.path).filename()).string(), out_, false,
                   leftovers::none);
    block_reader blocks(file);
    for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
      to.write(block);
    }
    to.commit();
  }

  /// Copies the information files, which describe processes, and the files with wait samples. Ring
  /// files are not copied, so the numbers of lost records in them are added to the copies.
  void copy_information(const run_files& run) const {
    const std::string& dir = run.info_dir;
    if (dir.empty()) return;
    const fs::path to = place_of(dir);
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
      const std::string name = entry.path().filename().string();
      const bool copied = name.rfind(lotus::detail::run_info_start, 0) == 0 ||
                          name.rfind(lotus::detail::waits_file_start, 0) == 0 ||
                          name.rfind(lotus::detail::stacks_file_start, 0) == 0;
      if (!copied || entry.is_symlink()) continue;
      fs::copy_file(entry.path(), to / name, error);
      if (error) break;
    }
    if (error) throw input_error(to.string() + ": cannot be written: " + error.message());
    add_lost_to_copies(run, to.string());
  }

  const unpack_options& options_;
  std::ostream& out_;
  diagnostic_log& diagnostics_;
  std::set<std::string> informed_;
  std::uint64_t lines_ = 0;
};

}  // namespace

int run_unpack(const unpack_options& options, std::ostream& out, std::ostream& err) {
  std::error_code error;
  if (fs::exists(options.output) && !fs::is_empty(options.output, error)) {
    throw usage_error("-o: " + options.output + " is not an empty folder");
  }
  diagnostic_log diagnostics(err, options.quiet);
  unpacker all(options, out, diagnostics);
  read_all_starts(true);  // the output must contain the logs of all starts of the program
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, diagnostics);
  for (const run_files& run : runs) all.unpack(run);
  const int status = diagnostics.finish(options.strict);
  diagnostics.note("wrote " + std::to_string(all.lines()) + " lines of text logs to " +
                   options.output);
  return status;
}

}  // namespace lotus::tool
