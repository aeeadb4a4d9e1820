#include "commands/unpack.hpp"

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/files/unfinished.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/lost_records.hpp"
#include "log/folder/starts.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/side_line.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/log_appender.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

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
