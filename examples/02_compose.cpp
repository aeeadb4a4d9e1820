// Chains of operations: fixed, put together at run time, and straight code. A chain of k operations
// takes k + 1 readings of the clock, and the log gets a line for each operation and one for all.
#include <algorithm>
#include <cstdio>
#include <lotus/lotus.hpp>
#include <numeric>
#include <utility>
#include <vector>

using series = std::vector<double>;

// Logged under the name of its type: SSmooth.
struct Smooth {
  int width;

  // Takes its input by move and returns what goes on to the next operation.
  series operator()(series in) const {
    const auto last = in.end() - width;
    for (auto at = in.begin(); at < last; ++at) *at = std::accumulate(at, at + width, 0.0) / width;
    return in;
  }
};

// An operation may also change its input in place and return nothing.
void normalize(series& inout) {
  const double most = *std::max_element(inout.begin(), inout.end());
  for (double& value : inout) value /= most;
}

int main() {
  if (!lotus::start("run/lotustrace_log")) return 1;
  series input(100'000);
  std::iota(input.begin(), input.end(), 1.0);

  // Fixed: no virtual call, no allocation.
  auto fixed = lotus::compose(Smooth{8}, lotus::op("Normalize", normalize));
  const series a = fixed(input);

  // Put together at run time.
  lotus::chain<series> listed;
  listed.add("Smooth", Smooth{8});
  listed.add("Normalize", normalize);
  const series b = listed(input);

  // Straight code, timed by its ends.
  series c = input;
  {
    lotus::laps lap;
    c = Smooth{8}(std::move(c));
    lap("Smooth");
    normalize(c);
    lap("Normalize");
  }

  std::printf("three ways, %s result\n", a == b && b == c ? "one" : "not one");
  return a == b && b == c ? 0 : 1;
}
