#include "waits/data/wait_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/files/found_file.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_reader.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/variable_names.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// When a file with wait samples becomes too long, the library renames it to a name with this end
/// and continues in a new file.
constexpr std::string_view older_end = "_older";

std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

template <class Number>
bool read_number(std::string_view text, Number& value, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc{} && behind == end && value >= 0;
}

bool read_reason(std::string_view word, wait_reason& reason) {
  for (std::size_t i = 0; i < lotus::detail::wait_reasons; ++i) {
    if (word != lotus::detail::wait_reason_words[i]) continue;
    reason = static_cast<wait_reason>(i);
    return true;
  }
  return false;
}

/// Parses the lines of a file with wait samples and stores the samples in `to`.
class line_reader {
 public:
  line_reader(process_waits& to, variable_names& variables) : to_(to), variables_(variables) {}

  /// Parses one line. Returns false if the line is damaged.
  bool take_line(std::string_view line) {
    const std::string_view kind = take(line, ',');
    if (kind == "look") return parse_sample(line);
    std::uint64_t id = 0;
    if (!read_number(take(line, ','), id) || id == 0) return false;
    if (kind == "object") {
      objects_[id] = line;
      return !line.empty();
    }
    std::uint64_t address = 0;
    std::uint64_t base = 0;
    if (kind != "variable" || !read_number(take(line, ','), address, 16) ||
        !read_number(take(line, ','), base, 16) || base > address || line.empty()) {
      return false;
    }
    objects_[id] = variables_.at(std::string(line), address - base);
    named_[address] = objects_[id];
    return true;
  }

  /// Sets the missing names of variables in samples. A name may be missing because the line with
  /// the name came after the sample.
  void name_all() {
    for (wait_sample& sample : to_.samples) {
      const auto known = named_.find(sample.address);
      if (sample.what.empty() && known != named_.end()) sample.what = known->second;
    }
  }

 private:
  bool parse_sample(std::string_view line) {
    wait_sample sample;
    std::uint64_t object = 0;
    if (!read_number(take(line, ','), sample.time_ns) ||
        !read_number(take(line, ','), sample.tid) || !read_reason(take(line, ','), sample.reason) ||
        !read_number(take(line, ','), object) ||
        !read_number(take(line, ','), sample.address, 16) ||
        !read_number(take(line, ','), sample.holder) || !read_number(line, sample.ns)) {
      return false;
    }
    const auto known = objects_.find(object);
    if (known != objects_.end()) sample.what = known->second;
    to_.samples.push_back(std::move(sample));
    return true;
  }

  process_waits& to_;
  variable_names& variables_;
  std::map<std::uint64_t, std::string> objects_;
  std::map<std::uint64_t, std::string> named_;  // names of variables by address
};

void read_file(const std::string& path, process_waits& to, variable_names& variables,
               diagnostic_log& diagnostics) {
  log_file file;
  file.path = path;
  std::error_code error;
  file.bytes = fs::file_size(path, error);
  if (error || file.bytes == 0) return;
  line_reader lines(to, variables);
  std::uint64_t number = 0;
  std::uint64_t damaged = 0;
  std::uint64_t first = 0;
  block_reader blocks(file);
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    while (!block.empty()) {
      // Ignore a last line without a line end: the process may still be writing it.
      if (block.find('\n') == std::string_view::npos) break;
      ++number;
      const std::string_view line = take(block, '\n');
      if (line.empty() || lines.take_line(line)) continue;
      if (damaged++ == 0) first = number;
    }
    if (!block.empty()) break;
  }
  lines.name_all();
  if (damaged == 0) return;
  diagnostics.malformed(path, first,
                        "not a wait sample; " + std::to_string(damaged) +
                            (damaged == 1 ? " such line" : " such lines") +
                            " ignored, all others are used");
  diagnostics.end_of_file(path);
}

}  // namespace

std::vector<process_waits> read_waits(const run_files& run, diagnostic_log& diagnostics) {
  const std::string& dir = run.info_dir.empty() ? run.dir : run.info_dir;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(lotus::detail::waits_file_start, 0) != 0) continue;
    if (is_found_file(entry)) {
      names.push_back(name);
    } else {
      diagnostics.warning(entry.path().string() + ": ignored: it is a link or not a regular file");
    }
  }
  std::sort(names.begin(), names.end());
  std::map<std::string, process_waits> by_ending;
  variable_names variables;
  for (const std::string& name : names) {
    std::string ending = name.substr(std::string_view(lotus::detail::waits_file_start).size());
    const bool older =
        ending.size() > older_end.size() &&
        ending.compare(ending.size() - older_end.size(), older_end.size(), older_end.data()) == 0;
    if (older) ending.resize(ending.size() - older_end.size());
    if (run.earlier_info.count(lotus::detail::run_info_start + ending) != 0) continue;
    process_waits& process = by_ending[ending];
    process.ending = ending;
    std::string path = dir;
    path.append(1, '/').append(name);
    read_file(path, process, variables, diagnostics);
  }
  std::vector<process_waits> all;
  for (auto& [ending, process] : by_ending) {
    std::stable_sort(
        process.samples.begin(), process.samples.end(),
        [](const wait_sample& a, const wait_sample& b) { return a.time_ns < b.time_ns; });
    if (!process.samples.empty()) all.push_back(std::move(process));
  }
  return all;
}

}  // namespace lotus::tool
