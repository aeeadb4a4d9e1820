// Tests durations and operations that are stored compactly: their statistics must equal those of
// all values.
#include "model/times/kept_durations.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/statistics/distribution.hpp"
#include "catch.hpp"
#include "model/packed_operations.hpp"
#include "model/times/percentile_search.hpp"

using namespace lotus::tool;

namespace {

/// Returns durations like those of real operations: some far longer than the typical one, or nearly
/// equal, or with only a few different values.
std::vector<std::int64_t> drawn(int shape, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> spread(0, 1);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = spread(random);
    switch (shape) {
      case 0:
        values.push_back(static_cast<std::int64_t>(3e6 * x));
        break;
      case 1:
        values.push_back(4'000'000'000 + static_cast<std::int64_t>(x));
        break;
      case 2:
        values.push_back(static_cast<std::int64_t>(40 + random() % 3));
        break;
      default:
        values.push_back(static_cast<std::int64_t>(random() % 2 == 0 ? 0 : random() >> 24U));
        break;
    }
  }
  return values;
}

distribution described(const kept_durations& kept, const std::vector<std::int64_t>& all) {
  std::vector<percentile_search> searches;
  searches.emplace_back(kept, described_shares());
  finish(searches, [&](auto&& look) {
    for (const std::int64_t ns : all) look(0, ns);
  });
  return describe(kept, searches.front());
}

}  // namespace

TEST_CASE("a bucket contains the values from its lowest one to that of the next bucket") {
  for (std::int64_t ns = 0; ns < 70'000; ++ns) {
    const std::size_t b = narrow_bucket::of(ns);
    CHECK(narrow_bucket::lowest(b) <= ns);
    CHECK(ns < narrow_bucket::lowest(b + 1));
    const std::int64_t wide = std::int64_t{1} << narrow_bucket::width_bits(b);
    CHECK(narrow_bucket::lowest(b) + wide == narrow_bucket::lowest(b + 1));
    CHECK(128 * (wide - 1) <= ns);
  }
  CHECK(narrow_bucket::lowest(narrow_bucket::of(INT64_MAX)) <= INT64_MAX);
}

TEST_CASE("statistics of very many durations equal those of all values") {
  const int shape = GENERATE(0, 1, 2, 3);
  const std::size_t count = GENERATE(std::size_t{4097}, std::size_t{100'000});
  CAPTURE(shape, count);
  const std::vector<std::int64_t> all = drawn(shape, count, 7);
  // Adds the durations of several logs; some of the logs are short.
  kept_durations kept;
  for (std::size_t first = 0; first < all.size();) {
    const std::size_t last = std::min(all.size(), first + (first % 3 == 0 ? 3'000 : 20'000));
    kept_durations part;
    for (; first < last; ++first) part.add(all[first]);
    kept.add(std::move(part));
  }
  REQUIRE_FALSE(kept.are_all());
  CHECK(kept.size() == all.size());
  std::vector<std::int64_t> values = all;
  const distribution is = described(kept, all);
  CHECK(static_cast<double>(kept.below_10ms()) ==
        Approx(share_below(values, 10'000'000) * static_cast<double>(count)));
  CHECK(static_cast<double>(kept.below_100us()) ==
        Approx(share_below(values, 100'000) * static_cast<double>(count)));
  const distribution should = describe(values);
  CHECK(is.count == should.count);
  CHECK(is.min_ns == should.min_ns);
  CHECK(is.max_ns == should.max_ns);
  CHECK(is.total_ns == should.total_ns);
  CHECK(is.mean_ns == Approx(should.mean_ns).epsilon(1e-12));
  CHECK(is.std_ns == Approx(should.std_ns).epsilon(1e-9));
  CHECK(is.p25_ns == should.p25_ns);
  CHECK(is.p50_ns == should.p50_ns);
  CHECK(is.p75_ns == should.p75_ns);
  CHECK(is.p90_ns == should.p90_ns);
  CHECK(is.p99_ns == should.p99_ns);
}

TEST_CASE("few durations are kept unchanged") {
  kept_durations kept;
  kept_durations more;
  kept.add(3);
  more.add(1);
  more.add(2);
  kept.add(std::move(more));
  REQUIRE(kept.are_all());
  CHECK(kept.values() == std::vector<std::int64_t>{3, 1, 2});
}

TEST_CASE("packed operations come back as they were") {
  constexpr int log_count = 3;
  std::vector<packed_operations> logs(log_count);
  std::mt19937_64 random(3);
  std::vector<std::vector<operation>> all(log_count);
  for (int i = 0; i < 300'000; ++i) {
    const auto l = static_cast<std::size_t>(random() % log_count);
    operation op;
    op.start_ns =
        static_cast<std::int64_t>(1e18) + static_cast<std::int64_t>(random() % 1'000'000'000);
    op.duration_ns = static_cast<std::int64_t>(random() % 1'000'000);
    op.name = static_cast<std::uint32_t>(random() % 300);
    all[l].push_back(op);
    logs[l].push(op);
  }
  for (std::size_t l = 0; l < log_count; ++l) {
    logs[l].finish();
    std::size_t at = 0;
    bool same = true;
    logs[l].for_each([&](const operation& op) {
      const operation& wanted = all[l][at++];
      same = same && op.start_ns == wanted.start_ns && op.duration_ns == wanted.duration_ns &&
             op.name == wanted.name;
    });
    CHECK(same);
    CHECK(at == all[l].size());
  }
}

TEST_CASE("blocks of adjacent values have almost equal sizes and lose no value") {
  const std::size_t count = GENERATE(std::size_t{700}, std::size_t{8'000}, std::size_t{1'000'000});
  value_blocks values;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    values.add(static_cast<std::int64_t>(i));
    sum += static_cast<double>(i);
  }
  const std::vector<value_block> blocks = values.blocks(1000);
  CHECK(values.count() == count);
  CHECK(blocks.size() == std::min<std::size_t>(count, 1000));
  double all = 0;
  double last_mean = -1;
  for (const value_block& b : blocks) {
    all += b.sum;
    CHECK(b.sum / b.count > last_mean);
    last_mean = b.sum / b.count;
    const double even = static_cast<double>(count) / static_cast<double>(blocks.size());
    CHECK(std::abs(b.count - even) <= 0.3 * even);
  }
  CHECK(all == sum);
}
