#include "commands/bundle/bundle.hpp"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/scratch_folder.hpp"
#include "base/files/tar_archive.hpp"
#include "commands/bundle/scrubber.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/side_line.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/stacks/snapshot_threads.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t lines_each = 20;
constexpr std::size_t max_logs = 100;
constexpr std::size_t max_info_files = 50;
constexpr std::size_t max_info_bytes = 65'536;

constexpr std::string_view read_me =
    "What a bug report about Lotus needs of a run, written by lotus-tool report --bundle.\n"
    "\n"
    "versions.txt   versions of lotus-tool, the C library and the kernel\n"
    "files.txt      names and sizes of the run's files\n"
    "info/          information files of its processes\n"
    "logs/          the first and last lines of its logs\n"
    "stats.txt, diagnose.txt   what these commands print\n"
    "\n"
    "Command lines, arguments of scopes, environment, host and folder names are removed.\n";

/// Keeps only the first and the last lines of a log, so that the archive stays small.
class ends_of_log {
 public:
  void line(std::string text) {
    ++count_;
    if (first_.size() < lines_each) {
      first_.push_back(std::move(text));
      return;
    }
    last_.push_back(std::move(text));
    if (last_.size() > lines_each) last_.pop_front();
  }

  std::string text() const {
    std::string all;
    for (const std::string& line : first_) all += line + '\n';
    const std::size_t left_out = count_ - first_.size() - last_.size();
    if (left_out > 0) all += "... " + std::to_string(left_out) + " more lines\n";
    for (const std::string& line : last_) all += line + '\n';
    return all;
  }

 private:
  std::vector<std::string> first_;
  std::deque<std::string> last_;
  std::size_t count_ = 0;
};

std::string versions() {
  std::string text = "lotus-tool " LOTUS_TOOL_VERSION "\n";
  text += std::string("glibc ") + gnu_get_libc_version() + '\n';
  text += "compiler " __VERSION__ "\n";
  utsname system{};
  // The host name (`nodename`) is not packed, because it may be a secret.
  if (uname(&system) == 0) {
    text += std::string(system.sysname) + ' ' + system.release + ' ' + system.machine + '\n';
  }
  return text + "CPUs " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + '\n';
}

class bundler {
 public:
  bundler(const bundle_options& options, const command_runner& run_command,
          diagnostic_log& diagnostics)
      : options_(options),
        run_command_(run_command),
        diagnostics_(diagnostics),
        scrub_(options.hide_names) {}

  /// Returns the contents of the files to pack, by file name. Writes nothing yet.
  std::map<std::string, std::string> collect() {
    std::map<std::string, std::string> found{{"README.txt", std::string(read_me)},
                                             {"versions.txt", versions()}};
    add_files(found);
    add_logs(found);
    add_answers(found);
    return found;
  }

 private:
  /// Adds the output of the commands `stats` and `diagnose`. The commands get the path of a
  /// symbolic link to the run instead of the run's own path. The run's path may contain a secret,
  /// such as a customer's name, whereas the link's path is easy to remove from the output.
  void add_answers(std::map<std::string, std::string>& found) {
    const scratch_folder scratch(fs::temp_directory_path().string());
    const fs::path real = fs::canonical(options_.dir);
    const std::string link = scratch.file("run");
    fs::create_directory_symlink(real, link);
    scrub_.forget(link, "RUN");
    scrub_.forget(real.string(), "RUN");
    for (const char* command : {"stats", "diagnose"}) {
      const command_output output =
          run_command_({command, link, "--wide", "--prefix", options_.prefix});
      found[std::string(command) + ".txt"] = scrub_.text(without_threads(output.out) + output.err) +
                                             "exit status " + std::to_string(output.status) + '\n';
    }
  }

  /// Removes from a command's output the part that says what the threads of a snapshot did. This
  /// part contains paths of files and names of functions, which may be secrets.
  static std::string without_threads(std::string text) {
    std::size_t at = text.find(snapshot_threads_title);
    if (at == std::string::npos) return text;
    at += snapshot_threads_title.size();
    std::size_t end = at;
    while (end < text.size() && text[end] == ' ') {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    }
    return text.replace(at, end - at, "  (left out)\n");
  }

