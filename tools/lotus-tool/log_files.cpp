#include "log_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "lost_records.hpp"
#include "progress.hpp"
#include "run_info.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// The number behind the last '_' of a file name; none when there is no such number.
std::optional<std::uint64_t> number_of(std::string_view name) {
  const std::size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  const char* const first = name.data() + underscore + 1;
  const char* const last = name.data() + name.size();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(first, last, number);
  if (first == last || !is_digit(*first) || end != last || error != std::errc{}) {
    return std::nullopt;
  }
  return number;
}

file_role role_of(std::string_view name) {
  if (name.find("main_pid") != std::string_view::npos) return file_role::main;
  if (name.find("worker_pid") != std::string_view::npos) return file_role::worker;
  return file_role::unknown;
}

/// Numbers the processes that consume batches, such as the ranks of a training on several GPUs, and
/// gives each log that of its process or of the one which forked that. Where the processes are not
/// known, all logs are taken for those of one.
void find_consumers(const std::string& dir, std::vector<log_file>& files) {
  const auto is_main = [](const log_file& file) { return file.role == file_role::main; };
  if (std::count_if(files.begin(), files.end(), is_main) < 2) return;
  const run_info info = run_info::read(dir);
  std::map<const process_info*, std::uint32_t> consumers;
  for (const log_file& file : files) {
    if (!is_main(file)) continue;
    const process_info* const process = info.process_of(file.number);
    if (process == nullptr) return;
    consumers.try_emplace(process, static_cast<std::uint32_t>(consumers.size()));
  }
  if (consumers.size() < 2) return;
  std::vector<std::uint32_t> found;
  for (const log_file& file : files) {
    const process_info* process = info.process_of(file.number);
    constexpr int most_generations = 16;  // a damaged file may make a process its own ancestor
    for (int i = 0; i < most_generations && process != nullptr; ++i) {
      if (consumers.count(process) != 0) break;
      process = info.parent_of(*process);
    }
    const auto consumer = consumers.find(process);
    if (consumer == consumers.end()) return;
    found.push_back(consumer->second);
  }
  for (std::size_t i = 0; i < files.size(); ++i) files[i].consumer = found[i];
}

/// Collects logs by directory; remembers what looked almost like a log, for the error message.
class search {
 public:
  search(std::string_view prefix, diagnostics& said) : prefix_(prefix), said_(said) {}

  void look_at(const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error)) return;
    const std::string name = entry.path().filename().string();
    if (is_ring_file_name(name)) {
      with_rings_.insert(entry.path().parent_path().string());
      return;
    }
    const std::optional<std::uint64_t> number = number_of(name);
    if (name.compare(0, prefix_.size(), prefix_) != 0) {
      const std::size_t role =
          name.find(name.find("_main_pid_") != std::string::npos ? "_main_pid_" : "_worker_pid_");
      if (number && role != std::string::npos) other_prefix_ = name.substr(0, role);
      return;
    }
    if (!number) {
      if (role_of(name) != file_role::unknown) {
        said_.note(entry.path().string() +
                   ": not taken for a log, its name does not end in _<number>");
      }
      return;
    }
    const std::uint64_t bytes = entry.file_size(error);
    if (error) return;
    runs_[entry.path().parent_path().string()].push_back(
        {entry.path().string(), role_of(name), *number, bytes, {}});
  }

  std::vector<run_files> result() && {
    for (const std::string& dir : with_rings_) {
      count_in_lost_records(dir, prefix_, runs_[dir], said_);
    }
    std::vector<run_files> runs;
    for (auto& [dir, files] : runs_) {
      if (files.empty()) continue;
      std::sort(files.begin(), files.end(), [](const log_file& a, const log_file& b) {
        return std::tie(a.role, a.number, a.path) < std::tie(b.role, b.number, b.path);
      });
      find_consumers(dir, files);
      runs.push_back({dir, std::move(files)});
    }
    std::sort(runs.begin(), runs.end(),
              [](const run_files& a, const run_files& b) { return natural_less(a.dir, b.dir); });
    return runs;
  }

  const std::string& other_prefix() const noexcept { return other_prefix_; }

 private:
  std::string prefix_;
  diagnostics& said_;
  std::map<std::string, std::vector<log_file>> runs_;
  std::set<std::string> with_rings_;
  std::string other_prefix_;
};

}  // namespace

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
  return whole_a < whole_b;  // "b1" and "b01" differ after all
}

void refuse_input_as_output(const std::string& output, const std::vector<run_files>& runs,
                            const std::vector<std::string>& others, std::string_view prefix) {
  if (output == "-") return;
  std::error_code ignored;
  const auto refuse = [&](const std::string& input) {
    if (fs::equivalent(input, output, ignored)) {
      throw usage_error(output + ": is read here; choose another output");
    }
  };
  for (const run_files& run : runs) {
    for (const log_file& file : run.files) refuse(file.path);
  }
  for (const std::string& path : others) refuse(path);
  if (is_log_name(fs::path(output).filename().string(), prefix)) {
    throw usage_error(output +
                      ": would be taken for a log; choose a name that does not begin with " +
                      std::string(prefix));
  }
}

std::vector<run_files> find_runs(const std::string& dir, std::string_view prefix, diagnostics& said,
                                 unsigned readings) {
  std::error_code error;
  const fs::file_status status = fs::status(dir, error);
  if (!fs::exists(status)) {
    throw input_error(dir + ": no such directory; give the folder that holds the log files");
  }
  if (!fs::is_directory(status)) {
    throw input_error(dir + ": not a directory; give the folder that holds the log files");
  }
  search logs(prefix, said);
  fs::recursive_directory_iterator at(dir, fs::directory_options::skip_permission_denied, error);
  if (error) throw input_error(dir + ": cannot be read: " + error.message());
  while (at != fs::recursive_directory_iterator()) {
    logs.look_at(*at);
    at.increment(error);
    if (error) throw input_error(dir + ": cannot be read to its end: " + error.message());
  }
  const std::string other = logs.other_prefix();
  std::vector<run_files> runs = std::move(logs).result();
  if (runs.empty()) {
    throw input_error(dir + ": no log found, no file is named " + std::string(prefix) +
                      "..._<number>" +
                      (other.empty() ? std::string() : "; did you mean --prefix " + other + "?"));
  }
  for (const run_files& run : runs) {
    for (const log_file& file : run.files) expect_bytes(file.bytes * readings);
  }
  return runs;
}

}  // namespace lotus::tool
