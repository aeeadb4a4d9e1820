// Tests what the recorded times of calls say about each other: which of them overlapped, and for
// how long each was served if only some of them could be served at the same time.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "replay/recorded/shared_operations.hpp"

using namespace lotus::tool;

namespace {

/// Two calls that overlap, and three that do not, of which one has a call inside it.
stored_calls some_calls() {
  stored_calls all(false);
  all.add_log({{0, 100, 0, 0}, {310, 320, 0, 2}, {300, 340, 0, 2}, {400, 500, 0, 3}});
  all.add_log({{50, 200, 1, 1}, {510, 560, 1, 4}});
  all.finish();
  return all;
}

std::vector<double> served_by(std::size_t servers, std::size_t& waited) {
  std::vector<double> times_ns;
  some_calls().for_each_served(servers, [&](const operation_call&, double ns, bool has_waited) {
    times_ns.push_back(ns);
    waited += has_waited ? 1 : 0;
  });
  return times_ns;
}

}  // namespace

TEST_CASE("calls that began while no other call was open are told from the others") {
  const stored_calls calls = some_calls();
  CHECK(calls.size() == 5);
  CHECK(calls.all_ns() == 100 + 150 + 40 + 100 + 50);
  const call_overlap& found = calls.overlap();
  CHECK(found.max_inside == 2);
  CHECK(found.alone_ns == (100 + 40 + 100 + 50) / 4.0);
  CHECK(found.shared_ns == 150);
  CHECK(found.alone_low_ns < found.alone_ns);
  CHECK(found.alone_ns < found.alone_high_ns);
  // Only after the first call had ended was another one open.
  CHECK(found.gap_ns == 100);
}

TEST_CASE("a call is served from its start, or from the time when a server became free") {
  std::size_t waited = 0;
  CHECK(served_by(1, waited) == std::vector<double>{100, 100, 40, 100, 50});
  CHECK(waited == 1);
  CHECK(served_by(SIZE_MAX, waited) == std::vector<double>{100, 150, 40, 100, 50});
  CHECK(waited == 1);
}

TEST_CASE("without calls, nothing overlaps") {
  stored_calls none(true);
  none.finish();
  const call_overlap& found = none.overlap();
  CHECK(found.max_inside == 1);
  CHECK(found.alone_ns == 0);
  CHECK(found.gap_ns == 0);
}

TEST_CASE("calls that have become much longer do not seem to wait for each other") {
  constexpr std::int64_t ms = 1'000'000;
  stored_calls all(false);
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    std::vector<operation_call> calls;
    std::int64_t now = thread * ms;
    for (std::uint32_t i = 0; i < 42; ++i) {
      // A thread pauses while its batches are not yet wanted, which they are when calls are longer.
      const bool is_long = i >= 21;
      const std::int64_t needs = (is_long ? 36 : 4) * ms + (i * 7 + thread) % 5 * ms / 50;
      calls.push_back({now, now + needs, thread, 3 * i + thread});
      now += needs + (is_long ? 0 : 5 * ms);
    }
    all.add_log(std::move(calls));
  }
  all.finish();
  CHECK(find_served_at_once(all).plausible == std::vector<std::size_t>{3});
}
