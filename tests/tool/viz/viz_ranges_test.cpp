// Tests how viz draws the ranges that a program has recorded with lotus::range.
#include <string>

#include "catch.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("ranges that the program named are on a track below their thread, with numbers") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_7", "SCrop,1000,10\n");
  dir.file(".lotus_beside_lotustrace_log_pid_7",
           "range,Siteration_,800,100,0\nrange,Sinner,1100,50,\nrange,Siteration_,1000,500,7\n"
           "range,Sacross,1400,300,\n");
  const json document = draw(dir.path());
  CHECK(named(document, "iteration_0").size() == 1);
  REQUIRE(named(document, "iteration_7").size() == 1);
  const json slice = named(document, "iteration_7")[0];
  CHECK(slice["cat"].text() == "range");
  CHECK(slice["dur"].number() == Approx(0.5));
  const json inner = named(document, "inner")[0];
  CHECK(inner["tid"].integer() == slice["tid"].integer());
  // The range overlaps only partly with the iteration, so it must be on another track.
  CHECK(named(document, "across")[0]["tid"].integer() != slice["tid"].integer());
  CHECK(named(document, "Crop")[0]["tid"].integer() != slice["tid"].integer());
  const result r = run({"viz", dir.path(), "-o", dir.path() + "/out", "--format", "perfetto"});
  CHECK(r.status == 0);
  const std::string drawn = read_file(dir.path() + "/out");
  CHECK(contains(drawn, "iteration"));
  CHECK_FALSE(contains(drawn, "iteration_"));
}
