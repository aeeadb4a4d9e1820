#include "log/folder/log_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/terminal/progress.hpp"
#include "base/text.hpp"
#include "log/compact/block_index.hpp"
#include "log/folder/loaders.hpp"
#include "log/folder/lost_records.hpp"
#include "log/folder/starts.hpp"
#include "log/process_info.hpp"
#include "log/side_line.hpp"
#include "log/window/log_window.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/snapshot_place.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Returns the number after the last '_' of a file name; nullopt if there is none.
std::optional<std::uint64_t> number_of(std::string_view name) {
  const std::size_t underscore = name.rfind('_');
  std::uint64_t number = 0;
  if (underscore == std::string_view::npos || !read_whole(name.substr(underscore + 1), number)) {
    return std::nullopt;
  }
  return number;
}

file_role role_of(std::string_view name) {
  if (name.rfind(side_log_start, 0) == 0) return file_role::side;
  if (name.rfind(compact_log_start, 0) == 0) return file_role::compact;
  if (name.rfind(aggregates_file_start, 0) == 0) return file_role::aggregated;
  if (name.find("main_pid") != std::string_view::npos) return file_role::main;
  if (name.find("worker_pid") != std::string_view::npos) return file_role::worker;
  return file_role::unknown;
}

/// Removes the beginning that marks a hidden file (a side log, a compact log or a file about
/// aggregated operations), so that the result has the form of a log's name. Returns any other name
/// unchanged.
std::string_view side_log_kind(std::string_view name) {
  for (const std::string_view start : {side_log_start, compact_log_start, aggregates_file_start}) {
    if (name.substr(0, start.size()) == start) name.remove_prefix(start.size());
  }
  return name;
}

/// Collects the logs of each directory that look_at() is called for. If no log has the requested
/// prefix, other_prefix() returns the prefix of a log that was found, so that the error message can
/// suggest it.
class search {
 public:
  search(std::string_view prefix, diagnostic_log& diagnostics)
      : prefix_(prefix), diagnostics_(diagnostics) {}

  void look_at(const fs::directory_entry& entry) {
    std::error_code error;
    const std::string name = entry.path().filename().string();
    if (!is_found_file(entry)) {
      const bool folder = entry.is_directory(error) && !entry.is_symlink(error);
      if (!folder && (is_ring_file_name(name) || is_log_name(side_log_kind(name), prefix_))) {
        diagnostics_.warning(entry.path().string() +
                             ": ignored: it is a link or not a regular file");
      }
      return;
    }
    if (is_ring_file_name(name)) {
      with_rings_.insert(entry.path().parent_path().string());
      return;
    }
    if (name.rfind(lotus::detail::run_info_start, 0) == 0) {
      with_info_.insert(entry.path().parent_path().string());
      return;
    }
    if (const auto part = older_part_name_of(name, prefix_);
        part && is_log_name(side_log_kind(part->log), prefix_)) {
      const std::uint64_t bytes = entry.file_size(error);
      const std::string log = (entry.path().parent_path() / part->log).string();
      if (!error) older_[log].push_back({entry.path().string(), part->age, part->packed, bytes});
      return;
    }
    if (std::optional<log_file> log = log_named(entry.path().string(), prefix_)) {
      log->bytes = entry.file_size(error);
      if (!error) runs_[entry.path().parent_path().string()].push_back(std::move(*log));
      return;
    }
    if (side_log_kind(name).substr(0, prefix_.size()) != prefix_) {
      const std::size_t role =
          name.find(name.find("_main_pid_") != std::string::npos ? "_main_pid_" : "_worker_pid_");
      if (number_of(name) && role != std::string::npos) other_prefix_ = name.substr(0, role);
      return;
    }
    if (role_of(name) != file_role::unknown) {
      diagnostics_.note(entry.path().string() + ": ignored: the name of a log ends in _<number>");
    }
  }

