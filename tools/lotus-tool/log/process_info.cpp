#include "log/process_info.hpp"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "log/operation_names.hpp"
#include "lotus/folder/hidden_files.hpp"

namespace lotus::tool {

namespace fs = std::filesystem;

namespace {

/// Maximum number of records and of deleted bytes that an information file may report. No program
/// can record so much, so a file with larger numbers is damaged, and these numbers are ignored or
/// reduced to the limit. Sums of the accepted numbers cannot overflow.
constexpr std::uint64_t max_records = std::uint64_t{1} << 48U;
constexpr std::uint64_t max_deleted_bytes = std::uint64_t{1} << 56U;

// Limits for the information files of one folder. Each thread takes a line of about 30 bytes in a
// file and 200 bytes in memory.
constexpr std::size_t max_files = 65'536;
constexpr std::uint64_t max_file_bytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20U;
constexpr std::uint64_t max_lines = 1'000'000;

/// Returns a number with separators, such as "12,234,160".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

/// Adds a process's CPU time and idle time at one moment to `readings`. `words` is the rest of a
/// line of its information file, after the key "cpu_time". Ignores a reading that cannot be
/// correct, for example because the clock was set back.
void add_reading(std::istringstream& words, std::vector<cpu_reading>& readings) {
  cpu_reading now;
  if (!(words >> now.time_ns >> now.cpu_ns) || now.time_ns < 0 || now.cpu_ns < 0) return;
  std::int64_t idle_ns = 0;
  if (words >> idle_ns && idle_ns >= 0) now.idle_ns = idle_ns;
  if (!readings.empty()) {
    const cpu_reading& before = readings.back();
    if (now.time_ns <= before.time_ns || now.cpu_ns < before.cpu_ns) return;
  }
  readings.push_back(now);
}

/// The first values of a process's lines "limits", and its CPU time then.
struct first_counts {
  bool known = false;
  system_counts at{};
};

/// Adds the rest of a line "limits" to the counts of the process. Counts that become smaller are
/// ignored.
void add_counts(std::istringstream& words, process_info& process, first_counts& first) {
  system_counts now;
  if (!(words >> now.periods >> now.stopped >> now.system_ns >> now.faults)) return;
  if (process.cpu_time.empty()) return;
  now.cpu_ns = static_cast<std::uint64_t>(process.cpu_time.back().cpu_ns);
  if (!first.known) first = {true, now};
  const system_counts& from = first.at;
  if (now.periods < from.periods || now.stopped < from.stopped || now.cpu_ns < from.cpu_ns ||
      now.system_ns < from.system_ns || now.faults < from.faults) {
    return;
  }
  process.counts = {now.periods - from.periods, now.stopped - from.stopped,
                    now.system_ns - from.system_ns, now.faults - from.faults,
                    now.cpu_ns - from.cpu_ns};
}

}  // namespace

std::string dropped_text(const record_counts& records) {
  return grouped(records.dropped) + " of " + grouped(records.all()) +
         " records were dropped: all numbers cover only the others";
}

std::string lost_text(std::uint64_t records) {
  return grouped(records) + " records of killed processes existed only in memory and are lost";
}

std::string deleted_text(const record_counts& records) {
  const std::time_t seconds = records.whole_from_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char when[32];
  std::strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &utc);
  return "limits have deleted " +
         fixed_point(static_cast<double>(records.deleted_bytes) * 1e-6, 1) +
         " MB of logs: all numbers cover only what began after " + when + " UTC";
}

double usable_cpus::count() const noexcept {
  const double all = affinity;
  return limit && *limit < all ? *limit : all;
}

std::string process_info::title() const {
  std::string text = host;
  if (rank) text += ", rank " + std::to_string(*rank);
  return text + ", pid " + std::to_string(pid);
}

std::uint64_t process_info::thread_of(std::uint64_t number) const {
  const auto other = log_tid.find(number);
  return other == log_tid.end() ? number : other->second;
}

run_processes run_processes::read(const std::string& dir, const std::set<std::string>& without) {
  run_processes all;
  // The paths of the information files, sorted. Each name ends with a process id and the time of
  // the file's creation, so of all files with one process id the newest comes last.
  std::set<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(detail::run_info_start, 0) != 0 || without.count(name) != 0) continue;
    if (paths.size() == max_files) {
      ++all.left_;
    } else {
      paths.insert(entry.path().string());
    }
  }
  for (const std::string& path : paths) all.read_file(path);
  for (const std::string& path : paths) all.assign_logs(path);
  return all;
}

