// Tests that the calls of an operation come back in the order of their ends, whatever the order in
// which logs contain them.
#include "replay/recorded/stored_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "catch.hpp"

namespace tool = lotus::tool;

namespace {

/// Returns the calls of several logs.
/// @param is_sorted  whether the calls of a log are sorted by their starts and ends.
std::vector<tool::operation_call> calls_of_logs(std::size_t calls, bool is_sorted) {
  std::mt19937_64 random(calls);
  std::uniform_int_distribution<std::int64_t> duration(1, 5000);
  std::vector<tool::operation_call> all;
  for (std::uint32_t file = 0; file < 3; ++file) {
    std::int64_t at_ns = 1'700'000'000'000'000'000 + file;
    for (std::size_t i = 0; i < calls / 3; ++i) {
      tool::operation_call c;
      c.start_ns = at_ns;
      c.end_ns = at_ns + duration(random);
      c.file = file;
      c.work = static_cast<std::uint32_t>(all.size());
      c.cpu_ns = static_cast<double>(c.end_ns - c.start_ns) - 1;
      c.queued_ns = 1;
      // A call that begins before the previous one has ended, but not inside it, belongs to an
      // asynchronous operation.
      at_ns = is_sorted ? c.end_ns + 1 : c.start_ns + 1 + duration(random) / 2;
      all.push_back(c);
    }
  }
  return all;
}

auto key(const tool::operation_call& c) {
  return std::make_tuple(c.end_ns, c.start_ns, c.work, c.cpu_ns, c.queued_ns);
}

void sort_by_ends(std::vector<tool::operation_call>& calls) {
  std::sort(calls.begin(), calls.end(),
            [](const auto& a, const auto& b) { return key(a) < key(b); });
}

}  // namespace

TEST_CASE("stored calls are returned in the order of their ends") {
  for (const bool is_sorted : {true, false}) {
    // The larger number needs many blocks of packed operations.
    for (const std::size_t calls : {0U, 30U, 300'000U}) {
      CAPTURE(is_sorted, calls);
      std::vector<tool::operation_call> expected = calls_of_logs(calls, is_sorted);
      tool::stored_calls stored(true);
      for (const tool::operation_call& c : expected) stored.add(c);
      stored.finish();
      std::vector<tool::operation_call> found;
      stored.for_each([&found](const tool::operation_call& c) { found.push_back(c); });
      const bool in_order =
          std::is_sorted(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
      CHECK(in_order);
      CHECK(stored.size() == found.size());
      if (is_sorted) {
        // No call lies inside another one, so none is left out.
        sort_by_ends(found);
        sort_by_ends(expected);
        REQUIRE(found.size() == expected.size());
        CHECK(std::equal(found.begin(), found.end(), expected.begin(),
                         [](const auto& a, const auto& b) { return key(a) == key(b); }));
      }
      double all_ns = 0;
      for (const tool::operation_call& c : found) {
        all_ns += static_cast<double>(c.end_ns - c.start_ns);
      }
      CHECK(stored.all_ns() == all_ns);
    }
  }
}

TEST_CASE("the service times of stored calls are those of a list of the same calls") {
  tool::stored_calls stored(true);
  for (const tool::operation_call& c : calls_of_logs(3000, true)) stored.add(c);
  stored.finish();
  std::vector<tool::operation_call> calls;
  stored.for_each([&calls](const tool::operation_call& c) { calls.push_back(c); });
  for (const std::size_t servers : {std::size_t{1}, std::size_t{2}, std::size_t{7}, SIZE_MAX}) {
    std::vector<double> found;
    std::size_t waited = 0;
    stored.for_each_served(servers, [&](const tool::operation_call& c, double ns, bool has_waited) {
      found.push_back(ns);
      waited += has_waited ? 1 : 0;
      CHECK(has_waited == (ns < static_cast<double>(c.end_ns - c.start_ns)));
    });
    CHECK(found == tool::service_times(calls, servers));
    CHECK((waited > 0) == (servers != SIZE_MAX));
  }
}
