// Tests predictions for more and fewer workers if something does not scale: the answers must be
// right, or their intervals wide.
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>

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
      loader.record_into(dirs[workers / 4]);
    }
    const result r = run_well(
        {"whatif", dirs[0].path(), "--also", dirs[1].path(), "--workers", "8", "--json", "-q"});
    loader.workers = 8;
    loader.seed = seed + 100;  // the same work as in the first run
    const double truth = loader.simulate_into(nullptr);
    missed += parse_json(r.out)["changes"][0]["high"].number() < truth ? 1 : 0;
  }
  CHECK(missed <= seeds / 10);
}

TEST_CASE("workers that sleep for two thirds of their time are suggested beyond the CPUs") {
  contended_loader loader;
  loader.cpus = 2;
  loader.workers = 4;
  loader.fetch_ms = 4;
  loader.crop_ms = 2;
  const temp_dir dir;
  loader.record_into(dir);
  const result r = run({"diagnose", dir.path(), "-q"});
  INFO(r.out << r.err);
  // Six such workers keep two CPUs busy.
  CHECK(contains(r.out, "6 workers instead of 4"));
}

TEST_CASE("a second run with the number of workers that is asked for decides the prediction") {
  contended_loader loader;
  loader.cv = GENERATE(0.0, 0.3);
  loader.batches = 400;
  const temp_dir few;
  const temp_dir many;
  for (const int workers : {2, 4}) {
    loader.workers = workers;
    // As if something that no record shows had slowed down the second run by a tenth.
    if (workers == 4) loader.before_ms += 0.1 * (loader.before_ms + loader.fetch_ms);
    loader.record_into(workers == 2 ? few : many);
  }
  const double measured = loader.simulate_into(nullptr);
  const result r =
      run_well({"whatif", few.path(), "--also", many.path(), "--workers", "4", "--json", "-q"});
  const json change = parse_json(r.out)["changes"][0];
  CAPTURE(measured);
  CHECK(std::abs(change["batches_per_s"].number() / measured - 1) < 0.03);
  CHECK(change["low"].number() < measured);
  CHECK(measured < change["high"].number());
}

TEST_CASE("wait samples of a lock that is held for a part of the time make predictions exact") {
  contended_loader loader;
  loader.kind = shared_kind::locked_work;
  loader.before_ms = 6;
  loader.fetch_ms = 2;
  loader.cv = 0.3;
  loader.batches = 1000;
  loader.wait_samples_per_s = 200;
  unsigned right = 0;
  unsigned asked = 0;
  for (const int workers : {4, 8}) {
    loader.workers = workers;
    const temp_dir dir;
    loader.record_into(dir);
    for (const int more_or_fewer : {1, 2, 4, 8, 12}) {
      if (more_or_fewer == workers) continue;
      const result r = run_well(
          {"whatif", dir.path(), "--workers", std::to_string(more_or_fewer), "--json", "-q"});
      contended_loader changed = loader;
      changed.workers = more_or_fewer;
      const double truth = changed.simulate_into(nullptr);
      const json change = parse_json(r.out)["changes"][0];
      const double low = change["low"].number();
      const double high = change["high"].number();
      CAPTURE(workers, more_or_fewer, truth, low, change["batches_per_s"].number(), high);
      CHECK(low <= truth);
      CHECK(truth <= high);
      ++asked;
      if (high <= 1.5 * low) ++right;
    }
  }
  CHECK(right == asked);
}

TEST_CASE("a lock that wait samples show is not assumed to be held for longer") {
  contended_loader loader;
  loader.kind = shared_kind::lock;
  loader.before_ms = 3;
  loader.fetch_ms = 2;
  loader.cv = 0.3;
  loader.batches = 1000;
  loader.wait_samples_per_s = 200;
  for (const int workers : {4, 8}) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      loader.workers = workers;
      loader.seed = seed;
      const temp_dir dir;
      loader.record_into(dir);
      for (const int fewer : {1, 2}) {
        const result r =
            run_well({"whatif", dir.path(), "--workers", std::to_string(fewer), "--json", "-q"});
        contended_loader changed = loader;
        changed.workers = fewer;
        const double truth = changed.simulate_into(nullptr);
        const json change = parse_json(r.out)["changes"][0];
        const double per_s = change["batches_per_s"].number();
        CAPTURE(workers, seed, fewer, truth, per_s);
        CHECK(change["low"].number() <= truth);
        CHECK(truth <= change["high"].number());
        CHECK(per_s / truth < 1.25);
        CHECK(per_s / truth > 0.75);
      }
    }
  }
}

TEST_CASE("threads that only wait for a lock are counted: so many are as fast") {
  for (const double before_ms : {2.0, 6.0}) {
    contended_loader loader;
    loader.kind = shared_kind::locked_work;
    loader.before_ms = before_ms;
    loader.fetch_ms = 2;
    loader.cv = 0.3;
    loader.batches = 400;
    loader.workers = 8;
    loader.wait_samples_per_s = 500;
    const temp_dir dir;
    planted_logs logs;
    const double eight_per_s = loader.simulate_into(&logs);
    logs.write(dir);
    int fewest = 1;
    for (;; ++fewest) {
      contended_loader fewer = loader;
      fewer.workers = fewest;
      if (fewer.simulate_into(nullptr) >= 0.98 * eight_per_s) break;
    }
    const result r = run({"whatif", dir.path(), "-q"});
    CAPTURE(before_ms, fewest, r.out, r.err);
    const std::size_t at = r.out.find(" instead of 8 are about as fast");
    REQUIRE(at != std::string::npos);
    const std::size_t line = r.out.rfind('\n', at) + 1;
    const int shown = std::stoi(r.out.substr(line));
    CHECK(std::abs(shown - fewest) <= 1);
    CHECK(fewest < 8);
  }
}
