#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::read_side_log;

TEST_CASE("a range is recorded in the side log, and in no other log") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  {
    const lotus::range outer{"epoch"};
    const lotus::range inner{std::string("iteration_") + "7"};
    LOTUS_SCOPE("Crop");
  }
  lotus::stop();
  CHECK(support::read_logs(run.path()).size() == 1);
  const auto ranges = read_side_log(run.path(), "range");
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].name == "Siteration_");
  CHECK(ranges[0].b == 7);
  CHECK(ranges[1].name == "Sepoch");
  CHECK(ranges[1].b == -1);
  CHECK(ranges[1].time_ns <= ranges[0].time_ns);
  CHECK(ranges[1].a >= ranges[0].a);
}

TEST_CASE("only a whole number at the end of a range's name is stored as its number") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  for (const char* name : {"a0", "a123456789", "a1234567890", "a07", "42", "a", "7b", ""}) {
    const lotus::range of{name};
  }
  lotus::stop();
  std::string reported;
  for (const auto& r : read_side_log(run.path(), "range")) {
    reported += r.name + ' ' + std::to_string(r.b) + '\n';
  }
  CHECK(reported == "Sa 0\nSa 123456789\nSa1234567890 -1\nSa07 -1\nS42 -1\nSa -1\nS7b -1\nS -1\n");
}