  /// Adds the names and sizes of the run's files, and the contents of its information files, which
  /// describe the recording processes. Files that Lotus did not write are only counted, because
  /// their names could be secrets.
  void add_files(std::map<std::string, std::string>& found) {
    std::error_code error;
    std::vector<fs::path> paths;
    for (fs::recursive_directory_iterator at(options_.dir, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      if (!at->is_symlink(ignored) && at->is_regular_file(ignored)) paths.push_back(at->path());
    }
    if (error) throw input_error(options_.dir + ": cannot be read: " + error.message());
    std::sort(paths.begin(), paths.end());
    std::string list;
    std::size_t others = 0;
    std::size_t informed = 0;
    for (const fs::path& path : paths) {
      const std::string name = path.filename().string();
      const bool is_ours = name.rfind(".lotus_", 0) == 0 || name.rfind(options_.prefix, 0) == 0;
      if (!is_ours) {
        ++others;
        continue;
      }
      list += folder_of(path) + name + ' ' + std::to_string(fs::file_size(path, error)) + '\n';
      if (name.rfind(lotus::detail::run_info_start, 0) != 0) continue;
      if (++informed > max_info_files) continue;
      found["info/" + std::to_string(informed) + ".txt"] =
          folder_of(path) + name + '\n' + information(path);
    }
    list += std::to_string(others) + " other files\n";
    found["files.txt"] = list;
  }

  /// Returns the names of the folders that lead from the run's folder to a file, such as "val/".
  std::string folder_of(const fs::path& path) {
    std::string folders;
    for (const fs::path& part : path.parent_path().lexically_relative(options_.dir)) {
      if (part == ".") continue;
      const std::string name = part.string();
      // A folder is named after its loader. name() expects the name as it is in logs, where it
      // begins with an S.
      folders += (options_.hide_names ? scrub_.name("S" + name) : name) + '/';
    }
    return folders;
  }

  std::string information(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text;
    std::size_t read = 0;
    for (std::string line; std::getline(in, line) && read < max_info_bytes;) {
      read += line.size() + 1;
      text += scrub_.info_line(line) + '\n';
    }
    return text;
  }

  void add_logs(std::map<std::string, std::string>& found) {
    std::ostringstream messages;
    try {
      std::size_t n = 0;
      for (const run_files& run : find_runs(options_.dir, options_.prefix, diagnostics_)) {
        for (const log_file& file : run.files) add_log(file, false, ++n, found);
        for (const log_file& file : run.side_files) add_log(file, true, ++n, found);
      }
    } catch (const std::exception& error) {
      // The error is packed instead of thrown, because a run that cannot be read is a reason for a
      // bug report.
      messages << error.what() << '\n';
      found["logs/error.txt"] = scrub_.text(messages.str());
    }
  }

  void add_log(const log_file& file, bool is_side, std::size_t n,
               std::map<std::string, std::string>& found) {
    // Only the first `max_logs` logs are packed. With `hide_names` the other logs are read too,
    // because scrubber::text() replaces only names that it has seen in a log.
    if (n > max_logs && !options_.hide_names) return;
    ends_of_log ends;
    if (file.compact) {
      const auto add = [&](const auto& record) {
        std::string line;
        append_text(record, line);
        line.resize(line.size() - 1);
        ends.line(is_side ? scrub_.side_line(line) : scrub_.log_line(line));
      };
      if (is_side) {
        read_lines<side_line>(file, nullptr, add);
      } else {
        read_lines<log_line>(file, nullptr, add);
      }
    } else {
      block_reader blocks(file);
      for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
        while (!block.empty()) {
          const std::size_t end = std::min(block.find('\n'), block.size());
          const std::string_view line = block.substr(0, end);
          ends.line(is_side ? scrub_.side_line(line) : scrub_.log_line(line));
          block.remove_prefix(std::min(end + 1, block.size()));
        }
      }
    }
    if (n > max_logs) return;
    const fs::path path(file.path);
    found["logs/" + std::to_string(n) + ".txt"] =
        folder_of(path) + path.filename().string() + '\n' + ends.text();
  }

  const bundle_options& options_;
  const command_runner& run_command_;
  diagnostic_log& diagnostics_;
  scrubber scrub_;
};

}  // namespace

int run_bundle(const bundle_options& options, const command_runner& run_command, std::ostream& out,
               std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const std::map<std::string, std::string> files =
      bundler(options, run_command, diagnostics).collect();
  tar_archive archive(options.output, out);
  for (const auto& [name, content] : files) archive.add("lotus-bundle/" + name, content);
  archive.commit();
  diagnostics.note("check " + options.output + " before you send it" +
                   (options.hide_names ? ""
                                       : "; it contains the names of operations and threads "
                                         "(--hide-names replaces them by S1, S2, ...)"));
  return exit_fine;
}

}  // namespace lotus::tool
