// The examples of each shape of pipeline: what they leave is what they say, and lotus-tool reads
// it.
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

/// What lies from the end of the wait to "consumed", and from there to the next wait: medians.
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

TEST_CASE("consumer_loop says consumed before the step, and late behind it") {
  for (const char* how : {"", "late"}) {
    const example e{EXAMPLE_CONSUMER_LOOP_PROGRAM, how};
    const auto lines = e.logs();
    for (const char* kind :
         {"SBatchPreprocessed", "SBatchWait", "SBatchConsumed", "SBatchQueued"}) {
      CHECK(numbers_of(lines, kind) == all_below(24));
    }
    CHECK(lies_within(lines, "SFill", "SBatchPreprocessed_"));
    const auto [before_ns, behind_ns] = around_consumed(lines, 24);
    CHECK((before_ns > behind_ns) == (*how != '\0'));
    e.check_tool();
#ifdef LOTUS_TOOL_PROGRAM
    CHECK((e.tool_says("diagnose --details run").find("consumed-late") != std::string::npos) ==
          (*how != '\0'));
#endif
  }
}

TEST_CASE("the guide to the macros shows consumer_loop's loop as it stands") {
  const std::string program = text_of(LOTUS_SOURCE "/examples/consumer_loop.cpp");
  const std::string begin =
      "  for (std::size_t i = 0; i < batches; ++i) {\n    lotus::wait_for_batch";
  const std::size_t at = program.find(begin);
  REQUIRE(at != std::string::npos);
  const std::string loop = program.substr(at, program.find("\n  }\n", at) + 5 - at);
  CHECK(std::count(loop.begin(), loop.end(), '\n') <= 8);
  CHECK(text_of(LOTUS_SOURCE "/docs/guides/choose-macros.md").find(loop) != std::string::npos);
}

TEST_CASE("train_and_val keeps two loaders apart") {
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

TEST_CASE("service numbers its requests, and their parts lie in them") {
  const example e{EXAMPLE_SERVICE_PROGRAM};
  const auto requests = by_number(e.beside("stage"), "SRequest");
  const auto queued = by_number(e.beside("piece"), "SQueued");
  REQUIRE(requests.size() == 100);
  CHECK(requests.rbegin()->first == 99);
  CHECK(queued.size() == 100);
  CHECK(e.beside("counter").size() == 100);
  const auto lines = e.logs();
  CHECK(named(lines, "SRequest") == 100);
  for (const char* part : {"SSplit", "SRank"}) {
    CHECK(named(lines, part) == 100);
    CHECK(lies_within(lines, part, "SRequest"));
  }
  e.check_tool();
}

TEST_CASE("coroutines go on on another thread, in pieces that do not overlap") {
#ifdef EXAMPLE_COROUTINES_PROGRAM
  const example e{EXAMPLE_COROUTINES_PROGRAM};
  const auto loads = by_number(e.beside("piece"), "SLoad");
  CHECK(loads.size() == 24);
  std::size_t hopped = 0;
  for (auto [id, pieces] : loads) {
    INFO("id " << id);
    CHECK(pieces.size() == 4);
    std::sort(pieces.begin(), pieces.end(),
              [](const beside_line& a, const beside_line& b) { return a.time_ns < b.time_ns; });
    std::set<std::uint32_t> threads;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      threads.insert(pieces[i].tid);
      // Two reads of the disk's answer lie 2 ms apart.
      if (i > 0) CHECK(pieces[i].time_ns >= pieces[i - 1].time_ns + pieces[i - 1].a + 2'000'000);
    }
    if (threads.size() > 1) ++hopped;
  }
  CHECK(hopped > 0);
  CHECK(by_number(e.beside("stage"), "SDecode").size() == 24);
  CHECK(by_number(e.beside("stage"), "SRead").size() == 24);
  CHECK(lies_within(e.logs(), "SRead", "SLoad"));
  CHECK(numbers_of(e.logs(), "SBatchWait") == all_below(24));
  e.check_tool();
#else
  lotus_test::skip("the example is not built");
#endif
}
