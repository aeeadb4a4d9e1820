#include "log/folder/starts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "log/folder/loaders.hpp"
#include "log/process_info.hpp"
#include "log/window/log_window.hpp"
#include "lotus/base/environment.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

bool all_starts = false;

/// One process that recorded into a folder, and the time during which it recorded.
struct recorded_process {
  std::string info;  ///< name of the process's information file
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;
  std::uint64_t forked = 0;
  std::string run;
  std::string host;
  std::set<std::uint64_t> logs;  ///< numbers of the process's logs
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::size_t group = 0;
};

/// Returns the number at the end of an information file's name: the time of its creation in ns.
std::optional<std::int64_t> start_in(std::string_view name) {
  const std::size_t at = name.rfind('_');
  std::int64_t ns = 0;
  if (at == std::string_view::npos || !read_whole(name.substr(at + 1), ns, 16)) return std::nullopt;
  return ns;
}

/// Returns the end time of the last record in a text log.
std::optional<std::int64_t> last_end_in(const log_file& log) {
  if (log.compact || log.bytes == 0) return std::nullopt;
  const std::int64_t end_ns = times_of_text(log)->last_ns();
  return end_ns == INT64_MIN ? std::nullopt : std::optional(end_ns);
}

std::vector<recorded_process> processes_in(const run_files& run) {
  std::vector<recorded_process> all;
  const run_processes processes = run_processes::read(run.info_dir);
  for (const auto& [path, info] : processes.by_file()) {
    recorded_process one;
    one.info = fs::path(path).filename().string();
    const std::optional<std::int64_t> start_ns = start_in(one.info);
    if (!start_ns || info.pid == 0) continue;
    one.pid = info.pid;
    one.parent = info.parent;
    one.forked = info.forked;
    one.run = info.run;
    one.host = info.host;
    one.start_ns = one.end_ns = *start_ns;
    std::set<std::uint64_t> elsewhere;
    for (const auto& [number, tid] : info.log_tid) {
      one.logs.insert(number);
      elsewhere.insert(tid);
    }
    for (const auto& [tid, name] : info.threads) {
      if (elsewhere.count(tid) == 0) one.logs.insert(tid);
    }
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const recorded_process& a, const recorded_process& b) {
    return a.start_ns < b.start_ns;
  });
  return all;
}

/// Groups processes that belong to the same start of the program, that is, to one execution.
class grouping {
 public:
  explicit grouping(std::vector<recorded_process>& all) : all_(all), group_(all.size()) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
  }

  /// Groups the processes in `all_`, and sets the member `group` of each. They must be sorted by
  /// start time, so that it is enough to compare each process with a few processes before it.
  void group() {
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> by_pid;
    std::map<std::pair<std::string, std::uint64_t>, std::vector<std::size_t>> by_parent;
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> by_main;
    std::map<std::string, std::size_t> by_run;
    std::size_t last_to_end = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const recorded_process& one = all_[i];
      if (i > 0 && one.start_ns <= all_[last_to_end].end_ns) join(last_to_end, i);
      const auto parent = by_pid.find({one.host, one.parent});
      if (parent != by_pid.end()) join(parent->second, i);
      // If a process recorded twice, `all_` has two entries with its pid. The second recording
      // appended to the logs of the first, so put both entries into one group.
      const auto same = by_pid.find({one.host, one.pid});
      if (same != by_pid.end()) join(same->second, i);
      for (const std::size_t child : by_parent[{one.host, one.pid}]) join(child, i);
      if (one.forked != 0) join(by_main.try_emplace({one.host, one.forked}, i).first->second, i);
      if (!one.run.empty()) join(by_run.try_emplace(one.run, i).first->second, i);
      by_pid[{one.host, one.pid}] = i;
      by_parent[{one.host, one.parent}].push_back(i);
      if (one.end_ns > all_[last_to_end].end_ns) last_to_end = i;
    }
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].group = root(i);
  }

 private:
  std::size_t root(std::size_t i) {
    while (group_[i] != i) i = group_[i] = group_[group_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { group_[root(b)] = root(a); }

  std::vector<recorded_process>& all_;
  std::vector<std::size_t> group_;
};

/// The files in a folder that belong to earlier starts of the program, so that commands do not read
/// them.
struct earlier_starts {
  std::size_t starts = 1;
  std::set<std::uint64_t> logs;  ///< numbers of the logs that are not read
  std::set<std::uint64_t> pids;  ///< processes whose files about aggregates are not read
  std::set<std::string> info;
};

earlier_starts find_earlier(const std::vector<run_files*>& runs) {
  std::vector<recorded_process> all = processes_in(*runs.front());
  earlier_starts found;
  if (all.size() < 2) return found;
  // For each log number: the process that wrote to the log with this number last.
  std::map<std::uint64_t, recorded_process*> by_log;
  for (recorded_process& one : all) {
    for (const std::uint64_t number : one.logs) by_log[number] = &one;
  }
  for (const run_files* const run : runs) {
    for (const log_file& log : run->files) {
      const auto owner = by_log.find(log.number);
      if (owner == by_log.end()) continue;
      const std::optional<std::int64_t> end_ns = last_end_in(log);
      struct stat status {};
      recorded_process& process = *owner->second;
      if (end_ns) {
        process.end_ns = std::max(process.end_ns, *end_ns);
      } else if (log.compact && stat(log.path.c_str(), &status) == 0) {
        const std::int64_t changed_ns =
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        process.end_ns = std::max(process.end_ns, changed_ns);
      }
    }
  }
  grouping(all).group();
  std::set<std::size_t> groups;
  for (const recorded_process& one : all) groups.insert(one.group);
  found.starts = groups.size();
  const std::size_t newest = all.back().group;
  std::set<std::uint64_t> kept_pids;
  for (const recorded_process& one : all) {
    if (one.group == newest) kept_pids.insert(one.pid);
  }
  for (const recorded_process& one : all) {
    if (one.group == newest) continue;
    found.info.insert(one.info);
    if (kept_pids.count(one.pid) == 0) found.pids.insert(one.pid);
    for (const std::uint64_t number : one.logs) {
      if (by_log.at(number)->group != newest) found.logs.insert(number);
    }
  }
  return found;
}

void leave_out(std::vector<log_file>& files, const std::set<std::uint64_t>& numbers) {
  files.erase(std::remove_if(files.begin(), files.end(),
                             [&](const log_file& file) { return numbers.count(file.number) != 0; }),
              files.end());
}

}  // namespace