  live_files live_result(
      std::uint64_t max_log_bytes,
      const std::function<void(const std::string&, logs_by_folder&)>& read_rings) && {
    for (auto& [log, parts] : older_) add_older(log, std::move(parts));
    for (const std::string& dir : with_rings_) read_rings(dir, runs_);
    for (auto& [dir, files] : runs_) {
      for (log_file& file : files) {
        std::uint64_t bytes = file.bytes;
        const auto kept = std::find_if(
            file.older.rbegin(), file.older.rend(),
            [&](const older_part& part) { return (bytes += part.bytes) > max_log_bytes; });
        file.older.erase(file.older.begin(), kept.base());
      }
      take_compact_apart(files, diagnostics_);
    }
    return {runs_of(std::move(runs_), with_info_), std::move(with_info_)};
  }

  std::vector<run_files> result() && {
    for (auto& [log, parts] : older_) add_older(log, std::move(parts));
    for (const std::string& dir : with_rings_) {
      lost_in_rings_[dir] = count_in_lost_records(dir, prefix_, runs_, diagnostics_);
    }
    for (auto& [dir, files] : runs_) take_compact_apart(files, diagnostics_);
    std::vector<run_files> runs = runs_of(std::move(runs_), with_info_);
    std::set<std::string> without_logs = with_info_;
    without_logs.insert(with_rings_.begin(), with_rings_.end());
    for (run_files& run : runs) {
      run.lost_in_rings = lost_in_rings_[run.info_dir];
      without_logs.erase(run.info_dir);
    }
    keep_newest_start(runs, diagnostics_);
    for (const run_files& run : runs) report_losses(run, diagnostics_);
    // If all records of a folder are lost, it has no logs.
    for (const std::string& dir : without_logs) {
      run_files none;
      none.dir = none.info_dir = dir;
      none.lost_in_rings = lost_in_rings_[dir];
      report_losses(none, diagnostics_);
    }
    return runs;
  }

  const std::string& other_prefix() const noexcept { return other_prefix_; }

 private:
  /// Adds the older parts of the log with the path `log` to its log_file. The log itself may not
  /// exist, for example if the program ended just after its log was renamed to be a part; then adds
  /// a log_file for it.
  void add_older(const std::string& log, std::vector<older_part> parts) {
    std::sort(parts.begin(), parts.end(), [](const older_part& a, const older_part& b) {
      return a.age != b.age ? a.age > b.age : a.packed < b.packed;
    });
    // While a part is being compressed, it exists as a plain and as a compressed file. Keep only
    // the plain file, because the compressed one may be incomplete.
    parts.erase(std::unique(parts.begin(), parts.end(),
                            [](const auto& a, const auto& b) { return a.age == b.age; }),
                parts.end());
    const fs::path path(log);
    std::vector<log_file>& files = runs_[path.parent_path().string()];
    auto file = std::find_if(files.begin(), files.end(),
                             [&](const log_file& other) { return other.path == log; });
    if (file == files.end()) {
      const std::string name = path.filename().string();
      file = files.insert(files.end(), {log, role_of(name), number_of(name).value_or(0), 0, {}});
    }
    file->older = std::move(parts);
  }

  std::string prefix_;
  diagnostic_log& diagnostics_;
  logs_by_folder runs_;
  std::map<std::string, std::vector<older_part>> older_;  // older parts, by the path of their log
  std::set<std::string> with_rings_;
  // Result of count_in_lost_records() by folder.
  std::map<std::string, std::map<std::string, std::uint64_t>> lost_in_rings_;
  std::set<std::string> with_info_;
  std::string other_prefix_;
};

bool is_snapshot(const fs::directory_entry& entry) {
  using lotus::detail::snapshot_place;
  const std::string name = entry.path().filename().string();
  const std::size_t at = name.rfind(snapshot_place::between);
  std::error_code error;
  return at != std::string::npos && entry.is_directory(error) &&
         snapshot_place::is_time(name.c_str() + at + sizeof(snapshot_place::between) - 1);
}

/// Returns a text for the user if there is no folder `dir`, but logs have this path as prefix.
std::string hint_of_prefix(const std::string& dir) {
  const fs::path given(dir);
  const std::string prefix = given.filename().string();
  const fs::path folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    for (const char* role : {"_main_pid_", "_worker_pid_"}) {
      if (name.rfind(prefix + role, 0) != 0) continue;
      return ", but logs in " + folder.string() + " have this prefix (--prefix " + prefix + ')';
    }
  }
  return {};
}

