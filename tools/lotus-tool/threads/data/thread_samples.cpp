#include "threads/data/thread_samples.hpp"

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

// A file of samples consists of these kinds of lines. The lines of each kind (module, place, stack
// and thread) are numbered from 0, and other lines refer to these numbers, such as <thread>.
//   lotus-threads,1                                  the first line
//   sampling,<ns between CPU samples>,<wait samples per s>,<CPU seconds per s>,<ns since 1970>,
//     <seconds by which wait samples were late>
//   module,<path>
//   build,<module>,<build id>                        may be absent
//   place,<module>,<offset in the file, hexadecimal>
//   stack,<place>[;<place>...]                       the innermost call first; may be empty
//   process,<pid>,<path of its program>
//   thread,<pid>,<tid>,<wait samples>,<waits>,<span ns>,<CPU ns>,<queue ns>,<name>
//   cpu,<thread>,<stack>,<count>
//   wait,<thread>,<stack>,<count>,<reason>,<address, hexadecimal>,<holder's tid>,<what>
//     The reason "poll" is followed by <what identifies several things, or nothing> too.
// The lines that follow may be absent. Times are relative to the beginning of the recording.
//   run,<duration ns>,<CPUs>,<CPU ns of all processes>,<number of threads without a line>
//   life,<thread>,<start ns>,<end ns, or 0>,<1 if it ran after the first wait sample, else 0>,
//     <tid of the thread that started it, or 0>
//   text,<text>                                      numbered from 1; 0 is the empty text
//   frame,<place>,<text of the function>,<text of the module>,<text of the file>,<line>,
//     <has name>,<text of the defining file>,<first line>,<has object>,<is inlined>
//   at,<sample, of all cpu and wait lines>,<ms>[;<ms>...]
//   round,<ms>,<number of threads>,<thread>=<sample, or -1, or -2>[;...]
//   end,<pid>,<1: reads, 2: writes, 3: both>,<what>
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

  std::string_view text() { return take(rest_, ','); }
  template <class Number>
  bool number(Number& value, int base = 10) {
    return read_whole(text(), value, base);
  }
  bool decimal(double& value) { return read_number(text(), value); }
  std::string rest() const { return std::string(rest_); }

 private:
  std::string_view rest_;
};

/// Reads numbers that `separator` separates. Returns false if there is anything else.
template <class Number>
bool take_numbers(std::string_view line, char separator, std::vector<Number>& to) {
  while (!line.empty()) {
    if (!read_whole(take(line, separator), to.emplace_back())) return false;
  }
  return true;
}

bool take_stack(std::string_view line, thread_samples& to) {
  sampled_stack stack;
  if (!take_numbers(line, ';', stack)) return false;
  for (const std::uint32_t place : stack) {
    if (place >= to.places.size()) return false;
  }
  to.stacks.push_back(std::move(stack));
  return true;
}

bool take_round(fields of, thread_samples& to) {
  sampled_round round;
  if (!of.number(round.at_ms) || !of.number(round.alive)) return false;
  const std::string states = of.rest();
  std::string_view left(states);
  while (!left.empty()) {
    std::vector<std::int64_t> both;
    if (!take_numbers(take(left, ';'), '=', both) || both.size() != 2) return false;
    const auto threads = static_cast<std::int64_t>(to.threads.size());
    const auto samples = static_cast<std::int64_t>(to.samples.size());
    if (both[0] < 0 || both[0] >= threads || both[1] < sampled_round::waits_unknown ||
        both[1] >= samples) {
      return false;
    }
    round.states.push_back(
        {static_cast<std::uint32_t>(both[0]), static_cast<std::int32_t>(both[1])});
  }
  to.rounds.push_back(std::move(round));
  return true;
}

bool take_life(fields of, thread_samples& to) {
  std::size_t thread = 0;
  unsigned woke = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint32_t parent = 0;
  if (!of.number(thread) || !of.number(started_ns) || !of.number(ended_ns) || !of.number(woke) ||
      !of.number(parent) || thread >= to.threads.size()) {
    return false;
  }
  to.threads[thread].started_ns = started_ns;
  to.threads[thread].ended_ns = ended_ns;
  to.threads[thread].woke = woke != 0;
  to.threads[thread].parent = parent;
  return true;
}

