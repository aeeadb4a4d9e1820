// Programs that record pipelines of many shapes, with the results that diagnose must give.
#ifndef LOTUS_TESTS_REAL_PROGRAMS_HPP
#define LOTUS_TESTS_REAL_PROGRAMS_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lotus/options.hpp"

namespace lotus::tool_test {

/// Total time and number of calls of the work that is the program's bottleneck, as the program
/// itself measures them. The parent process, which runs the test, reads them.
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
/// Points to memory that the program shares with its parent process.
extern measured* work;

struct real_program {
  const char* name;
  std::function<void()> record;
  std::set<std::string> checks;  ///< ids of the checks that must fail
  /// Ids of the checks that may fail but need not, because the program is close to the limits of
  /// these checks.
  std::set<std::string> may;
  std::string verdict;  ///< expected verdict; "" if several are possible
  /// Number of threads that do the work whose time the program measures in `work`; 0: the test does
  /// not compare the capacity.
  int slots = 0;
  bool computes = false;                   ///< others that sleep are recorded at the same time
  std::function<void()> before = nullptr;  ///< function that is called before the recording begins
  std::uint32_t ring_records = lotus::options{}.ring_records;
};
const std::vector<real_program>& real_programs();

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_REAL_PROGRAMS_HPP
