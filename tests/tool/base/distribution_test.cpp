#include "base/statistics/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace lotus::tool;

namespace {

double naive_percentile(std::vector<std::int64_t> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, values.size() - 1);
  const auto a = static_cast<double>(values[low]);
  return a + (at - std::floor(at)) * (static_cast<double>(values[high]) - a);
}

}  // namespace

TEST_CASE("statistics of four values are right") {
  std::vector<std::int64_t> values{4, 1, 3, 2};
  const distribution d = describe(values);
  CHECK(d.count == 4);
  CHECK(d.mean_ns == 2.5);
  CHECK(d.std_ns == Approx(std::sqrt(1.25)));
  CHECK(d.min_ns == 1);
  CHECK(d.max_ns == 4);
  CHECK(d.total_ns == 10);
  CHECK(d.p25_ns == 1.75);
  CHECK(d.p50_ns == 2.5);
  CHECK(d.p75_ns == 3.25);
  CHECK(d.p90_ns == Approx(3.7));
  CHECK(d.p99_ns == Approx(3.97));
}

TEST_CASE("percentiles are those of the sorted set") {
  std::mt19937_64 random(11);
  for (std::size_t n = 1; n < 400; ++n) {
    std::vector<std::int64_t> values;
    // Odd rounds use only a few different values, so that equal values occur.
    const std::uint64_t range = n % 2 == 1 ? 4 : 1'000'000'000;
    for (std::size_t i = 0; i < n; ++i)
      values.push_back(static_cast<std::int64_t>(random() % range));
    std::vector<std::int64_t> copy = values;
    const distribution d = describe(copy);
    REQUIRE(d.p25_ns == naive_percentile(values, 0.25));
    REQUIRE(d.p50_ns == naive_percentile(values, 0.50));
    REQUIRE(d.p75_ns == naive_percentile(values, 0.75));
    REQUIRE(d.p90_ns == naive_percentile(values, 0.90));
    REQUIRE(d.p99_ns == naive_percentile(values, 0.99));
  }
}

TEST_CASE("a total beyond 64 bits is limited to the largest number") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> values{most, most, 5};
  CHECK(describe(values).total_ns == most);
}

TEST_CASE("share_below counts only values that are smaller than the limit") {
  CHECK(share_below({10, 20, 30, 40}, 30) == 0.5);
  CHECK(share_below({}, 30) == 0);
}

TEST_CASE("remove_low_outliers removes low outliers and nothing else") {
  std::vector<std::int64_t> values{100, 101, 102, 103, 104, 5, 10000};
  remove_low_outliers(values);
  std::sort(values.begin(), values.end());
  CHECK(values == std::vector<std::int64_t>{100, 101, 102, 103, 104, 10000});
  std::vector<std::int64_t> none;
  remove_low_outliers(none);
  CHECK(none.empty());
}
