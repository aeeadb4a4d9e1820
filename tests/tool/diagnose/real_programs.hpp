// Real programs of every shape, with what is true of them.
#ifndef LOTUS_TESTS_REAL_PROGRAMS_HPP
#define LOTUS_TESTS_REAL_PROGRAMS_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace lotus::tool_test {

/// What a program measures of the work that bounds it, for its parent to read.
struct measured {
  std::atomic<std::int64_t> ns{0};
  std::atomic<std::int64_t> times{0};

  template <class Work>
  void add(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    ++times;
  }
  double per_s() const { return static_cast<double>(times) * 1e9 / static_cast<double>(ns); }
};
/// In memory that a program and its parent have in common.
extern measured* work;

struct real_program {
  const char* name;
  std::function<void()> record;
  std::set<std::string> checks;  ///< that must fail
  std::set<std::string> may;     ///< that may, for the line is thin
  std::string verdict;           ///< where there can be but one
  int slots = 0;                 ///< that do the work which is measured; 0: it is not compared
  std::function<void()> before = nullptr;  ///< the recording begins
};
const std::vector<real_program>& real_programs();

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_REAL_PROGRAMS_HPP
