// Pairs of runs, one with a change.
#ifndef LOTUS_BENCH_WHATIF_PAIRS_HPP
#define LOTUS_BENCH_WHATIF_PAIRS_HPP

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// Something that can be run and leaves its logs below `run/` of a folder. Throws
/// std::runtime_error where it fails.
using recorded_run = std::function<void(const std::string& folder)>;

struct pair {
  std::string name;
  recorded_run a;
  recorded_run b;      ///< a with the change
  std::string asked;   ///< the change, in whatif's words
  recorded_run also;   ///< of another number of workers; or none
  bool more = false;   ///< b has more threads, or CPUs, than a
  double workers = 1;  ///< of b ÷ a
  /// Something in it does not scale: what counts is whether the answer is right or leaves it open.
  bool contended = false;
};

/// Loaders that burn and sleep.
std::vector<pair> made_up_pairs();

/// The examples, on JPEG files.
/// @param examples  folder of their programs; which of them is not there is left out.
/// @param images    folder that they are made in.
std::vector<pair> example_pairs(const std::string& examples, const std::string& images);

}  // namespace bench

#endif  // LOTUS_BENCH_WHATIF_PAIRS_HPP
