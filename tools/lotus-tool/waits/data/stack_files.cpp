#include "waits/data/stack_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "waits/data/process_files.hpp"

namespace lotus::tool {
namespace {

/// Returns the files of stacks that can be read. Leaves out files above 64 MiB, because a process
/// writes at most a few MiB.
std::vector<process_file> files_of_stacks(const run_files& run, diagnostic_log& diagnostics) {
  constexpr std::uintmax_t max_bytes = std::uintmax_t{64} << 20U;
  std::vector<process_file> files =
      files_of_processes(run, lotus::detail::stacks_file_start, diagnostics);
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const process_file& file) {
                               std::error_code error;
                               return ::access(file.path.c_str(), R_OK) != 0 ||
                                      std::filesystem::file_size(file.path, error) > max_bytes ||
                                      error;
                             }),
              files.end());
  return files;
}

bool read_hexadecimal(std::string_view text, std::uint64_t& value) {
  return read_number(text, value, 16);
}

/// Parses the lines of one file that contain stacks and mappings of code.
class stack_reader {
 public:
  explicit stack_reader(process_stacks& to) : to_(to) {}

  /// Parses one line. Returns false if the line is damaged.
  bool take_line(std::string_view line) {
    if (take_code_line(line, texts_, names_)) return true;
    const std::string_view kind = take(line, ',');
    // find_stacks() reports damaged lines of these kinds.
    if (kind == "seen" || kind == "held") return true;
    if (kind == "names") {
      names_ = {};
      texts_.clear();
      return true;
    }
    if (kind == "calls") return parse_calls(line);
    if (kind == "moment") {
      to_.states.clear();
      return read_number(line, to_.states_ns);
    }
    if (kind == "state") return parse_state(line);
    if (kind == "maps") {
      to_.code.emplace_back();
      return true;
    }
    if (to_.code.empty()) to_.code.emplace_back();
    if (kind == "code") return parse_code(line);
    if (kind == "build") {
      if (to_.code.back().empty()) return false;
      to_.code.back().back().build = line;
      return true;
    }
    return kind == "stack" && parse_stack(line);
  }

 private:
  bool parse_code(std::string_view line) {
    mapped_code part;
    if (!read_hexadecimal(take(line, ','), part.begin) ||
        !read_hexadecimal(take(line, ','), part.end) ||
        !read_hexadecimal(take(line, ','), part.file_offset) ||
        !read_hexadecimal(take(line, ','), part.file_begin) || line.empty()) {
      return false;
    }
    part.path = line;
    std::vector<mapped_code>& all = to_.code.back();
    if (part.end <= part.begin || (!all.empty() && part.begin < all.back().end)) return false;
    all.push_back(std::move(part));
    return true;
  }

  bool parse_calls(std::string_view line) {
    constexpr std::size_t max_calls = std::size_t{1} << 18U;  // of all stacks of a process
    std::uint64_t number = 0;
    if (!read_hexadecimal(take(line, ','), number)) return false;
    std::vector<source_place> calls;
    while (!line.empty()) {
      std::size_t place = 0;
      if (!read_number(take(line, ';'), place) || place >= names_.names.size()) return false;
      const std::vector<source_place>& here = names_.names[place];
      if ((calls_ += here.size()) > max_calls) return false;
      calls.insert(calls.end(), here.begin(), here.end());
    }
    to_.named[number] = std::move(calls);
    return true;
  }

  bool parse_state(std::string_view line) {
    thread_state state;
    if (!read_number(take(line, ','), state.tid)) return false;
    const std::string_view reason = take(line, ',');
    state.waits = reason != "running";
    if ((state.waits && !read_reason(reason, state.wait.reason)) ||
        !read_hexadecimal(take(line, ','), state.wait.address) ||
        !read_number(take(line, ','), state.wait.holder) ||
        !read_hexadecimal(take(line, ','), state.wait.stack) ||
        !read_number(take(line, ','), state.batch_since_ns)) {
      return false;
    }
    state.name = take(line, ',');
    state.wait.what = line;
    to_.states.push_back(std::move(state));
    return true;
  }

