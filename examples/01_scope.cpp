// The shortest program that records: two scopes, one inside the other.
#include <cmath>
#include <lotus/lotus.hpp>

int main() {
  if (!lotus::start("run/lotustrace_log")) return 1;
  double sum = 0;
  for (int sample = 0; sample < 3; ++sample) {
    LOTUS_SCOPE("Sample");  // records the time from here to the end of the block
    LOTUS_SCOPE("Roots");
    for (int i = 0; i < 100'000; ++i) sum += std::sqrt(i + sample);
  }
  return sum > 0 ? 0 : 1;  // the records are written at exit
}