void read_all_starts(bool all) noexcept {
  all_starts = all;
}

void keep_newest_start(std::vector<run_files>& runs, diagnostic_log& diagnostics) {
  std::map<std::string, std::vector<run_files*>> by_info;
  for (run_files& run : runs) {
    if (!run.info_dir.empty()) by_info[run.info_dir].push_back(&run);
  }
  for (auto& [dir, of_dir] : by_info) {
    const earlier_starts earlier = find_earlier(of_dir);
    if (earlier.starts < 2) continue;
    const std::string count = dir + ": " + std::to_string(earlier.starts);
    if (all_starts) {
      diagnostics.note(count + " runs in this folder; showing all of them together");
      continue;
    }
    diagnostics.note(count + " runs in this folder; showing the newest (--all-runs shows all)");
    for (run_files* const run : of_dir) {
      leave_out(run->files, earlier.logs);
      leave_out(run->side_files, earlier.logs);
      leave_out(run->elsewhere, earlier.logs);
      leave_out(run->aggregated, earlier.pids);
      run->earlier_info = earlier.info;
      for (log_file& file : run->files) file.consumer = 0;
      find_consumers(*run);
    }
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(), std::mem_fn(&run_files::empty)), runs.end());
}

namespace fs = std::filesystem;

std::string unused_folder(const std::string& name) {
  std::error_code ignored;
  std::string dir = name;
  for (int next = 2; fs::exists(dir, ignored) && !fs::is_empty(dir, ignored); ++next) {
    dir = name + '-' + std::to_string(next);
  }
  return dir;
}

new_run place_for_logs(const std::string& dir) {
  new_run run;
  run.prefix = default_prefix;
  const char* const set = detail::environment_text(detail::variable::log_file);
  if (dir.empty() && set != nullptr) {
    const fs::path logs = set;
    run.dir = logs.has_parent_path() ? logs.parent_path().string() : ".";
    run.prefix = logs.filename().string();
    return run;
  }
  run.dir = dir.empty() ? unused_folder("run") : dir;
  run.environment.emplace_back("LOTUS_LOG_FILE", run.dir + '/' + run.prefix);
  return run;
}

start_list::start_list() {
  std::error_code error;
  path_ = (fs::temp_directory_path(error) / "lotus_starts_XXXXXX").string();
  const int fd = error ? -1 : mkstemp(path_.data());
  if (fd < 0) throw input_error(path_ + ": " + error_text(errno));
  close(fd);
}

start_list::~start_list() {
  unlink(path_.c_str());
}

std::vector<std::pair<std::string, std::string>> start_list::places() const {
  std::vector<std::pair<std::string, std::string>> all;
  std::ifstream in(path_);
  std::error_code error;
  const fs::path here = fs::current_path(error);
  for (std::string line; std::getline(in, line);) {
    const fs::path logs = fs::path(line).lexically_normal();
    const fs::path below = logs.parent_path().lexically_relative(here);
    const bool is_below = !error && !below.empty() && *below.begin() != "..";
    const std::pair<std::string, std::string> place(
        (is_below ? below : logs.parent_path()).string(), logs.filename().string());
    all.erase(std::remove(all.begin(), all.end(), place), all.end());
    all.push_back(place);
  }
  return all;
}

}  // namespace lotus::tool