/// @param texts  the texts that were read so far.
bool take_frame(fields of, const std::vector<std::string>& texts, thread_samples& to) {
  std::size_t place = 0;
  source_place frame;
  const auto text = [&](std::string& value) {
    std::size_t number = 0;
    if (!of.number(number) || number > texts.size()) return false;
    if (number > 0) value = texts[number - 1];
    return true;
  };
  const auto flag = [&of](bool& value) {
    unsigned number = 0;
    if (!of.number(number)) return false;
    value = number != 0;
    return true;
  };
  if (!of.number(place) || place >= to.places.size() || !text(frame.function) ||
      !text(frame.module) || !text(frame.file) || !of.number(frame.line) || !flag(frame.has_name) ||
      !text(frame.defined_in) || !of.number(frame.defined_at) || !flag(frame.has_object) ||
      !flag(frame.is_inlined)) {
    return false;
  }
  to.names.resize(to.places.size());
  to.names[place].push_back(std::move(frame));
  return true;
}

bool take_end(fields of, thread_samples& to) {
  open_end end;
  unsigned mode = 0;
  if (!of.number(end.pid) || !of.number(mode)) return false;
  end.reads = (mode & 1U) != 0;
  end.writes = (mode & 2U) != 0;
  end.what = of.rest();
  to.ends.push_back(std::move(end));
  return true;
}

bool take_sample(fields of, bool waits, thread_samples& to) {
  thread_sample s;
  s.waits = waits;
  if (!of.number(s.thread) || !of.number(s.stack) || !of.number(s.count) ||
      s.thread >= to.threads.size() || s.stack >= to.stacks.size()) {
    return false;
  }
  if (waits) {
    if (!read_reason(of.text(), s.reason)) return false;
    if (s.reason == lotus::detail::wait_reason::poll) s.polled = of.text();
    if (!of.number(s.address, 16) || !of.number(s.holder)) return false;
    s.what = of.rest();
  }
  to.samples.push_back(std::move(s));
  return true;
}

bool take_line(std::string_view line, std::vector<std::string>& texts, thread_samples& to) {
  if (take_code_line(line, texts, to)) return true;
  fields of(line);
  const std::string_view kind = of.text();
  if (kind == "sampling") {
    return of.number(to.interval_ns) && of.decimal(to.wait_samples_per_s) && of.decimal(to.cost) &&
           of.number(to.time_ns) && (of.rest().empty() || of.decimal(to.late_s));
  }
  if (kind == "stack") return take_stack(of.rest(), to);
  if (kind == "life") return take_life(of, to);
  if (kind == "round") return take_round(of, to);
  if (kind == "end") return take_end(of, to);
  if (kind == "run") {
    return of.number(to.duration_ns) && of.number(to.cpus) && of.number(to.all_cpu_ns) &&
           of.number(to.more_threads);
  }
  if (kind == "at") {
    std::size_t sample = 0;
    return of.number(sample) && sample < to.samples.size() &&
           take_numbers(of.rest(), ';', to.samples[sample].at_ms);
  }
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

/// Writes the calls at each place. Each text, such as a long name of a function, is written once.
std::string names_text(const thread_samples& samples) {
  std::map<std::string, std::size_t> known{{"", 0}};
  std::string texts;
  std::string frames;
  const auto text = [&](const std::string& value) {
    const auto [at, is_new] = known.try_emplace(value, known.size());
    if (is_new) texts += "text," + on_one_line(value) + '\n';
    return ',' + std::to_string(at->second);
  };
  for (std::size_t place = 0; place < samples.names.size(); ++place) {
    for (const source_place& frame : samples.names[place]) {
      frames += "frame," + std::to_string(place);
      frames += text(frame.function) + text(frame.module) + text(frame.file);
      frames += ',' + std::to_string(frame.line) + (frame.has_name ? ",1" : ",0");
      frames += text(frame.defined_in) + ',' + std::to_string(frame.defined_at);
      frames.append(frame.has_object ? ",1" : ",0").append(frame.is_inlined ? ",1\n" : ",0\n");
    }
  }
  return texts + frames;
}

template <class Number>
std::string list_text(const std::vector<Number>& all) {
  return joined(all, ";", [](Number value) { return std::to_string(value); });
}

std::string round_text(const sampled_round& round) {
  std::string text = "round," + std::to_string(round.at_ms) + ',' + std::to_string(round.alive);
  char separator = ',';
  for (const sampled_round::state& one : round.states) {
    text += separator + std::to_string(one.thread) + '=' + std::to_string(one.sample);
    separator = ';';
  }
  return text + (round.states.empty() ? ",\n" : "\n");
}

}  // namespace

