// Compares time off the CPU with the true times of simulated threads.
#include "model/pipeline/off_cpu.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace lotus::tool;

namespace {

struct true_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t queue_ns = 0;
  std::int64_t blocked_ns = 0;
};

/// A simulated thread with nested spans. In a span, the thread runs, waits for a CPU or sleeps, and
/// sometimes reads its clocks.
class played_thread {
 public:
  explicit played_thread(unsigned seed) : random_(seed) {
    for (int i = 0; i < 40; ++i) {
      live();
      play(0);
    }
    live();
  }

  std::vector<true_span> spans;
  std::vector<off_cpu_interval> lines;

 private:
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  void play(int depth) {
    look();
    const std::size_t self = spans.size();
    spans.push_back({now_ns_, 0, queue_ns_, blocked_ns_});
    const std::int64_t children = depth < 3 ? draw(0, 3) : 0;
    live();
    for (std::int64_t i = 0; i < children; ++i) {
      play(depth + 1);
      live();
    }
    look();
    true_span& s = spans[self];
    s.end_ns = now_ns_;
    s.queue_ns = queue_ns_ - s.queue_ns;
    s.blocked_ns = blocked_ns_ - s.blocked_ns;
  }

  /// Simulates that the thread runs, and is off the CPU up to three times.
  void live() {
    now_ns_ += draw(10, 10'000);
    for (std::int64_t i = draw(0, 3); i > 0; --i) {
      const std::int64_t queue = draw(0, 1) * draw(1, 5'000'000);
      const std::int64_t blocked = draw(0, 1) * draw(1, 5'000'000);
      queue_ns_ += queue;
      blocked_ns_ += blocked;
      now_ns_ += queue + blocked + draw(1, 3'000);
    }
  }

  /// Does what the library does when a span begins or ends: records the time off the CPU since the
  /// last record.
  void look() {
    const std::int64_t queue = queue_ns_ - reported_queue_ns_;
    const std::int64_t off = queue + blocked_ns_ - reported_blocked_ns_;
    if (off > 0) lines.push_back({now_ns_ - off, now_ns_, queue});
    reported_queue_ns_ = queue_ns_;
    reported_blocked_ns_ = blocked_ns_;
  }

  std::mt19937 random_;
  std::int64_t now_ns_ = 1'000'000'000;
  std::int64_t queue_ns_ = 0;
  std::int64_t blocked_ns_ = 0;
  std::int64_t reported_queue_ns_ = 0;
  std::int64_t reported_blocked_ns_ = 0;
};

}  // namespace

TEST_CASE("running, waiting for a CPU and blocked times are exact for every span") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const played_thread thread(seed);
    const off_cpu_time off(thread.lines, cpu_measure::switches);
    CAPTURE(seed);
    for (const true_span& s : thread.spans) {
      const cpu_split split = off.split(s.start_ns, s.end_ns);
      REQUIRE(split.run_queue_ns.has_value());
      REQUIRE(*split.run_queue_ns == s.queue_ns);
      REQUIRE(*split.blocked_ns == s.blocked_ns);
      REQUIRE(split.cpu_ns == s.end_ns - s.start_ns - s.queue_ns - s.blocked_ns);
    }
  }
}

TEST_CASE("clocks that disagree never make a share negative or larger than the span") {
  // The two intervals overlap, although a thread cannot be off the CPU twice at a time. This
  // happens because their ends and their lengths are measured with different clocks.
  const off_cpu_time off({{104, 113, 0}, {100, 120, 15}}, cpu_measure::switches);
  const cpu_split first = off.split(103, 110);
  CHECK(first.cpu_ns == 1);
  CHECK(first.blocked_ns == 6);
  const cpu_split second = off.split(113, 120);
  CHECK(second.cpu_ns == 0);
  CHECK(second.run_queue_ns == 7);
  CHECK(second.blocked_ns == 0);
}

TEST_CASE("an unknown split is missing only in spans that it affects") {
  const off_cpu_time off({{10, 20, -1}, {30, 40, 10}}, cpu_measure::switches);
  const cpu_split unknown = off.split(5, 25);
  CHECK(unknown.cpu_ns == 10);
  CHECK_FALSE(unknown.run_queue_ns.has_value());
  CHECK_FALSE(unknown.blocked_ns.has_value());
  CHECK(off.split(25, 45).run_queue_ns == 10);
}
