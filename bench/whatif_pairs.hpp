// Provides pairs of runs: a program, and the same program with one change.
#ifndef LOTUS_BENCH_WHATIF_PAIRS_HPP
#define LOTUS_BENCH_WHATIF_PAIRS_HPP

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// A function that runs a program and records it in the folder `folder`/run. Throws
/// std::runtime_error if the program fails.
using recorded_run = std::function<void(const std::string& folder)>;

struct pair {
  std::string name;
  recorded_run a;
  recorded_run b;     ///< like `a`, but with the change
  std::string asked;  ///< the change, as options of lotus-tool whatif
  /// Runs program `a` with yet another number of workers, for the option --also of lotus-tool
  /// whatif. May be empty: then the option is not used.
  recorded_run also;
  bool more = false;   ///< whether `b` has more threads or CPUs than `a`
  double workers = 1;  ///< number of workers of `b` divided by that of `a`
  /// Whether a lock, device or other process keeps the program from becoming faster. For such a
  /// pair, a prediction must be right, or its interval must be so wide that it makes no claim.
  bool contended = false;
};

/// Returns pairs of runs of synthetic loaders that compute and sleep; see real_loader.hpp.
std::vector<pair> made_up_pairs();

/// Returns pairs of runs of the example programs with JPEG files.
/// @param examples  the folder of the example programs; missing programs are left out.
/// @param images    the folder in which the images are created.
std::vector<pair> example_pairs(const std::string& examples, const std::string& images);

}  // namespace bench

#endif  // LOTUS_BENCH_WHATIF_PAIRS_HPP
