// Records operations that follow each other in three forms: a chain that is fixed at compile time,
// one that is assembled at run time, and scopes in plain code. The log contains one line for each
// operation, and one for each whole chain.
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
  auto fixed = lotus::compose(Smooth{8}, lotus::operation{"Normalize", normalize});
  const series a = fixed(input);

  // A chain whose operations are added at run time.
  lotus::chain<series> listed;
  listed.add("Smooth", Smooth{8});
  listed.add("Normalize", normalize);
  const series b = listed(input);

  // In plain code: a scope for each operation.
  series c = input;
  {
    LOTUS_SCOPE("Smooth");
    c = Smooth{8}(std::move(c));
  }
  {
    LOTUS_SCOPE("Normalize");
    normalize(c);
  }

  std::printf("three ways, %s result\n", a == b && b == c ? "one" : "not one");
  return a == b && b == c ? 0 : 1;
}
