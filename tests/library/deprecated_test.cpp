// Tests the names of earlier versions, which still work for one release: see lotus/deprecated.hpp.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using support::count_named;
using support::numbers_of;
using support::read_logs;
using support::read_side_log;
using support::side_log_line;

namespace {

struct item {
  std::uint32_t id;
  std::string text;
};

}  // namespace

TEST_CASE("laps records consecutive sections of code") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  {
    lotus::laps lap;
    lap("Decode");
    lap("Crop");
  }
  { const lotus::laps nothing; }
  lotus::stop();
  const auto lines = read_logs(run.path());
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].name == "SDecode");
  CHECK(lines[1].name == "SCrop");
  CHECK(lines[0].end_ns() == lines[1].start_ns);
  CHECK(lines[2].name == "STransform");
  CHECK(lines[2].end_ns() == lines[1].end_ns());
}

TEST_CASE("pushed ranges nest, and an extra pop does nothing") {
  const support::temp_directory run;
  lotus::range_push("before");
  REQUIRE(lotus::start(run.prefix()));
  lotus::range_push("outer");
  lotus::range_push("inner");
  for (int i = 0; i < 4; ++i) lotus::range_pop();
  lotus::stop();
  const auto ranges = read_side_log(run.path(), "range");
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].name == "Sinner");
  CHECK(ranges[1].name == "Souter");
}

TEST_CASE("staged functions take their number from an argument, a projection or the result") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const auto by_argument = lotus::staged("Argument", [](int i) { return i + 1; });
  const auto by_member = lotus::staged(
      "Member", [](const item& x) { return x.id; }, [](const item& x) { return x.text + "!"; });
  auto by_result = lotus::staged(
      "Source",
      [](const std::optional<item>& x) {
        return x ? std::optional<std::uint32_t>{x->id} : std::nullopt;
      },
      [next = 0U]() mutable {
        return next < 3 ? std::optional<item>{item{next++, "source"}} : std::nullopt;
      });
  const auto by_pointer = lotus::staged("Pointer", &item::id, [](const item& x) -> const item& {
    return x;  // NOLINT(bugprone-return-const-ref-from-parameter): the caller's
  });
  auto by_content = lotus::staged("Content", &item::id, [next = 0U]() mutable {
    static item made;
    made = {next++, "content"};
    return made.id < 2 ? &made : nullptr;
  });
  auto by_optional = lotus::staged(
      "Optional", [](const item& x) { return x.id; },
      [next = 4U]() mutable {
        return next < 6 ? std::optional<item>{item{next++, ""}} : std::nullopt;
      });
  const auto throws = lotus::staged("Throws", [](int) -> int { throw std::runtime_error("no"); });

  CHECK(by_argument(41) == 42);
  CHECK(by_member(item{7, "seven"}) == "seven!");
  int made = 0;
  while (by_result()) ++made;
  CHECK(made == 3);
  while (by_content() != nullptr) ++made;
  CHECK(made == 5);
  while (by_optional()) ++made;
  CHECK(made == 7);
  const item kept{9, "nine"};
  CHECK(&by_pointer(kept) == &kept);
  CHECK_THROWS_AS(throws(5), std::runtime_error);
  lotus::stop();

  const auto stages = read_side_log(run.path(), "stage");
  CHECK(numbers_of(stages, "SArgument") == std::vector<std::int64_t>{41});
  CHECK(numbers_of(stages, "SMember") == std::vector<std::int64_t>{7});
  CHECK(numbers_of(stages, "SSource") == std::vector<std::int64_t>{0, 1, 2});
  CHECK(numbers_of(stages, "SContent") == std::vector<std::int64_t>{0, 1});
  CHECK(numbers_of(stages, "SOptional") == std::vector<std::int64_t>{4, 5});
  CHECK(numbers_of(stages, "SPointer") == std::vector<std::int64_t>{9});
  CHECK(numbers_of(stages, "SThrows") == std::vector<std::int64_t>{5});
  // The last call of the stage Source produced no item, so no operation must be recorded for it.
  CHECK(count_named(read_logs(run.path()), "SSource") == 3);
}

TEST_CASE("waits and batches of the earlier classes, and named operations, are recorded") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  {
    lotus::preprocessed_batch batch;
    batch.number(3);
  }
  lotus::wait_for_batch wait;
  wait.got(3);
  lotus::wait_for_batch other;
  other.consumed(4);
  CHECK(lotus::compose(lotus::op("Add", [](int x) { return x + 1; }))(1) == 2);
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(lines.size() == 6);
  for (const char* name : {"SBatchPreprocessed_3", "SBatchWait_3", "SBatchWait_4",
                           "SBatchConsumed_4", "SAdd", "STransform"}) {
    CHECK(count_named(lines, name) == 1);
  }
}

TEST_CASE("limits by the earlier options apply to text logs") {
  const support::temp_directory run;
  lotus::options o;
  o.log_file = run.prefix();
  o.ring_records = 256;
  o.max_bytes = 300'000;
  o.max_age_s = 3600;
  REQUIRE(lotus::start(o));
  for (std::uint64_t i = 0; i < 50'000; ++i) lotus::batch_consumed(i);
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(lines.size() > 1000);
  CHECK(lines.size() < 300'000 / 30);
  CHECK(count_named(lines, "SBatchConsumed_49999") == 1);
}
