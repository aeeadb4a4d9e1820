#include "sampling/read/located_samples.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/child_process.hpp"
#include "base/errors.hpp"
#include "base/files/unfinished.hpp"
#include "base/text.hpp"
#include "mapping/read/function_report.hpp"
#include "mapping/read/table_text.hpp"
#include "sampling/read/sample_files.hpp"
#include "sampling/read/symbols.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// Converts seconds such as "4065.297663020" to ns; nullopt if the text is no valid time or too
/// large. Two results can be added without overflow.
std::optional<std::int64_t> seconds_to_ns(std::string_view text) {
  const std::size_t dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string fraction(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  constexpr std::size_t digits_of_ns = 9;
  fraction.resize(digits_of_ns, '0');
  digits += fraction;
  std::int64_t value = 0;
  // If this limit is taken as ns since 1970, it is in the year 2116.
  constexpr std::int64_t end_of_time = std::int64_t{1} << 62U;
  if (!read_number(digits, value) || value >= end_of_time) return std::nullopt;
  return value;
}

/// Returns the ns to add to perf's times to get ns since 1970. Reads the line "# reference time: …
/// = <epoch> (TOD) = <time> (monotonic)" in perf's header.
std::int64_t epoch_offset_ns(const std::string& path, const std::string& header) {
  constexpr std::string_view start = "# reference time:";
  text_lines lines(header);
  for (std::string_view line; lines.next(line);) {
    if (line.substr(0, start.size()) != start) continue;
    const std::size_t tod = line.find(" (TOD)");
    const std::size_t clock = line.find(" (monotonic)");
    if (tod == std::string_view::npos || clock == std::string_view::npos) break;
    const std::string_view before_tod = line.substr(0, tod);
    const std::string_view before_clock = line.substr(0, clock);
    const auto epoch_ns = seconds_to_ns(before_tod.substr(before_tod.rfind(' ') + 1));
    const auto clock_ns = seconds_to_ns(before_clock.substr(before_clock.rfind(' ') + 1));
    if (epoch_ns && clock_ns) return *epoch_ns - *clock_ns;
  }
  throw input_error(path +
                    ": its times cannot be joined with logs; record with "
                    "perf record -k CLOCK_MONOTONIC");
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

/// Whether `line` begins with a process id, a thread id and a time, as in " 7/8 4065.357157840: ".
bool begins_with_ids(std::string_view line) {
  const auto digits_and = [](std::string_view word, char separator) {
    const std::size_t at = word.find_first_not_of("0123456789");
    return at != 0 && at != std::string_view::npos && word[at] == separator;
  };
  return digits_and(next_word(line), '/') && digits_and(next_word(line), '.');
}

/// Parses a line "thread's name pid/tid 4065.357157840: 500000 cpu-clock:u: 7fade0bcc9d4 function
/// name (/path)". Returns false for other lines, such as perf's warnings.
bool read_script_line(std::string_view line, std::int64_t offset_ns, located_samples& to) {
  const std::string_view full_line = line;
  while (!line.empty() && !begins_with_ids(line)) next_word(line);
  const std::string_view thread = trimmed(full_line.substr(0, full_line.size() - line.size()));
  const std::string_view ids = next_word(line);
  const std::size_t slash = ids.find('/');
  std::string_view time = next_word(line);
  const std::string_view period = next_word(line);
  std::string_view event = next_word(line);
  next_word(line);  // skips the address
  const std::size_t module = line.rfind(" (");
  if (slash == std::string_view::npos || time.empty() || time.back() != ':' || event.empty() ||
      event.back() != ':' || module == std::string_view::npos || line.back() != ')') {
    return false;
  }
  time.remove_suffix(1);
  event.remove_suffix(1);
  const auto time_ns = seconds_to_ns(time);
  located_sample s;
  const auto number = [](std::string_view text, auto& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
  };
  if (!time_ns || !number(ids.substr(0, slash), s.pid) || !number(ids.substr(slash + 1), s.tid) ||
      !number(period, s.value)) {
    return false;
  }
  s.time_ns = *time_ns + offset_ns;
  to.reaches(s.time_ns);
  // perf prints ":8" for a thread whose name it does not know.
  if (!thread.empty() && thread.front() != ':') to.thread_names[s.tid] = thread;
  s.event = to.event_id(event);
  s.function = to.function_id({function_key(trimmed(line.substr(0, module)),
                                            line.substr(module + 2, line.size() - module - 3)),
                               {}});
  to.samples.push_back(s);
  return true;
}

/// Returns the last message in perf's output: the last line that is neither a sample nor a comment.
std::string last_lines(const std::string& output) {
  std::ifstream in(output);
  std::string words;
  located_samples samples;
  for (std::string line; std::getline(in, line); samples.samples.clear()) {
    if (trimmed(line).empty() || line.front() == '#' || read_script_line(line, 0, samples))
      continue;
    words = trimmed(line);
  }
  return words;
}

/// Runs perf and appends its output to the file `output`. Throws input_error if perf fails.
/// @param path  the file that perf reads, for error messages.
void run_perf(const std::string& path, const std::vector<std::string>& arguments,
              const std::string& output) {
  command what;
  what.arguments = arguments;
  what.output = output;
  const exit_state end = run_command(what);
  if (end.status == 0) return;
  const std::string words = last_lines(output);
  throw input_error(path + ": " + arguments[0] + ' ' + arguments[1] + " cannot read it: " +
                    (words.empty() ? "status " + std::to_string(end.status) : words));
}

void add_perf_data(const std::string& path, located_samples& to) {
  const scratch_folder scratch(fs::temp_directory_path().string());
  const std::string header = scratch.file("header");
  const std::string script = scratch.file("script");
  run_perf(path, {"perf", "report", "--header-only", "-i", path}, header);
  run_perf(path,
           {"perf", "script", "-i", path, "-F", "comm,pid,tid,time,period,event,ip,sym,dso", "--ns",
            "-G", "--no-inline"},
           script);
  const std::int64_t offset_ns = epoch_offset_ns(path, read_text(header));
  std::ifstream in(script);
  for (std::string line; std::getline(in, line);) read_script_line(line, offset_ns, to);
}

void add_own_samples(const std::string& path, located_samples& to, diagnostic_log& diagnostics) {
  const samples_file file = read_samples(path, diagnostics);
  symbol_source symbols(diagnostics);
  const std::uint32_t event = to.event_id("cpu-clock");
  to.samples.reserve(to.samples.size() + file.samples.size());
  for (const sample& s : file.samples) {
    const code_place place = place_of(s, file, symbols);
    to.samples.push_back(
        {file.to_epoch_ns(s.time_ns), file.interval_ns, s.tid,
         to.function_id({function_key(place.function, place.module), place.inlined}), event,
         s.pid});
  }
  for (const auto& [tid, name] : file.thread_names) to.thread_names[tid] = name;
  for (const clock_pair& moment : file.clocks) to.reaches(moment.realtime_ns);
}

}  // namespace

std::uint32_t located_samples::function_id(const located_function& function) {
  const auto [at, fresh] =
      known_functions_.try_emplace(function, static_cast<std::uint32_t>(functions.size()));
  if (fresh) functions.push_back(function);
  return at->second;
}

std::uint32_t located_samples::event_id(std::string_view name) {
  const auto at = std::find(events.begin(), events.end(), name);
  if (at != events.end()) return static_cast<std::uint32_t>(at - events.begin());
  events.emplace_back(name);
  return static_cast<std::uint32_t>(events.size() - 1);
}

void located_samples::reaches(std::int64_t time_ns) noexcept {
  from_ns = std::min(from_ns, time_ns);
  to_ns = std::max(to_ns, time_ns);
}

void add_samples(const std::string& path, located_samples& to, diagnostic_log& diagnostics) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw input_error(path + ": cannot be read");
  std::string magic(8, '\0');
  if (!in.read(magic.data(), static_cast<std::streamsize>(magic.size()))) {
    throw input_error(path + ": contains no samples");
  }
  if (magic == "PERFILE2") return add_perf_data(path, to);
  add_own_samples(path, to, diagnostics);
}

}  // namespace lotus::tool
