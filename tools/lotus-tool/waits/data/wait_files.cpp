#include "waits/data/wait_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/process_files.hpp"
#include "waits/data/stack_files.hpp"
#include "waits/data/variable_names.hpp"

namespace lotus::tool {
namespace {

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
  line_reader lines(to, variables);
  read_whole_lines(path, "not a wait sample; ", diagnostics,
                   [&lines](std::string_view line) { return lines.take_line(line); });
  lines.name_all();
}

}  // namespace

bool read_reason(std::string_view word, wait_reason& reason) {
  for (std::size_t i = 0; i < lotus::detail::wait_reasons; ++i) {
    if (word != lotus::detail::wait_reason_words[i]) continue;
    reason = static_cast<wait_reason>(i);
    return true;
  }
  return false;
}

std::vector<process_waits> read_waits(const run_files& run, diagnostic_log& diagnostics) {
  std::map<std::string, process_waits> by_ending;
  variable_names variables;
  const auto files = files_of_processes(run, lotus::detail::waits_file_start, diagnostics);
  for (const process_file& file : files) {
    process_waits& process = by_ending[file.ending];
    process.ending = file.ending;
    read_file(file.path, process, variables, diagnostics);
  }
  std::vector<process_waits> all;
  for (auto& [ending, process] : by_ending) {
    std::stable_sort(
        process.samples.begin(), process.samples.end(),
        [](const wait_sample& a, const wait_sample& b) { return a.time_ns < b.time_ns; });
    if (!process.samples.empty()) all.push_back(std::move(process));
  }
  find_stacks(run, all, diagnostics);
  return all;
}

}  // namespace lotus::tool
