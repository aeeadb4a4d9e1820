// Tests which rank lotus-tool names as the cause of exposed preparation time, on simulated ranks
// of which it is known whether one is slow.
#include "model/ranks/exposed_time.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "model/pipeline/off_cpu.hpp"

using namespace lotus::tool;

namespace {

/// Ranks that end each step together. Workers prefetch up to eight batches.
struct job {
  std::size_t ranks = 8;
  std::size_t steps = 400;
  double slower = 0;       ///< rank 1 takes so much longer to build a batch
  double alternating = 0;  ///< so do ranks 0 and 1, but only for every second batch
  double drift = 0;        ///< spread of a factor that changes slowly, in each rank
  double late_ms = 0;      ///< rank 1 receives batches so late
  std::size_t workers_of_1 = 4;
  bool together = true;
};

/// Random numbers that are the same with every standard library.
class generator {
 public:
  explicit generator(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::mt19937_64 bits_;
};

exposed_time judge(const job& of, std::uint64_t seed) {
  constexpr double ms = 1e6;
  constexpr std::size_t prefetched = 8;
  generator random(seed);
  std::vector<rank_times> ranks(of.ranks);
  std::vector<std::vector<double>> free_at(of.ranks, std::vector<double>(4, 0));
  std::vector<std::vector<double>> received(of.ranks);
  std::vector<double> drift(of.ranks);
  for (double& d : drift) d = of.drift * random.normal();
  std::vector<double> end(of.ranks, 0);
  for (std::size_t r = 0; r < of.ranks; ++r) {
    ranks[r].name = "rank " + std::to_string(r);
    ranks[r].workers = r == 1 ? of.workers_of_1 : 4;
    free_at[r].resize(ranks[r].workers);
    ranks[r].epochs.emplace_back();
  }
  for (std::size_t i = 0; i < of.steps; ++i) {
    for (std::size_t r = 0; r < of.ranks; ++r) {
      drift[r] = 0.9 * drift[r] + of.drift * std::sqrt(1 - 0.81) * random.normal();
      double build_ns = 44 * ms * std::exp(0.15 * random.normal() + drift[r]);
      if (r == 1) build_ns *= 1 + of.slower;
      if (r < 2 && (i + r) % 2 == 0) build_ns *= 1 + of.alternating;
      double& worker = *std::min_element(free_at[r].begin(), free_at[r].end());
      worker = std::max(worker, i < prefetched ? 0 : received[r][i - prefetched]) + build_ns;
      const double begin = end[r] + 0.05 * ms * random.uniform();
      const double late_ns = (r == 1 ? of.late_ms : 0.01) * ms;
      received[r].push_back(std::max(begin, worker) + late_ns);
      rank_step step;
      step.wait_ns = received[r].back() - begin;
      step.ready_ns = std::min(late_ns, step.wait_ns);
      step.build_ns = build_ns;
      ranks[r].epochs.front().push_back(step);
    }
    double last = 0;
    for (std::size_t r = 0; r < of.ranks; ++r) last = std::max(last, received[r].back());
    for (std::size_t r = 0; r < of.ranks; ++r) {
      end[r] = (of.together ? last : received[r].back()) + 10 * ms;
      ranks[r].epochs.front().back().step_ns = end[r] - received[r].back();
    }
  }
  return compare_exposed(ranks);
}

/// How often each rank is named in 40 jobs; the last number counts jobs without a cause.
std::vector<int> named(const job& of) {
  std::vector<int> counts(of.ranks + 1);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ++counts[judge(of, seed).cause.value_or(of.ranks)];
  }
  return counts;
}

int unnamed(const job& of) {
  return named(of).back();
}

}  // namespace

TEST_CASE("no rank is named if none is slower") {
  job of;
  CHECK(unnamed(of) >= 39);
  of.ranks = 64;
  CHECK(unnamed(of) == 40);
  of.ranks = 2;
  CHECK(unnamed(of) >= 37);
}

TEST_CASE("no rank is named if each is slower for a while") {
  job of;
  of.drift = 0.1;
  CHECK(unnamed(of) >= 38);
}

TEST_CASE("a rank that is slower by 5 % is named, and no other one") {
  job of;
  of.slower = 0.05;
  of.steps = 1000;
  const std::vector<int> counts = named(of);
  CHECK(counts[1] >= 34);
  CHECK(counts[1] + counts.back() == 40);
  of.ranks = 64;
  of.slower = 0.3;
  of.steps = 200;
  CHECK(named(of)[1] == 40);
}

TEST_CASE("of two ranks that are slow in turn, no third one is named") {
  job of;
  of.alternating = 0.3;
  const std::vector<int> counts = named(of);
  CHECK(counts[0] + counts[1] + counts.back() == 40);
  CHECK(counts.back() >= 28);
}

TEST_CASE("the exposed time is the longest wait of each step") {
  const auto of = [](const std::vector<double>& waits) {
    rank_times rank;
    rank.epochs.emplace_back();
    for (const double ns : waits) rank.epochs.front().push_back({ns, 0, 0, 10});
    return rank;
  };
  const exposed_time e = compare_exposed({of({1, 5, 0}), of({3, 1, 2}), of({2, 4, 0, 9})});
  CHECK(e.steps == 3);
  CHECK(e.exposed_ns == Approx((3 + 5 + 2) / 3.0));
  CHECK(e.ranks[0].caused_ns == Approx(1 / 3.0));
  CHECK(e.ranks[1].caused_ns == Approx((1 + 2) / 3.0));
  CHECK(e.ranks[1].longest_share == Approx(2 / 3.0));
  CHECK_FALSE(e.cause);
}

TEST_CASE("the part of the loader that makes a rank slow is named") {
  job of;
  of.late_ms = 8;
  CHECK(judge(of, 1).cause == 1);
  CHECK(judge(of, 1).link == rank_link::hand_over);
  of.late_ms = 0.01;
  of.workers_of_1 = 3;
  CHECK(judge(of, 1).cause == 1);
  CHECK(judge(of, 1).link == rank_link::workers);
}

TEST_CASE("ranks that do not end their steps together have no cause") {
  job of;
  of.slower = 0.5;
  CHECK(judge(of, 1).in_step);
  of.together = false;
  CHECK_FALSE(judge(of, 1).in_step);
  CHECK_FALSE(judge(of, 1).cause);
}