void run_processes::read_file(const std::string& path) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  if (!error && bytes > std::min(max_file_bytes, max_bytes - bytes_)) {
    ++left_;
    return;
  }
  try {
    const std::string text = read_found(path, max_file_bytes);
    bytes_ = std::min(max_bytes, bytes_ + text.size());
    take_lines(text, by_file_[path]);
  } catch (const input_error&) {
    return;
  }
}

void run_processes::take_lines(const std::string& text, process_info& process) {
  std::istringstream in(text);
  first_counts first;
  for (std::string line; std::getline(in, line);) {
    if (++lines_ > max_lines) {
      ++left_;
      return;
    }
    std::istringstream words(line);
    std::string key;
    words >> key;
    const auto rest_as_name = [&words] {
      std::string name;
      std::getline(words >> std::ws, name);
      return printable(decode_name(name).substr(name.empty() ? 0 : 1));
    };
    if (key == "pid") {
      words >> process.pid;
    } else if (key == "parent") {
      words >> process.parent;
    } else if (key == "forked") {
      words >> process.forked;
    } else if (key == "run") {
      process.run = rest_as_name();
    } else if (key == "host") {
      process.host = rest_as_name();
    } else if (key == "command") {
      process.command = rest_as_name();
    } else if (key == "rank") {
      std::uint64_t rank = 0;
      if (words >> rank) process.rank = rank;
    } else if (key == "records") {
      record_counts counts;
      if (!(words >> counts.written >> counts.dropped))
        // Without numbers, the line is only reserved space, which the process fills when a
        // recording ends.
        continue;
      if (std::max(counts.written, counts.dropped) > max_records) continue;
      process.records.written = counts.written;
      process.records.dropped = counts.dropped;
    } else if (key == "lost") {
      std::uint64_t lost = 0;
      if (words >> lost && lost <= max_records) process.records.lost = lost;
    } else if (key == "forgotten") {
      std::uint64_t files = 0;
      record_counts counts;
      if (!(words >> files >> counts.deleted_bytes >> counts.whole_from_ns)) continue;
      process.records.deleted_bytes = std::min(counts.deleted_bytes, max_deleted_bytes);
      process.records.whole_from_ns = std::max<std::int64_t>(counts.whole_from_ns, 0);
    } else if (key == "snapshot") {
      if (!(words >> process.snapshot_ns)) process.snapshot_ns = 0;
    } else if (key == "cpu") {
      std::string what;
      words >> what;
      process.cpu = what == "switches"  ? cpu_measure::switches
                    : what == "batches" ? cpu_measure::batches
                    : what == "off"     ? cpu_measure::off
                                        : cpu_measure::unknown;
    } else if (key == "cpus") {
      usable_cpus cpus;
      if (!(words >> cpus.affinity)) continue;
      std::string limit_text;
      double limit = 0;
      std::uint32_t first_cpu = 0;
      words >> limit_text;
      if (std::istringstream(limit_text) >> limit && limit > 0) cpus.limit = limit;
      if (words >> first_cpu) cpus.first = first_cpu;
      if (!(words >> cpus.parents)) cpus.parents = 0;
      process.cpus = cpus;
    } else if (key == "cpu_time") {
      add_reading(words, process.cpu_time);
    } else if (key == "limits") {
      add_counts(words, process, first);
    } else if (key == "affinity") {
      std::uint64_t tid = 0;
      thread_cpus on;
      if (words >> tid >> on.count >> on.first && on.count > 0) process.affinity[tid] = on;
    } else if (key == "thread") {
      std::uint64_t tid = 0;
      if (!(words >> tid)) continue;
      const std::string name = rest_as_name();
      if (!name.empty()) process.threads[tid] = name;
    } else if (key == "back") {
      std::int64_t ns = 0;
      if (words >> ns) process.back_ns = std::max(process.back_ns, ns);
    } else if (key == "log") {
      std::uint64_t number = 0;
      std::uint64_t tid = 0;
      if (words >> number >> tid) process.log_tid[number] = tid;
    }
  }
}