/// Looks at all files in a folder and below it. Returns the error that ended the search early, if
/// any. Throws input_error if the folder itself cannot be read.
std::error_code look_below(const std::string& dir, search& logs) {
  std::error_code error;
  const fs::file_status status = fs::status(dir, error);
  if (!fs::exists(status)) {
    throw input_error(dir + ": no such directory" + hint_of_prefix(dir) +
                      "; give the folder that holds the log files");
  }
  if (!fs::is_directory(status)) {
    throw input_error(dir + ": not a directory; give the folder that holds the log files");
  }
  fs::recursive_directory_iterator at(dir, fs::directory_options::skip_permission_denied, error);
  if (error) throw input_error(dir + ": cannot be read: " + error.message());
  while (at != fs::recursive_directory_iterator()) {
    if (is_snapshot(*at)) at.disable_recursion_pending();
    logs.look_at(*at);
    at.increment(error);
    if (error) return error;
  }
  return {};
}

/// Calls each(name) for the names of the entries of a folder until it returns true. Returns whether
/// it did.
template <class Each>
bool any_name(const fs::path& folder, Each&& each) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (each(entry.path().filename().string())) return true;
  }
  return false;
}

/// Whether a folder contains samples of threads, which `lotus-tool run` stores for any program,
/// even if the program itself records nothing.
bool has_thread_samples(const std::string& dir) {
  return any_name(dir,
                  [](const std::string& name) { return name.rfind(".lotus_threads_", 0) == 0; });
}

/// Returns the folder of the run of which `dir` is the folder of a loader; "" if it is none. The
/// folder above may contain the files of any program, so these must name a process that wrote here.
std::string run_of_loader(const std::string& dir, std::string_view prefix) {
  const auto is_info = [](const std::string& name) {
    return name.rfind(lotus::detail::run_info_start, 0) == 0;
  };
  std::error_code error;
  const fs::path folder = fs::canonical(dir, error);
  const fs::path above = folder.parent_path();
  if (error || any_name(folder, is_info) || !any_name(above, is_info)) return {};
  const run_processes info = run_processes::read(above.string(), {});
  const bool wrote_here = any_name(folder, [&](const std::string& name) {
    const std::optional<std::uint64_t> number = number_of(name);
    return number && is_log_name(name, prefix) && info.process_of(*number) != nullptr;
  });
  return wrote_here ? above.string() : std::string();
}

}  // namespace

std::optional<log_file> log_named(const std::string& path, std::string_view prefix) {
  const std::string name = fs::path(path).filename().string();
  const std::optional<std::uint64_t> number = number_of(name);
  if (!number || side_log_kind(name).substr(0, prefix.size()) != prefix) return std::nullopt;
  if (older_part_name_of(name, prefix)) return std::nullopt;
  return log_file{path, role_of(name), *number, 0, {}};
}

std::vector<run_files> runs_of(logs_by_folder&& logs, const std::set<std::string>& with_info) {
  std::vector<run_files> runs;
  for (auto& of_folder : logs) {
    std::vector<log_file>& files = of_folder.second;
    if (files.empty()) continue;
    std::sort(files.begin(), files.end(), [](const log_file& a, const log_file& b) {
      return std::tie(a.role, a.number, a.path) < std::tie(b.role, b.number, b.path);
    });
    const auto first_of = [&files](file_role role) {
      return std::find_if(files.begin(), files.end(),
                          [role](const log_file& file) { return file.role >= role; });
    };
    const auto side = first_of(file_role::side);
    const auto aggregated = first_of(file_role::aggregated);
    run_files& run = runs.emplace_back();
    run.dir = of_folder.first;
    run.files.assign(std::make_move_iterator(files.begin()), std::make_move_iterator(side));
    run.side_files.assign(std::make_move_iterator(side), std::make_move_iterator(aggregated));
    run.aggregated.assign(aggregated, files.end());
  }
  join_loaders(runs, with_info);
  for (run_files& run : runs) find_consumers(run);
  std::sort(runs.begin(), runs.end(),
            [](const run_files& a, const run_files& b) { return natural_less(a.dir, b.dir); });
  return runs;
}

