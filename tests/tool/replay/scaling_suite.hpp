// Questions about more and fewer workers, whose answers are known.
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
  bool neighbours = true;   ///< of each, also beside two threads of another program
  bool two_levels = false;  ///< of each, with a second recording of another number of workers
};

/// Right: the truth lies within the interval, which is narrow; silent: there is no answer, or a
/// wide interval that holds the truth. Wide: its ends are more than a factor of 1.5 apart.
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

/// Simulates the loaders, asks whatif about each and compares with the same loader simulated with
/// as many workers as were asked for. Prints a line for each kind, and each wrong answer.
scaling_score ask_about_scaling(const scaling_questions& questions, std::ostream& out);

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_SCALING_SUITE_HPP
