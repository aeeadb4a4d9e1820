// Tests predictions for more and fewer workers if something does not scale: the answers must be
// right, or their intervals wide.
#include <cstdlib>
#include <iostream>

#include "catch.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/json.hpp"
#include "tool/replay/contended_loader.hpp"
#include "tool/replay/scaling_suite.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the questions; LOTUS_SCALING_SEEDS=N selects all questions with N seeds each.
scaling_questions questions(bool two_levels) {
  scaling_questions some;
  some.two_levels = two_levels;
  const char* const seeds = std::getenv("LOTUS_SCALING_SEEDS");
  if (seeds == nullptr) {
    some.cvs = {0.3};
    some.recorded = {1, 4};
    some.asked = {1, 2, 8};
    return some;
  }
  some.seeds.clear();
  for (unsigned seed = 1; seed <= std::strtoul(seeds, nullptr, 10); ++seed) {
    some.seeds.push_back(seed);
  }
  return some;
}

}  // namespace

TEST_CASE("with one recording, the prediction interval contains the truth") {
  const scaling_score score = ask_about_scaling(questions(false), std::cout);
  CHECK(100 * score.wrong <= 3 * score.all());
  CHECK(score.right > 0);
}

TEST_CASE("with recordings of two worker counts, most prediction intervals are also narrow") {
  scaling_questions of_two = questions(true);
  const scaling_score crowded = ask_about_scaling(of_two, std::cout);
  CHECK(100 * crowded.wrong <= 3 * crowded.all());
  // If other programs use the CPUs, more intervals are wide, because the tool cannot know how much
  // CPU time these programs will need. So the limit for silent answers is checked without them.
  of_two.neighbours = false;
  const scaling_score score = ask_about_scaling(of_two, std::cout);
  CHECK(100 * score.wrong <= 3 * score.all());
  CHECK(100 * score.silent <= 20 * score.all());
}

TEST_CASE("a short second run that is slow by chance does not show that an operation is serial") {
  unsigned missed = 0;
  constexpr unsigned seeds = 20;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    contended_loader loader;
    loader.cv = 0.7;
    loader.batches = 40;
    const temp_dir dirs[2];
    for (const int workers : {1, 4}) {
      loader.workers = workers;
      loader.seed = seed + 100 * static_cast<unsigned>(workers);
      planted_logs logs;
      loader.simulate_into(&logs);
      logs.write(dirs[workers / 4]);
    }
    const result r =
        run({"whatif", dirs[0].path(), "--also", dirs[1].path(), "--workers", "8", "--json", "-q"});
    REQUIRE(r.status == 0);
    loader.workers = 8;
    loader.seed = seed + 100;  // the same work as in the first run
    const double truth = loader.simulate_into(nullptr);
    missed += parse_json(r.out)["changes"][0]["high"].number() < truth ? 1 : 0;
  }
  CHECK(missed <= seeds / 10);
}
