// Builds in memory what a recording of a program contains.
#ifndef LOTUS_TESTS_BUILT_SAMPLES_HPP
#define LOTUS_TESTS_BUILT_SAMPLES_HPP

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "threads/data/thread_samples.hpp"

namespace lotus::tool_test {

/// A call: a function and its line.
using call_line = std::pair<std::string, int>;

inline std::uint64_t ms_in_ns(int ms) {
  return 1'000'000 * static_cast<std::uint64_t>(ms);
}

struct built_samples : tool::thread_samples {
  explicit built_samples(int duration_ms) {
    duration_ns = ms_in_ns(duration_ms);
    modules = {"/home/user/prog", "/usr/lib/libc.so.6"};
  }

  /// Adds a thread that lived and was watched for the whole run.
  tool::sampled_thread& thread(int cpu_ms) {
    tool::sampled_thread one;
    one.pid = 1;
    one.tid = static_cast<std::uint32_t>(1 + threads.size());
    one.name = "prog";
    one.span_ns = duration_ns;
    one.cpu_ns = ms_in_ns(cpu_ms);
    one.wait_samples = 100;
    one.waits = 1;
    threads.push_back(one);
    return threads.back();
  }

  /// Adds a sample of a running thread.
  /// @param calls  the innermost first.
  /// @param begin  the function of the C library that called the outermost one; "" if unknown.
  tool::thread_sample& runs(std::size_t of, const std::vector<call_line>& calls, int count,
                            const std::string& begin, const std::string& file = "") {
    tool::thread_sample sample;
    sample.thread = static_cast<std::uint32_t>(of);
    sample.stack = static_cast<std::uint32_t>(stacks.size());
    sample.count = static_cast<std::uint64_t>(count);
    tool::sampled_stack stack;
    for (const call_line& call : calls) stack.push_back(place(call, 0, file));
    if (!begin.empty()) stack.push_back(place({begin, 0}, 1, ""));
    stacks.push_back(std::move(stack));
    samples.push_back(std::move(sample));
    return samples.back();
  }

  tool::thread_sample& waits(std::size_t of, const std::vector<call_line>& calls, int count,
                             const std::string& begin, lotus::detail::wait_reason reason,
                             const std::string& file = "") {
    tool::thread_sample& sample = runs(of, calls, count, begin, file);
    sample.waits = true;
    sample.reason = reason;
    stacks.back().insert(stacks.back().begin(), place({"syscall", 0}, 1, ""));
    return sample;
  }

 private:
  std::uint32_t place(const call_line& of, std::uint32_t module, const std::string& file) {
    tool::source_place call;
    call.function = of.first;
    call.module = modules[module];
    call.file = file;
    call.line = of.second;
    places.push_back({module, places.size()});
    names.push_back({call});
    return static_cast<std::uint32_t>(places.size() - 1);
  }
};

inline const std::string main_begins = "__libc_start_main";
inline const std::string thread_begins = "start_thread";

class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>(below(static_cast<int>(end)));
  }
  bool one_in(int of) { return below(of) == 0; }
  template <class Value>
  const Value& any_of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  std::mt19937 random_;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_BUILT_SAMPLES_HPP