bool read_reason(std::string_view word, lotus::detail::wait_reason& reason) {
  for (std::size_t i = 0; i < lotus::detail::wait_reasons; ++i) {
    if (word != lotus::detail::wait_reason_words[i]) continue;
    reason = static_cast<lotus::detail::wait_reason>(i);
    return true;
  }
  return false;
}

bool take_code_line(std::string_view line, std::vector<std::string>& texts, thread_samples& to) {
  fields of(line);
  const std::string_view kind = of.text();
  if (kind == "module") {
    to.modules.push_back(of.rest());
    return true;
  }
  if (kind == "build") {
    std::size_t module = 0;
    if (!of.number(module) || module >= to.modules.size()) return false;
    to.builds.resize(to.modules.size());
    to.builds[module] = of.rest();
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
  if (kind == "text") {
    texts.push_back(of.rest());
    return true;
  }
  return kind == "frame" && take_frame(of, texts, to);
}

std::string code_text(const thread_samples& samples) {
  std::string text;
  for (const std::string& path : samples.modules) text += "module," + on_one_line(path) + '\n';
  for (std::size_t i = 0; i < samples.builds.size(); ++i) {
    if (samples.builds[i].empty()) continue;
    text += "build," + std::to_string(i) + ',' + on_one_line(samples.builds[i]) + '\n';
  }
  for (const code_offset& place : samples.places) {
    text += "place," + std::to_string(place.module) + ',' + hexadecimal(place.offset) + '\n';
  }
  return text + names_text(samples);
}

std::string thread_samples_text(const thread_samples& samples) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text(first_line);
  text += "\nsampling," + number(samples.interval_ns) + ',' + number(samples.wait_samples_per_s) +
          ',' + number(samples.cost) + ',' + number(samples.time_ns) + ',' +
          number(samples.late_s) + '\n' + code_text(samples);
  for (const sampled_stack& stack : samples.stacks) {
    text += "stack," + list_text(stack) + '\n';
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
      if (s.reason == lotus::detail::wait_reason::poll) text += ',' + on_one_line(s.polled);
      text += ',' + hexadecimal(s.address) + ',' + number(s.holder) + ',' + on_one_line(s.what);
    }
    text += '\n';
  }
  text += "run," + number(samples.duration_ns) + ',' + number(samples.cpus) + ',' +
          number(samples.all_cpu_ns) + ',' + number(samples.more_threads) + '\n';
  for (std::size_t i = 0; i < samples.threads.size(); ++i) {
    const sampled_thread& t = samples.threads[i];
    text += "life," + number(i) + ',' + number(t.started_ns) + ',' + number(t.ended_ns) +
            (t.woke ? ",1," : ",0,") + number(t.parent) + '\n';
  }
  for (std::size_t i = 0; i < samples.samples.size(); ++i) {
    const std::vector<std::uint32_t>& at_ms = samples.samples[i].at_ms;
    if (!at_ms.empty()) text += "at," + number(i) + ',' + list_text(at_ms) + '\n';
  }
  for (const sampled_round& round : samples.rounds) text += round_text(round);
  for (const open_end& end : samples.ends) {
    text += "end," + number(end.pid) + ',' + number((end.reads ? 1 : 0) + (end.writes ? 2 : 0)) +
            ',' + on_one_line(end.what) + '\n';
  }
  return text;
}

thread_samples parse_thread_samples(std::string_view text, const std::string& path,
                                    diagnostic_log& diagnostics) {
  thread_samples samples;
  std::vector<std::string> texts;
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
    if (number > 1 && !take_line(line, texts, samples)) {
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
