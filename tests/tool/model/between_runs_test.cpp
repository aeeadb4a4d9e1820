#include "model/chance/between_runs.hpp"

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "base/statistics/distribution.hpp"
#include "catch.hpp"

using namespace lotus::tool;

namespace {

/// Returns the mean throughputs of `count` runs, whose logarithms have the standard deviation
/// `spread`.
std::vector<double> runs(std::size_t count, double mean, double spread, std::mt19937_64& random) {
  std::normal_distribution<double> draw(0, spread);
  std::vector<double> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(mean * std::exp(draw(random)));
  return all;
}

struct sides {
  std::size_t a, b;
  double spread_a, spread_b;
};

/// Returns the share of 400 experiments in which the interval contains the true change, which is a
/// slowdown by 23 %.
double coverage(const sides& of) {
  std::mt19937_64 random(7);
  int covered = 0;
  for (int i = 0; i < 400; ++i) {
    const auto found = change_between_runs(runs(of.a, 100, of.spread_a, random),
                                           runs(of.b, 123, of.spread_b, random));
    REQUIRE(found);
    if (found->low <= 0.23 && 0.23 <= found->high) ++covered;
  }
  return covered / 400.0;
}

}  // namespace

TEST_CASE("student_reach agrees with published tables") {
  // The values are from Abramowitz and Stegun, table 26.10.
  CHECK(student_reach(1, 0.05) == Approx(12.706).epsilon(1e-4));
  CHECK(student_reach(2, 0.05) == Approx(4.303).epsilon(1e-3));
  CHECK(student_reach(4, 0.05) == Approx(2.776).epsilon(1e-3));
  CHECK(student_reach(10, 0.05) == Approx(2.228).epsilon(1e-3));
  CHECK(student_reach(60, 0.05) == Approx(2.000).epsilon(1e-3));
  CHECK(student_reach(9, 0.01) == Approx(3.250).epsilon(1e-3));
  CHECK(student_reach(120, 0.01) == Approx(2.617).epsilon(1e-3));
  CHECK(student_reach(1e6, 0.05) == Approx(1.960).epsilon(1e-4));
  CHECK(student_reach(2.5, 0.05) < student_reach(2, 0.05));
  CHECK(student_reach(2.5, 0.05) > student_reach(3, 0.05));
}

TEST_CASE("95 % intervals between runs contain the truth in about 95 of 100 cases") {
  for (const sides& of : {sides{2, 2, 0.05, 0.05}, sides{3, 3, 0.05, 0.05}, sides{5, 5, 0.1, 0.01},
                          sides{8, 8, 0.05, 0.05}, sides{1, 5, 0.05, 0.05}}) {
    INFO(of.a << " against " << of.b);
    CHECK(coverage(of) >= 0.92);
    CHECK(coverage(of) <= 0.99);
  }
  // The weakest case of Welch's test is two runs that differ much, compared with many similar runs.
  CHECK(coverage({2, 8, 0.1, 0.02}) >= 0.85);
}

TEST_CASE("equal runs have an interval of width 0, and one run per side has none") {
  const auto same = change_between_runs({2, 2}, {3, 3, 3});
  REQUIRE(same);
  CHECK(same->value == Approx(0.5));
  CHECK(same->low == Approx(0.5));
  CHECK_FALSE(change_between_runs({2}, {3}));
  CHECK_FALSE(change_between_runs({0, 1}, {3, 3}));
  CHECK_FALSE(change_between_runs({}, {3, 3}));
}

TEST_CASE("the permutation test finds about 5 of 100 differences where there is none") {
  std::mt19937_64 random(3);
  int found = 0;
  int found_true = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto a = runs(5, 100, 0.05, random);
    if (*permutation_p(a, runs(5, 100, 0.05, random)) <= 0.05) ++found;
    if (*permutation_p(a, runs(5, 112, 0.05, random)) <= 0.05) ++found_true;
  }
  CHECK(found >= 25);
  CHECK(found <= 60);
  CHECK(found_true >= 800);
}

TEST_CASE("the permutation test tries all assignments, or many random ones") {
  CHECK_FALSE(permutation_p({1, 2, 3, 4}, {1, 2, 3, 4, 5}));
  // Of the 252 ways to divide the ten runs into two sides, 2 differ as much as these two sides do.
  CHECK(*permutation_p({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}) == Approx(2.0 / 252));
  CHECK(*permutation_p({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}) == 1);
  std::mt19937_64 random(5);
  const auto a = runs(12, 100, 0.05, random);
  CHECK(*permutation_p(a, runs(12, 200, 0.05, random)) == Approx(1.0 / 20001));
  CHECK(*permutation_p(a, a) > 0.99);
}