bool is_log_name(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix && number_of(name).has_value();
}

bool natural_less(std::string_view a, std::string_view b) noexcept {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  const auto take_number = [](std::string_view& text) {
    std::size_t n = 0;
    while (n < text.size() && is_digit(text[n])) ++n;
    std::string_view digits = text.substr(0, n);
    text.remove_prefix(n);
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  // The names are equal or differ only in leading zeros, as "b01" and "b1" do; compare them as
  // texts.
  return whole_a < whole_b;
}

void refuse_input_as_output(const std::string& output, const std::vector<run_files>& runs,
                            const std::vector<std::string>& others, std::string_view prefix) {
  if (output == "-") return;
  std::error_code ignored;
  const auto refuse = [&](const std::string& input) {
    if (fs::equivalent(input, output, ignored)) {
      throw usage_error(output + ": is an input of this command; choose another output");
    }
  };
  for (const run_files& run : runs) {
    for (const std::vector<log_file>* files : {&run.files, &run.side_files, &run.aggregated}) {
      for (const log_file& file : *files) {
        refuse(file.path);
        for (const older_part& part : file.older) refuse(part.path);
      }
    }
  }
  for (const std::string& path : others) refuse(path);
  const std::string name = fs::path(output).filename().string();
  const auto part = older_part_name_of(name, prefix);
  if (is_log_name(side_log_kind(name), prefix) ||
      (part && is_log_name(side_log_kind(part->log), prefix))) {
    throw usage_error(output + ": looks like a log; choose a name that does not begin with " +
                      std::string(prefix));
  }
}

live_files find_live_runs(
    const std::string& dir, std::string_view prefix, std::uint64_t max_log_bytes,
    const std::function<void(const std::string& dir, logs_by_folder& logs)>& read_rings) {
  diagnostic_log silent = diagnostic_log::silenced();
  search logs(prefix, silent);
  // Folders that are removed meanwhile are no error.
  [[maybe_unused]] const std::error_code removed = look_below(dir, logs);
  return std::move(logs).live_result(max_log_bytes, read_rings);
}

std::vector<run_files> find_runs(const std::string& dir, std::string_view prefix,
                                 diagnostic_log& diagnostics, unsigned readings) {
  // The files about the processes of a loader are in the folder of the run.
  const std::string run_dir = run_of_loader(dir, prefix);
  search logs(prefix, diagnostics);
  if (const std::error_code error = look_below(run_dir.empty() ? dir : run_dir, logs)) {
    throw input_error(dir + ": cannot be read to its end: " + error.message());
  }
  const std::string other = logs.other_prefix();
  std::vector<run_files> runs = std::move(logs).result();
  if (!run_dir.empty()) {
    std::error_code ignored;
    const auto is_other = [&](const run_files& run) {
      return !fs::equivalent(run.dir, dir, ignored);
    };
    runs.erase(std::remove_if(runs.begin(), runs.end(), is_other), runs.end());
    for (run_files& run : runs) run.dir = dir;
  }
  if (runs.empty()) {
    throw input_error(dir + ": no log found (a log is named " + std::string(prefix) +
                      "..., with a number at the end)" +
                      (!other.empty() ? "; did you mean --prefix " + other + "?"
                       : has_thread_samples(dir)
                           ? "; the program has no markers, but 'lotus-tool "
                             "threads " +
                                 dir + "' shows its threads"
                           : "; give the folder that holds the logs, or record "
                             "with 'lotus-tool run -- PROGRAM'"));
  }
  for (run_files& run : runs) {
    run.wanted = part_to_read();
    if (run.wanted) narrow(run, *run.wanted, diagnostics);
    for (const log_file& file : run.files) {
      expect_bytes(file.bytes * readings);
      for (const older_part& part : file.older) expect_bytes(part.bytes * readings);
    }
  }
  return runs;
}

}  // namespace lotus::tool