  bool parse_stack(std::string_view line) {
    constexpr std::uint64_t max_bytes = stack_copy::max_bytes;
    constexpr std::size_t max_sum = std::size_t{64} << 20U;  // a process writes at most 8 MiB
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    recorded_stack stack;
    if (!read_hexadecimal(take(line, ','), number) || number == 0 ||
        !read_hexadecimal(take(line, ','), stack.copy.pc) ||
        !read_hexadecimal(take(line, ','), stack.copy.sp) ||
        !read_hexadecimal(take(line, ','), bytes) || bytes > max_bytes ||
        (bytes_ += bytes) > max_sum) {
      return false;
    }
    stack.copy.bytes.resize(bytes);
    stack.code = to_.code.size() - 1;
    take(line, ' ');
    while (!line.empty()) {
      if (!parse_word(take(line, ' '), stack.copy)) return false;
    }
    to_.by_number[number] = std::move(stack);
    return true;
  }

  static bool parse_word(std::string_view text, stack_copy& to) {
    const std::size_t mark = text.find_first_of(":+");
    std::uint64_t place = 0;
    std::uint64_t word = 0;
    if (mark == std::string_view::npos || !read_hexadecimal(text.substr(0, mark), place) ||
        !read_hexadecimal(text.substr(mark + 1), word) || place >= to.bytes.size() / sizeof word) {
      return false;
    }
    if (text[mark] == '+') word += to.sp;
    std::memcpy(to.bytes.data() + place * sizeof word, &word, sizeof word);
    return true;
  }

  process_stacks& to_;
  std::size_t bytes_ = 0;  ///< size of all stacks
  thread_samples names_;   ///< names of calls, which lines "calls" refer to
  std::vector<std::string> texts_;
  std::size_t calls_ = 0;  ///< number of all calls in lines "calls"
};

std::vector<wait_sample>* samples_of(std::vector<process_waits>& processes,
                                     const std::string& ending) {
  const auto found = std::find_if(processes.begin(), processes.end(),
                                  [&](const process_waits& p) { return p.ending == ending; });
  return found == processes.end() ? nullptr : &found->samples;
}

}  // namespace

void find_stacks(const run_files& run, std::vector<process_waits>& processes,
                 diagnostic_log& diagnostics) {
  if (processes.empty()) return;
  for (const process_file& file : files_of_stacks(run, diagnostics)) {
    std::vector<wait_sample>* const samples = samples_of(processes, file.ending);
    read_whole_lines(file.path, "not a stack; ", diagnostics, [samples](std::string_view line) {
      const std::string_view kind = take(line, ',');
      if (kind != "seen" && kind != "held") return true;
      std::int64_t time_ns = 0;
      std::uint64_t tid = 0;
      std::uint64_t number = 0;
      if (!read_number(take(line, ','), time_ns) || !read_number(take(line, ','), tid) ||
          !read_hexadecimal(line, number)) {
        return false;
      }
      if (samples == nullptr) return true;
      const std::pair key{time_ns, tid};
      const auto key_of = [](const wait_sample& s) { return std::pair{s.time_ns, s.tid}; };
      const auto at = std::lower_bound(
          samples->begin(), samples->end(), key,
          [&](const wait_sample& sample, const auto& of) { return key_of(sample) < of; });
      if (at == samples->end() || key_of(*at) != key) return true;
      if (kind == "seen") {
        at->stack = number;
      } else {
        at->holder_stack = number;
      }
      return true;
    });
  }
}

process_stacks read_stacks(const run_files& run, const std::string& ending,
                           diagnostic_log& diagnostics) {
  process_stacks all;
  for (const process_file& file : files_of_stacks(run, diagnostics)) {
    if (file.ending != ending) continue;
    stack_reader lines(all);
    read_whole_lines(file.path, "not a stack; ", diagnostics,
                     [&lines](std::string_view line) { return lines.take_line(line); });
  }
  return all;
}

}  // namespace lotus::tool
