// Records a chain of operations in three forms: fixed at compile time, assembled at run time, and
// in plain code. In each form, the log contains one line for each operation and one for the whole
// chain.
#include <algorithm>
#include <cstdio>
#include <lotus/lotus.hpp>
#include <numeric>
#include <utility>
#include <vector>

using series = std::vector<double>;

// An operation is recorded under the name of its type, here as "SSmooth" in the log.
struct Smooth {
  int width;

  // Receives its input by move, and returns the input for the next operation.
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

  // Fixed at compile time: no virtual call, no allocation.
  auto fixed = lotus::compose(Smooth{8}, lotus::op("Normalize", normalize));
  const series a = fixed(input);

  // A chain whose operations are added at run time.
  lotus::chain<series> listed;
  listed.add("Smooth", Smooth{8});
  listed.add("Normalize", normalize);
  const series b = listed(input);

  // In plain code: each call of lap() records an operation, from the end of the previous one until
  // now.
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
