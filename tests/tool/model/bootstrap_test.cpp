#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"
#include "model/chance/between_runs.hpp"

using lotus::tool::bootstrap_change;
using lotus::tool::change;
using values = std::vector<std::int64_t>;

namespace {

std::vector<std::int64_t> normal(std::size_t n, double mean, double std, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(mean, std);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<std::int64_t>(draw(random)));
  return values;
}

}  // namespace

TEST_CASE("equal constants have no change and an interval of width 0") {
  const change c = bootstrap_change(values{5, 5, 5}, values{5, 5});
  CHECK(c.value == 0);
  CHECK(c.low == 0);
  CHECK(c.high == 0);
}

TEST_CASE("a constant that doubled changed by 100 %") {
  const change c = bootstrap_change(values{5, 5, 5}, values{10, 10});
  CHECK(c.value == 1);
  CHECK(c.low == 1);
  CHECK(c.high == 1);
}

TEST_CASE("the interval is about as wide as theory predicts") {
  // The mean of n values has a standard error of std / sqrt(n). The ratio of two such means has
  // sqrt(2) times this error, and 95 % of the ratios are within 1.96 times that error.
  for (const std::size_t n : {400U, 40000U}) {  // the second size is resampled in blocks
    const change c = bootstrap_change(normal(n, 1e6, 1e5, 1), normal(n, 1e6, 1e5, 2));
    const double expected = 2 * 1.96 * std::sqrt(2.0) * 0.1 / std::sqrt(static_cast<double>(n));
    CHECK(c.low < c.value);
    CHECK(c.value < c.high);
    CHECK(c.high - c.low == Approx(expected).epsilon(0.15));
  }
}

TEST_CASE("the interval contains the truth in about 95 of 100 cases") {
  int covered = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const change c =
        bootstrap_change(normal(60, 1000, 200, 2 * seed + 1), normal(60, 1100, 200, 2 * seed + 2));
    if (c.low <= 0.1 && 0.1 <= c.high) ++covered;
  }
  CHECK(covered >= 88);
  CHECK(covered <= 100);
}

TEST_CASE("the same values always yield the same interval") {
  const auto a = normal(50, 1000, 300, 5);
  const auto b = normal(70, 1000, 300, 6);
  CHECK(bootstrap_change(a, b).low == bootstrap_change(a, b).low);
}
