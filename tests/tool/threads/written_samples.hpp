// Writes files of samples of programs that were never run.
#ifndef LOTUS_TESTS_WRITTEN_SAMPLES_HPP
#define LOTUS_TESTS_WRITTEN_SAMPLES_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// A call in a stack: a function, and optionally "module!" before and ":line" after its name. A '^'
/// at the beginning means that it is inlined into the next call, a '*' that the
/// function is called on an object.
using calls = std::vector<std::string>;

/// Writes a file of samples of a program that ran for one second.
class written_samples {
 public:
  /// Adds a thread of process `pid` and returns its number.
  int thread(const std::string& name, int pid = 1) {
    const std::string tid = std::to_string(pid == 1 && threads_ > 0 ? 100 + threads_ : pid);
    const int number = threads_++;
    lines_ += "thread," + std::to_string(pid) + ',' + tid + ",100,50,1000000000,400000000,0," +
              name + '\n';
    lives_ += "life," + std::to_string(number) + ",0,0,1,0\n";
    return number;
  }
  /// Sets for how many ms of the second the last thread used a CPU and waited for one.
  void used(int cpu_ms, int queue_ms) {
    const std::string::size_type at = lines_.rfind(",400000000,0,");
    lines_.replace(at, 13,
                   ',' + std::to_string(cpu_ms * 1'000'000) + ',' +
                       std::to_string(queue_ms * 1'000'000) + ',');
  }
  static int tid(int thread) { return thread == 0 ? 1 : 100 + thread; }
  void never_wakes(int thread) { lives_ += "life," + std::to_string(thread) + ",0,0,0,0\n"; }
  void started_by_main(int thread, int begin_ms) {
    lives_ +=
        "life," + std::to_string(thread) + ',' + std::to_string(begin_ms * 1'000'000) + ",0,1,1\n";
  }
  /// The thread was started by the main thread, and lived for less than its times can be read.
  void short_thread(int thread, int begin_ms, int end_ms) {
    const std::string name = lines_.substr(lines_.rfind(','));
    lines_.erase(lines_.rfind("thread,"));
    lines_ += "thread,1," + std::to_string(tid(thread)) + ",0,0,0,0,0" + name;
    lives_ += "life," + std::to_string(thread) + ',' + std::to_string(begin_ms * 1'000'000 + 1) +
              ',' + std::to_string(end_ms * 1'000'000 + 1) + ",1,1\n";
  }
  void set_file(const std::string& file) { file_ = file; }
  void runs(int thread, const calls& stack, int count, int at_ms = 500) {
    samples_.push_back("cpu," + std::to_string(thread) + ',' + stack_of(stack) + ',' +
                       std::to_string(count));
    ats_ += "at," + std::to_string(samples_.size() - 1) + ',' + std::to_string(at_ms) + '\n';
  }
  int waits(int thread, const calls& stack, const std::string& reason, std::uint64_t address,
            int holder = 0, const std::string& what = "", int count = 50) {
    std::string hexadecimal;
    for (; address != 0 || hexadecimal.empty(); address /= 16) {
      hexadecimal.insert(0, 1, "0123456789abcdef"[address % 16]);
    }
    samples_.push_back("wait," + std::to_string(thread) + ',' + stack_of(stack) + ',' +
                       std::to_string(count) + ',' + reason + ',' + hexadecimal + ',' +
                       std::to_string(holder) + ',' + what);
    return static_cast<int>(samples_.size()) - 1;
  }
  /// Adds moments at which threads were in these states: the number of a wait, or -1 for running.
  void moments(int count, const std::map<int, int>& states) {
    for (int i = 0; i < count; ++i) moment(moments_++, states);
  }
  void moment(int at_ms, const std::map<int, int>& states) {
    std::string list;
    for (const auto& [thread, sample] : states) {
      list += (list.empty() ? "" : ";") + std::to_string(thread) + '=' + std::to_string(sample);
    }
    rounds_ += "round," + std::to_string(at_ms) + ',' + std::to_string(threads_) + ',' + list;
    rounds_ += '\n';
  }
  void end(int pid, bool writes, const std::string& what) {
    lives_ += "end," + std::to_string(pid) + (writes ? ",2," : ",1,") + what + '\n';
  }

