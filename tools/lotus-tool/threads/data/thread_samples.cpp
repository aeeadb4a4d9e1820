#include "threads/data/thread_samples.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

// A file of samples consists of these kinds of lines. The lines of each kind (module, place, stack
// and thread) are numbered from 0, and other lines refer to these numbers, such as <thread>.
//   lotus-threads,1                                  the first line
//   sampling,<ns between CPU samples>,<wait samples per s>,<CPU seconds per s>,<ns since 1970>,
//     <seconds by which wait samples were late>
//   module,<path>
//   place,<module>,<offset in the file, hexadecimal>
//   stack,<place>[;<place>...]                       the innermost call first; may be empty
//   process,<pid>,<path of its program>
//   thread,<pid>,<tid>,<wait samples>,<waits>,<span ns>,<CPU ns>,<queue ns>,<name>
//   cpu,<thread>,<stack>,<count>
//   wait,<thread>,<stack>,<count>,<reason>,<address, hexadecimal>,<holder's tid>,<what>
constexpr std::string_view first_line = "lotus-threads,1";

/// Replaces control characters in a text, so that it fits on one line of the file.
std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string hexadecimal(std::uint64_t value) {
  char digits[16];
  const char* const end = std::to_chars(std::begin(digits), std::end(digits), value, 16).ptr;
  return {static_cast<const char*>(digits), end};
}

/// Reads the fields of a line, which commas separate, one after another.
class fields {
 public:
  explicit fields(std::string_view line) : rest_(line) {}

  std::string_view text() {
    const std::size_t at = rest_.find(',');
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + 1);
    return taken;
  }
  template <class Number>
  bool number(Number& value, int base = 10) {
    const std::string_view from = text();
    const char* const end = from.data() + from.size();
    const auto [after, error] = std::from_chars(from.data(), end, value, base);
    return error == std::errc{} && after == end;
  }
  bool decimal(double& value) {
    const std::string_view from = text();
    const char* const end = from.data() + from.size();
    const auto [after, error] = std::from_chars(from.data(), end, value);
    return error == std::errc{} && after == end && value >= 0;
  }
  std::string rest() const { return std::string(rest_); }

 private:
  std::string_view rest_;
};

bool take_stack(std::string_view line, thread_samples& to) {
  sampled_stack stack;
  while (!line.empty()) {
    const std::size_t at = line.find(';');
    std::uint32_t place = 0;
    const std::string_view number = line.substr(0, at);
    const auto [after, error] =
        std::from_chars(number.data(), number.data() + number.size(), place);
    if (error != std::errc{} || after != number.data() + number.size() ||
        place >= to.places.size()) {
      return false;
    }
    stack.push_back(place);
    line.remove_prefix(at == std::string_view::npos ? line.size() : at + 1);
  }
  to.stacks.push_back(std::move(stack));
  return true;
}

bool take_reason(std::string_view word, lotus::detail::wait_reason& reason) {
  for (std::size_t i = 0; i < lotus::detail::wait_reasons; ++i) {
    if (word != lotus::detail::wait_reason_words[i]) continue;
    reason = static_cast<lotus::detail::wait_reason>(i);
    return true;
  }
  return false;
}

bool take_sample(fields of, bool waits, thread_samples& to) {
  thread_sample s;
  s.waits = waits;
  if (!of.number(s.thread) || !of.number(s.stack) || !of.number(s.count) ||
      s.thread >= to.threads.size() || s.stack >= to.stacks.size()) {
    return false;
  }
  if (waits) {
    if (!take_reason(of.text(), s.reason) || !of.number(s.address, 16) || !of.number(s.holder)) {
      return false;
    }
    s.what = of.rest();
  }
  to.samples.push_back(std::move(s));
  return true;
}

