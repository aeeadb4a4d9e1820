// Provides pairs of runs, the second of which contains a change.
#ifndef LOTUS_BENCH_WHATIF_PAIRS_HPP
#define LOTUS_BENCH_WHATIF_PAIRS_HPP

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// A function that runs a program whose logs are written below `folder`/run. Throws
/// std::runtime_error if that fails.
using recorded_run = std::function<void(const std::string& folder)>;

struct pair {
  std::string name;
  recorded_run a;
  recorded_run b;      ///< like a, but with the change
  std::string asked;   ///< the change, as options of lotus-tool whatif
  recorded_run also;   ///< like a, but with another number of workers; may be empty
  bool more = false;   ///< whether b has more threads, or CPUs, than a
  double workers = 1;  ///< number of workers of b divided by that of a
  /// Whether something keeps the pair from scaling. Then a prediction must be right, or have an
  /// interval so wide that it predicts nothing.
  bool contended = false;
};

/// Returns pairs of synthetic loaders that compute and sleep; see real_loader.hpp.
std::vector<pair> made_up_pairs();

/// Returns pairs of runs of the example programs, on JPEG files.
/// @param examples  the folder of the example programs; programs that are missing are left out.
/// @param images    the folder in which the images are created.
std::vector<pair> example_pairs(const std::string& examples, const std::string& images);

}  // namespace bench

#endif  // LOTUS_BENCH_WHATIF_PAIRS_HPP
