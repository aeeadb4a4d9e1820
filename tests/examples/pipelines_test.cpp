// Tests one example for each kind of pipeline: its logs must contain the expected records, and
// lotus-tool must be able to read them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "example_run.hpp"
#include "support.hpp"

using namespace example_run;

namespace {

/// Returns two medians over all batches: the time from the end of the wait to SBatchConsumed, and
/// from SBatchConsumed to the next wait.
std::pair<std::int64_t, std::int64_t> around_consumed(const std::vector<log_line>& lines,
                                                      std::uint64_t batches) {
  std::map<std::string, log_line> at;
  for (const log_line& l : lines) at[l.name] = l;
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> behind;
  for (std::uint64_t i = 0; i + 1 < batches; ++i) {
    const std::int64_t consumed_ns = at["SBatchConsumed_" + std::to_string(i)].start_ns;
    before.push_back(consumed_ns - at["SBatchWait_" + std::to_string(i)].end_ns());
    behind.push_back(at["SBatchWait_" + std::to_string(i + 1)].start_ns - consumed_ns);
  }
  std::sort(before.begin(), before.end());
  std::sort(behind.begin(), behind.end());
  return {before[before.size() / 2], behind[behind.size() / 2]};
}

}  // namespace

TEST_CASE("consumer_loop records CONSUMED before the step, and with the argument late after it") {
  for (const char* how : {"", "late"}) {
    const example e{EXAMPLE_CONSUMER_LOOP_PROGRAM, how};
    const auto lines = e.logs();
    for (const char* kind :
         {"SBatchPreprocessed", "SBatchWait", "SBatchConsumed", "SBatchQueued"}) {
      CHECK(numbers_of(lines, kind) == all_below(24));
    }
    CHECK(lies_within(lines, "SFill", "SBatchPreprocessed_"));
    const auto [before_ns, margin_ns] = around_consumed(lines, 24);
    CHECK((before_ns > margin_ns) == (*how != '\0'));
    e.check_tool();
#ifdef LOTUS_TOOL_PROGRAM
    CHECK((e.tool_output("diagnose --details run").find("consumed-late") != std::string::npos) ==
          (*how != '\0'));
#endif
  }
}

TEST_CASE("the guide to the macros quotes the loop of consumer_loop unchanged") {
  const std::string program = text_of(LOTUS_SOURCE "/examples/consumer_loop.cpp");
  const std::string begin = "  for (std::size_t i = 0; i < batches; ++i) {\n    lotus::batch_wait";
  const std::size_t at = program.find(begin);
  REQUIRE(at != std::string::npos);
  const std::string loop = program.substr(at, program.find("\n  }\n", at) + 5 - at);
  CHECK(std::count(loop.begin(), loop.end(), '\n') <= 8);
  CHECK(text_of(LOTUS_SOURCE "/docs/guides/choose-macros.md").find(loop) != std::string::npos);
}

TEST_CASE("train_and_val records its two loaders separately") {
  const example e{EXAMPLE_TRAIN_AND_VAL_PROGRAM};
  const auto train = e.logs();
  const auto val = support::read_logs(e.run() / "val");
  for (const char* kind : {"SBatchPreprocessed", "SBatchWait", "SBatchConsumed"}) {
    CHECK(numbers_of(train, kind) == all_below(20, 2));
    CHECK(numbers_of(val, kind) == all_below(5, 2));
  }
  CHECK(named(train, "SLoad") == 40);
  CHECK(named(val, "SLoad") == 10);
  e.check_tool();
}

TEST_CASE("service numbers its requests, and their operations lie within them") {
  const example e{EXAMPLE_SERVICE_PROGRAM};
  const auto requests = by_number(e.side_lines("stage"), "SRequest");
  const auto queued = by_number(e.side_lines("piece"), "SQueued");
  REQUIRE(requests.size() == 100);
  CHECK(requests.rbegin()->first == 99);
  CHECK(queued.size() == 100);
  CHECK(e.side_lines("counter").size() == 100);
  const auto lines = e.logs();
  CHECK(named(lines, "SRequest") == 100);
  for (const char* part : {"SSplit", "SRank"}) {
    CHECK(named(lines, part) == 100);
    CHECK(lies_within(lines, part, "SRequest"));
  }
  e.check_tool();
}

TEST_CASE("coroutines record segments that do not overlap, on more than one thread") {
#ifdef EXAMPLE_COROUTINES_PROGRAM
  const example e{EXAMPLE_COROUTINES_PROGRAM};
  const auto loads = by_number(e.side_lines("piece"), "SLoad");
  CHECK(loads.size() == 24);
  std::size_t hopped = 0;
  for (auto [id, segments] : loads) {
    INFO("id " << id);
    CHECK(segments.size() == 4);
    std::sort(segments.begin(), segments.end(),
              [](const side_log_line& a, const side_log_line& b) { return a.time_ns < b.time_ns; });
    std::set<std::uint32_t> threads;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      threads.insert(segments[i].tid);
      // The example checks every 2 ms whether its simulated disk has finished, so segments are at
      // least that far apart.
      if (i > 0)
        CHECK(segments[i].time_ns >= segments[i - 1].time_ns + segments[i - 1].a + 2'000'000);
    }
    if (threads.size() > 1) ++hopped;
  }
  CHECK(hopped > 0);
  CHECK(by_number(e.side_lines("stage"), "SDecode").size() == 24);
  CHECK(by_number(e.side_lines("stage"), "SRead").size() == 24);
  CHECK(lies_within(e.logs(), "SRead", "SLoad"));
  CHECK(numbers_of(e.logs(), "SBatchWait") == all_below(24));
  e.check_tool();
#else
  lotus_test::skip("the example is not built");
#endif
}