bool take_line(std::string_view line, thread_samples& to) {
  fields of(line);
  const std::string_view kind = of.text();
  if (kind == "sampling") {
    return of.number(to.interval_ns) && of.decimal(to.wait_samples_per_s) && of.decimal(to.cost) &&
           of.number(to.time_ns) && (of.rest().empty() || of.decimal(to.late_s));
  }
  if (kind == "module") {
    to.modules.push_back(of.rest());
    return true;
  }
  if (kind == "place") {
    code_offset place;
    if (!of.number(place.module) || !of.number(place.offset, 16) ||
        place.module >= to.modules.size()) {
      return false;
    }
    to.places.push_back(place);
    return true;
  }
  if (kind == "stack") return take_stack(of.rest(), to);
  if (kind == "process") {
    sampled_process process;
    if (!of.number(process.pid)) return false;
    process.program = of.rest();
    to.processes.push_back(std::move(process));
    return true;
  }
  if (kind == "thread") {
    sampled_thread t;
    if (!of.number(t.pid) || !of.number(t.tid) || !of.number(t.wait_samples) ||
        !of.number(t.waits) || !of.number(t.span_ns) || !of.number(t.cpu_ns) ||
        !of.number(t.queue_ns)) {
      return false;
    }
    t.name = of.rest();
    to.threads.push_back(std::move(t));
    return true;
  }
  return (kind == "cpu" || kind == "wait") && take_sample(of, kind == "wait", to);
}

/// Returns the path of the newest file of samples in a folder; "" if there is none.
std::string newest_file(const std::string& dir) {
  std::string newest;
  fs::file_time_type time{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(thread_samples_start, 0) != 0 || !is_found_file(entry)) continue;
    const auto changed = entry.last_write_time(error);
    if (!newest.empty() && changed < time) continue;
    newest = entry.path().string();
    time = changed;
  }
  return newest;
}

}  // namespace

std::string thread_samples_text(const thread_samples& samples) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text(first_line);
  text += "\nsampling," + number(samples.interval_ns) + ',' + number(samples.wait_samples_per_s) +
          ',' + number(samples.cost) + ',' + number(samples.time_ns) + ',' +
          number(samples.late_s) + '\n';
  for (const std::string& path : samples.modules) text += "module," + on_one_line(path) + '\n';
  for (const code_offset& place : samples.places) {
    text += "place," + number(place.module) + ',' + hexadecimal(place.offset) + '\n';
  }
  for (const sampled_stack& stack : samples.stacks) {
    text += "stack,";
    for (std::size_t i = 0; i < stack.size(); ++i) text += (i == 0 ? "" : ";") + number(stack[i]);
    text += '\n';
  }
  for (const sampled_process& p : samples.processes) {
    text += "process," + number(p.pid) + ',' + on_one_line(p.program) + '\n';
  }
  for (const sampled_thread& t : samples.threads) {
    text += "thread," + number(t.pid) + ',' + number(t.tid) + ',' + number(t.wait_samples) + ',' +
            number(t.waits) + ',' + number(t.span_ns) + ',' + number(t.cpu_ns) + ',' +
            number(t.queue_ns) + ',' + on_one_line(t.name) + '\n';
  }
  for (const thread_sample& s : samples.samples) {
    text += s.waits ? "wait," : "cpu,";
    text += number(s.thread) + ',' + number(s.stack) + ',' + number(s.count);
    if (s.waits) {
      text.append(1, ',').append(
          lotus::detail::wait_reason_words[static_cast<std::size_t>(s.reason)]);
      text += ',' + hexadecimal(s.address) + ',' + number(s.holder) + ',' + on_one_line(s.what);
    }
    text += '\n';
  }
  return text;
}

thread_samples parse_thread_samples(std::string_view text, const std::string& path,
                                    diagnostic_log& diagnostics) {
  thread_samples samples;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      diagnostics.note(path + ": incomplete end ignored");
      break;
    }
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (++number == 1 && line != first_line) {
      throw input_error(path + ": not a file of sampled threads of this version");
    }
    if (number > 1 && !take_line(line, samples)) {
      diagnostics.malformed(path, number, "no sample of a thread");
    }
  }
  diagnostics.end_of_file(path);
  if (samples.threads.empty()) throw input_error(path + ": no thread was sampled");
  return samples;
}

bool has_thread_samples(const std::string& dir) {
  return !newest_file(dir).empty();
}

thread_samples read_thread_samples(const std::string& dir, diagnostic_log& diagnostics) {
  const std::string newest = newest_file(dir);
  if (newest.empty()) {
    throw input_error(dir +
                      ": no samples of threads; record a run with 'lotus-tool run -- PROGRAM'");
  }
  return parse_thread_samples(read_found(newest), newest, diagnostics);
}

}  // namespace lotus::tool