void run_processes::assign_logs(const std::string& path) {
  const auto found = by_file_.find(path);
  if (found == by_file_.end()) return;
  const process_info& process = found->second;
  const auto measured = [&](std::uint64_t number) {
    cpu_measure& least = cpu_by_number_.try_emplace(number, process.cpu).first->second;
    least = std::min(least, process.cpu);
  };
  std::set<std::uint64_t> elsewhere;
  for (const auto& [number, tid] : process.log_tid) {
    elsewhere.insert(tid);
    by_number_[number] = &process;
    measured(number);
  }
  for (const auto& [tid, name] : process.threads) {
    const auto [entry, is_new] = by_number_.try_emplace(tid, &process);
    // Usually the number of a log is the id of its thread, so the log with the number `tid` belongs
    // to this process. If the process reports that the log of this thread has another number, the
    // log with the number `tid` belongs to a thread in another container.
    if (!is_new && elsewhere.count(tid) == 0) entry->second = &process;
    if (elsewhere.count(tid) == 0) measured(tid);
  }
}

cpu_measure run_processes::cpu_of(std::uint64_t number) const {
  const auto found = cpu_by_number_.find(number);
  return found == cpu_by_number_.end() ? cpu_measure::unknown : found->second;
}

const process_info* run_processes::parent_of(const process_info& process) const {
  for (const auto& [file, other] : by_file_) {
    if (other.pid == process.parent) return &other;
  }
  return nullptr;
}

record_counts run_processes::records() const {
  record_counts sum;
  for (const auto& [file, process] : by_file_) {
    sum.written += process.records.written;
    sum.dropped += process.records.dropped;
    sum.lost += process.records.lost;
    sum.deleted_bytes += process.records.deleted_bytes;
    sum.whole_from_ns = std::max(sum.whole_from_ns, process.records.whole_from_ns);
  }
  return sum;
}

std::int64_t run_processes::back_ns() const {
  std::int64_t max_ns = 0;
  for (const auto& [file, process] : by_file_) max_ns = std::max(max_ns, process.back_ns);
  return max_ns;
}

const process_info* run_processes::process_named(const std::string& ending) const {
  for (const auto& [file, process] : by_file_) {
    if (fs::path(file).filename() == detail::run_info_start + ending) return &process;
  }
  return nullptr;
}

std::optional<thread_cpus> run_processes::cpus_of_thread(std::uint64_t number) const {
  const process_info* const process = process_of(number);
  if (process == nullptr) return std::nullopt;
  const auto found = process->affinity.find(process->thread_of(number));
  if (found != process->affinity.end()) return found->second;
  const std::optional<usable_cpus>& own = process->cpus;
  if (!own || !own->first) return std::nullopt;
  // A worker process may be bound to a part of the program's CPUs before its first record.
  const bool others_have_more = std::any_of(by_file_.begin(), by_file_.end(), [&](const auto& of) {
    const process_info& other = of.second;
    return other.host == process->host && other.cpus && other.cpus->affinity > own->affinity;
  });
  return others_have_more ? std::optional(thread_cpus{own->affinity, *own->first}) : std::nullopt;
}

system_counts run_processes::counts() const {
  system_counts sum;
  for (const auto& [file, process] : by_file_) {
    sum.system_ns += process.counts.system_ns;
    sum.faults += process.counts.faults;
    sum.cpu_ns += process.counts.cpu_ns;
    if (process.counts.periods == 0 || process.counts.stopped < sum.stopped) continue;
    sum.periods = process.counts.periods;
    sum.stopped = process.counts.stopped;
  }
  return sum;
}

std::optional<usable_cpus> run_processes::cpus() const {
  std::optional<usable_cpus> most;
  for (const auto& [file, process] : by_file_) {
    if (!process.cpus || (most && process.cpus->count() <= most->count())) continue;
    most = process.cpus;
    // What starts several ranks on a machine divides its CPUs among them.
    if (process.rank) most->parents = 0;
  }
  return most;
}

cpu_usage run_processes::cpu_time() const {
  cpu_usage all;
  for (const auto& [file, process] : by_file_) {
    std::vector<cpu_reading> readings = process.cpu_time;
    // A forked process has used no CPU time before, so what it used until its first reading, it
    // used during the run.
    if (process.forked != 0 && !readings.empty() && readings.front().cpu_ns > 0) {
      const cpu_reading& first = readings.front();
      readings.insert(readings.begin(), {first.time_ns - first.cpu_ns, 0, first.idle_ns});
    }
    all.add_process(std::move(readings));
  }
  return all;
}

std::string run_processes::left(const std::string& dir) const {
  if (left_ == 0) return {};
  return dir + ": " + grouped(left_) + " " + detail::run_info_start +
         " files are not, or not wholly, read, which is more than 16 MiB in one, 64 MiB, " +
         grouped(max_files) + " files or " + grouped(max_lines) +
         " lines: processes may lack their names, and dropped records may be missing";
}

const process_info* run_processes::process_of(std::uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

}  // namespace lotus::tool
