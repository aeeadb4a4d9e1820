#include <string>
#include <thread>
#include <type_traits>

#include "catch.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;
using support::read_logs;

namespace {

int scopes_after_if(bool enter) {
  if (enter) LOTUS_SCOPE("AfterIf");
  if (enter)
    LOTUS_SCOPE("InThen");
  else
    LOTUS_SCOPE("InElse");
  return 1;
}

template <class T>
T in_template(T x) {
  LOTUS_SCOPE("InTemplate");
  return x;
}

}  // namespace

TEST_CASE("a scope can be neither copied nor moved") {
  CHECK_FALSE(std::is_copy_constructible_v<lotus::scope>);
  CHECK_FALSE(std::is_move_constructible_v<lotus::scope>);
  CHECK_FALSE(std::is_copy_assignable_v<lotus::scope>);
  CHECK(std::is_nothrow_destructible_v<lotus::scope>);
}

/// By how much the library's times may differ from the wall clock, `elapsed_ns` after the
/// recording's start: the counter's rate is at first known to 20 ppm, and a busy machine may be
/// slow to measure it better. The counter of an emulator has steps of 1 us.
constexpr std::int64_t clock_difference_ns(std::int64_t elapsed_ns) {
#ifdef LOTUS_TEST_EMULATOR
  return 50'000 + elapsed_ns / 200;
#else
  return 1'000 + elapsed_ns / 10'000;
#endif
}

TEST_CASE("each ended scope is one line with its start and duration") {
  const support::temp_directory run;
  const std::int64_t before_ns = lotus::detail::clock_ns(CLOCK_REALTIME);
  REQUIRE(lotus::start(run.prefix()));
  for (int i = 0; i < 10; ++i) {
    LOTUS_SCOPE("Outer");
    {
      LOTUS_SCOPE("Inner");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const std::int64_t after_ns = lotus::detail::clock_ns(CLOCK_REALTIME);
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(lines.size() == 20);
  CHECK(count_named(lines, "SOuter") == 10);
  CHECK(count_named(lines, "SInner") == 10);
  const std::int64_t difference_ns = clock_difference_ns(after_ns - before_ns);
  for (const auto& l : lines) {
    CHECK(l.role == "worker");
    CHECK(l.tid == static_cast<std::uint32_t>(gettid()));
    CHECK(l.duration_ns >= 1'000'000);
    CHECK(l.start_ns > before_ns - difference_ns);
    CHECK(l.end_ns() < after_ns + difference_ns);
  }
  // The nested scope ends first, so its line comes before the line of the outer scope.
  CHECK(lines[0].name == "SInner");
  CHECK(lines[1].start_ns <= lines[0].start_ns);
  CHECK(lines[0].end_ns() <= lines[1].end_ns());
}

TEST_CASE("scopes can be declared wherever a declaration is allowed") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  scopes_after_if(true);
  scopes_after_if(false);
  in_template(1);
  in_template(2.0);
  switch (in_template(1)) {
    case 1: {
      LOTUS_SCOPE("InCase");
      break;
    }
    default:
      break;
  }
  [] { LOTUS_SCOPE("InLambda"); }();
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(count_named(lines, "SAfterIf") == 1);
  CHECK(count_named(lines, "SInThen") == 1);
  CHECK(count_named(lines, "SInElse") == 1);
  CHECK(count_named(lines, "SInTemplate") == 3);
  CHECK(count_named(lines, "SInCase") == 1);
  CHECK(count_named(lines, "SInLambda") == 1);
}

TEST_CASE("several scopes can be on one line and in one macro") {
#define TIMED_BATCH(name, batch)   \
  LOTUS_BATCH_PREPROCESSED(batch); \
  LOTUS_SCOPE(name);               \
  LOTUS_SCOPE_DYNAMIC(std::string(name) + "Again")
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  int regions = 0;
  {
    LOTUS_SCOPE("Left");
    LOTUS_SCOPE("Right");
    TIMED_BATCH("InMacro", 1);
  }
  LOTUS_MAP_REGION("Outer") {
    LOTUS_MAP_REGION("Inner") {
      ++regions;
    }
  }
  lotus::stop();
  const auto lines = read_logs(run.path());
  for (const char* name : {"SLeft", "SRight", "SBatchPreprocessed_1", "SInMacro", "SInMacroAgain",
                           "SOuter", "SInner"}) {
    CHECK(count_named(lines, name) == 1);
  }
  CHECK(regions == 1);
#undef TIMED_BATCH
}

TEST_CASE("run-time names are copied from anything that converts to a string view") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  char changing[] = "op0";
  for (char i = 0; i < 5; ++i) {
    changing[2] = static_cast<char>('0' + i);
    LOTUS_SCOPE_DYNAMIC(changing);
  }
  for (int i = 0; i < 2; ++i) {
    const std::string w = "op" + std::to_string(i);
    LOTUS_SCOPE_DYNAMIC(w);
  }
  { LOTUS_SCOPE_DYNAMIC(std::string("BatchWait_3,1,1000\nSForged,1,2")); }
  { const lotus::scope direct{"Direct"}; }
  lotus::stop();
  const auto lines = read_logs(run.path());
  CHECK(lines.size() == 9);
  CHECK(count_named(lines, "Sop0") == 2);
  CHECK(count_named(lines, "Sop4") == 1);
  CHECK(count_named(lines, "SDirect") == 1);
  CHECK(count_named(lines, "S%42atchWait_3%2C1%2C1000%0ASForged%2C1%2C2") == 1);
}

TEST_CASE("a scope that begins or ends outside the recording is not recorded") {
  const support::temp_directory run;
  {
    LOTUS_SCOPE("BegunBefore");
    REQUIRE(lotus::start(run.prefix()));
  }
  {
    LOTUS_SCOPE("EndedAfter");
    lotus::stop();
  }
  { LOTUS_SCOPE("After"); }
  CHECK(read_logs(run.path()).empty());
}

TEST_CASE("a scope that an exception leaves is recorded") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  try {
    LOTUS_SCOPE("Throws");
    throw 1;
  } catch (int) {
  }
  lotus::stop();
  CHECK(count_named(read_logs(run.path()), "SThrows") == 1);
}