  void write(const temp_dir& dir) const {
    std::string text =
        "lotus-threads,1\nsampling,10000000,100,0.001,1\n" + modules_ + places_ + stacks_ + lines_;
    for (const std::string& sample : samples_) text += sample + '\n';
    dir.file(".lotus_threads_1_1",
             text + "run,1000000000,2,1900000000,0\n" + lives_ + texts_ + frames_ + ats_ + rounds_);
  }
  result threads(const std::vector<std::string>& options = {}) const {
    const temp_dir dir;
    write(dir);
    std::vector<std::string> command{"threads", dir.path()};
    command.insert(command.end(), options.begin(), options.end());
    const result printed = run(command);
    INFO(printed.err);
    REQUIRE(printed.status == 0);
    CHECK(printed.err.empty());
    return printed;
  }
  json found() const { return parse_json(threads({"--json"}).out); }

 private:
  static constexpr const char* program = "/home/user/prog";

  static std::string number_of(std::string& lines, const char* kind, const std::string& value,
                               std::map<std::string, std::size_t>& known, std::size_t first) {
    const auto [at, is_new] = known.try_emplace(value, known.size() + first);
    if (is_new) lines += kind + value + '\n';
    return std::to_string(at->second);
  }

  /// Adds one place, with the call `of` and those that are inlined into it.
  std::string place_of(const calls& of) {
    std::string key;
    for (const std::string& call : of) key += call + '|';
    const auto [at, is_new] = known_places_.try_emplace(key, known_places_.size());
    const std::string place = std::to_string(at->second);
    if (!is_new) return place;
    for (std::string call : of) {
      const bool is_inlined = call.front() == '^';
      if (is_inlined) call.erase(0, 1);
      const bool has_object = call.front() == '*';
      if (has_object) call.erase(0, 1);
      const std::size_t mark = call.find('!');
      const std::string module = mark == std::string::npos ? program : call.substr(0, mark);
      if (mark != std::string::npos) call.erase(0, mark + 1);
      const std::size_t colon = call.rfind(':');
      const bool has_line = colon != std::string::npos && call.find("::", colon - 1) != colon - 1;
      const std::string line = has_line ? call.substr(colon + 1) : "0";
      const bool is_of_compiler = call.rfind("_mm", 0) == 0;
      std::string file = has_line ? file_ : "";
      if (is_of_compiler) file = "/usr/lib/gcc/include/emmintrin.h";
      if (has_line) call.erase(colon);
      const bool has_name = call.find("+0x") == std::string::npos;
      const auto text = [&](const std::string& value) {
        return value.empty() ? "0" : number_of(texts_, "text,", value, known_texts_, 1);
      };
      if (!is_inlined) {
        places_ += "place," + number_of(modules_, "module,", module, known_modules_, 0) + ",10\n";
      }
      const std::string function = text(call);
      const std::string in = text(module);
      const std::string source = text(file);
      frames_ += "frame," + place + ',' + function + ',' + in + ',' + source + ',' + line +
                 (has_name ? ",1,0,0," : ",0,0,0,") + (has_object ? "1," : "0,") +
                 (is_inlined ? "1\n" : "0\n");
    }
    return place;
  }

  std::string stack_of(const calls& stack) {
    std::string list;
    calls of;
    for (const std::string& call : stack) {
      of.push_back(call);
      if (call.front() == '^') continue;
      list += (list.empty() ? "" : ";") + place_of(of);
      of.clear();
    }
    stacks_ += "stack," + list + '\n';
    return std::to_string(stack_count_++);
  }

  int threads_ = 0;
  int moments_ = 0;
  int stack_count_ = 0;
  std::string modules_, places_, stacks_, lines_, lives_, texts_, frames_, ats_, rounds_;
  std::string file_ = "/home/user/prog.cpp";
  std::vector<std::string> samples_;
  std::map<std::string, std::size_t> known_places_, known_texts_, known_modules_;
};

inline const std::string libc = "/usr/lib/libc.so.6!";
inline const std::string started = libc + "start_thread";
inline const std::string main_started = libc + "__libc_start_main";

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_WRITTEN_SAMPLES_HPP
