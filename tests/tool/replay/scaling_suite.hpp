// Asks `lotus-tool whatif` about more and fewer workers of simulated loaders, whose true throughput
// is known.
#ifndef LOTUS_TESTS_SCALING_SUITE_HPP
#define LOTUS_TESTS_SCALING_SUITE_HPP

#include <cstddef>
#include <ostream>
#include <vector>

namespace lotus::tool_test {

struct scaling_questions {
  std::vector<double> cvs{0, 0.1, 0.3, 0.5, 1};
  std::vector<int> recorded{1, 2, 4, 8};
  std::vector<int> asked{1, 2, 3, 4, 6, 8, 12, 16};
  std::vector<unsigned> seeds{1};
  /// Whether to ask each question a second time, with two threads of another program on the CPUs.
  bool neighbours = true;
  /// Whether to give whatif a second recording with another number of workers.
  bool two_levels = false;
};

/// Counts the answers of lotus-tool whatif. An interval is wide if its ends differ by more than a
/// factor of 1.5. An answer is right if its interval is narrow and contains the true value. It is
/// silent if it has no interval, or a wide one that contains the true value.
struct scaling_score {
  std::size_t right = 0;
  std::size_t silent = 0;
  std::size_t wrong = 0;

  std::size_t all() const noexcept { return right + silent + wrong; }
  scaling_score& operator+=(const scaling_score& other) noexcept {
    right += other.right;
    silent += other.silent;
    wrong += other.wrong;
    return *this;
  }
};

/// Simulates the loaders, asks whatif about each, and compares the answer with a simulation of the
/// loader with the other number of workers. Prints a line for each kind, and each wrong answer.
scaling_score ask_about_scaling(const scaling_questions& questions, std::ostream& out);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_SCALING_SUITE_HPP
