// Tests how lotus-tool tune chooses the next run and measures throughput, without running programs.
#include "commands/tune/search.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "commands/tune/forecast.hpp"
#include "commands/tune/knobs.hpp"
#include "commands/tune/throughput.hpp"

using namespace lotus::tool;

namespace {

search_space space_of(const std::vector<std::string>& texts,
                      const std::vector<std::pair<std::string, std::string>>& start = {}) {
  std::vector<knob> knobs;
  std::vector<std::string> command{"./train"};
  for (const std::string& text : texts) {
    knobs.push_back(parse_knob(text, false, "--set"));
    command.push_back("--x={" + knobs.back().name + "}");
  }
  return {knobs, command, start};
}

throughput exactly(double per_s) {
  return {per_s, 0.995 * per_s, 1.005 * per_s, 100, 0};
}

/// Searches without predictions. `rate_of` returns the true throughput of a configuration; 0 means
/// that the run fails.
search searched(const search_space& space, const forecast& none, std::size_t runs,
                const std::function<double(const configuration&)>& rate_of,
                std::optional<double> target = {}) {
  search found(space, none, {runs, target});
  while (const std::optional<next_run> next = found.next()) {
    tune_run run;
    run.at = next->at;
    const double per_s = rate_of(next->at);
    if (per_s > 0) run.measured = exactly(per_s);
    found.add(run);
  }
  return found;
}

}  // namespace

TEST_CASE("values are lists, ranges and both") {
  CHECK(parse_knob("workers=1..3,8,2", false, "--set").values ==
        std::vector<std::string>{"1", "2", "3", "8"});
  CHECK(parse_knob("num-workers=1", false, "--set").meaning == knob_meaning::workers);
  CHECK(parse_knob("stage:Decode=1..2", false, "--set").stage == "Decode");
  CHECK(parse_knob("OMP_NUM_THREADS=1", true, "--env").meaning == knob_meaning::unknown);
}

TEST_CASE("the command to copy is quoted for a shell") {
  const search_space space({parse_knob("mode=a b,it's", false, "--set")},
                           {"./train", "--mode={mode}", ""}, {});
  CHECK(space.shell_command({0}) == "./train '--mode=a b' ''");
  CHECK(space.shell_command({1}) == "./train '--mode=it'\\''s' ''");
}

TEST_CASE("a plain search doubles values, and stops when that gains nothing") {
  const search_space space = space_of({"workers=1..16", "x=a,b,c"});
  const forecast none(space);
  const search found = searched(space, none, 20, [](const configuration& at) {
    return std::min(5.0, static_cast<double>(at[0] + 1)) * (at[1] == 1 ? 2 : 1);
  });
  REQUIRE(found.best() != nullptr);
  CHECK(space.text(found.best()->at) == "workers=5, x=b");
  CHECK(found.runs().size() <= 16);
  CHECK(found.ended() == search_end::nothing_better);
}

TEST_CASE("a search ends when the target is reached") {
  const search_space space = space_of({"workers=1..16"});
  const forecast none(space);
  const auto rate_of = [](const configuration& at) {
    return 10.0 * static_cast<double>(at[0] + 1);
  };
  const search found = searched(space, none, 20, rate_of, 45);
  REQUIRE(found.best() != nullptr);
  CHECK(found.best()->rate.per_s >= 45);
  CHECK(found.runs().size() < 8);
  CHECK(found.ended() == search_end::target_reached);
}

TEST_CASE("a plain search finds settings that gain only together") {
  // These throughputs were measured with a real pipeline on 2 CPUs: more threads gain nothing
  // without several items in flight.
  const search_space space = space_of({"threads=1..4", "in_flight=1,2,4,8,16,32"});
  const forecast none(space);
  const search found = searched(space, none, 5, [](const configuration& at) {
    const std::vector<double> two_threads{53.5, 85, 95, 99, 102, 101};
    return at[0] == 0 ? 53 : two_threads[at[1]];
  });
  CHECK(found.best()->rate.per_s >= 0.95 * 102);
}

TEST_CASE("a search from a large value goes down") {
  const search_space space = space_of({"workers=1..16"}, {{"workers", "16"}});
  const forecast none(space);
  const search found = searched(space, none, 8, [](const configuration& at) {
    return 100 - 2 * std::abs(static_cast<double>(at[0]) - 2);
  });
  CHECK(found.best()->rate.per_s >= 96);
  CHECK(found.runs().front().at == configuration{15});
}

TEST_CASE("of configurations within 2 %, the one with the fewest threads is the best") {
  const search_space space = space_of({"workers=1,2,4"});
  const forecast none(space);
  const search found = searched(space, none, 6, [](const configuration& at) {
    return at[0] == 0 ? 50.0 : at[0] == 1 ? 99.0 : 100.0;
  });
  CHECK(space.text(found.best()->at) == "workers=2");
}

TEST_CASE("of configurations with as many threads, the one with the least memory is the best") {
  const search_space space = space_of({"workers=2", "prefetch=1,2,4"});
  const forecast none(space);
  search found(space, none, {6, {}});
  for (const std::size_t prefetch : {2U, 1U, 0U}) {
    tune_run run;
    run.at = {0, prefetch};
    run.measured = exactly(prefetch == 0 ? 90 : 100);
    run.trial.bytes = 1'000'000 * (1 + prefetch);
    found.add(run);
  }
  CHECK(space.text(found.best()->at) == "workers=2, prefetch=2");
}

TEST_CASE("a result is undecided as long as another may be 5 % faster") {
  const search_space space = space_of({"workers=1,2"});
  const forecast none(space);
  const auto with = [&](double second, double reach, double others, std::size_t times) {
    search found(space, none, {6, {}});
    for (std::size_t t = 0; t < times; ++t) {
      for (const std::size_t w : {0U, 1U}) {
        const double per_s = w == 0 ? 100 : second;
        tune_run run;
        run.at = {w};
        run.measured = throughput{per_s, per_s * (1 - reach), per_s * (1 + reach), 100, 0};
        run.trial.other_cpus = others;
        run.trial.waited = others;
        found.add(run);
      }
    }
    return found;
  };
  CHECK(with(80, 0.01, 0, 1).is_decided());
  CHECK(with(80, 0.01, 0, 1).rival() == nullptr);
  CHECK(with(101, 0.01, 0, 1).is_decided());
  CHECK_FALSE(with(101, 0.1, 0, 1).is_decided());
  // If other programs disturbed the runs, one run of each configuration proves too little for a
  // decision; three runs are enough.
  CHECK_FALSE(with(101, 0.01, 1000, 1).is_decided());
  CHECK(with(99, 0.01, 1000, 3).is_decided());
}

TEST_CASE("one batch size does not show how the work grows, so another one is run") {
  const search_space space = space_of({"batch_size=4,8,16,32"});
  const forecast none(space);
  search found(space, none, {2, {}});
  std::vector<configuration> order;
  while (const std::optional<next_run> next = found.next()) {
    order.push_back(next->at);
    tune_run run;
    run.at = next->at;
    run.measured = exactly(100);
    found.add(run);
  }
  CHECK(order == std::vector<configuration>{{0}, {3}});
}

TEST_CASE("runs that fail are no candidates, and the budget is kept") {
  const search_space space = space_of({"workers=1..8"});
  const forecast none(space);
  const search found = searched(space, none, 4, [](const configuration& at) {
    return at[0] == 1 ? 0.0 : 10.0 + double(at[0]);
  });
  CHECK(found.runs().size() <= 4);
  REQUIRE(found.best() != nullptr);
  CHECK(found.best()->at != configuration{1});
}

TEST_CASE("configurations whose intervals overlap are repeated in turn") {
  const search_space space = space_of({"workers=1,2"});
  const forecast none(space);
  search found(space, none, {6, {}});
  std::vector<configuration> order;
  while (const std::optional<next_run> next = found.next()) {
    order.push_back(next->at);
    tune_run run;
    run.at = next->at;
    run.measured = throughput{next->at[0] == 0 ? 95.0 : 100.0, 80, 115, 20, 0};
    found.add(run);
  }
  CHECK(order == std::vector<configuration>{{0}, {1}, {1}, {0}, {1}, {0}});
}

TEST_CASE("throughput does not depend on where bursts are cut") {
  // Simulates eight workers that began together, so eight batches arrive every 100 ms.
  for (const std::size_t count : {40U, 43U, 47U, 101U}) {
    std::vector<double> times;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t burst = i / 8;
      times.push_back(1e8 * static_cast<double>(burst));
    }
    const std::optional<throughput> found = steady_throughput({times}, 0);
    REQUIRE(found);
    INFO(count << ": " << found->per_s);
    CHECK(std::abs(found->per_s / 80 - 1) < (count < 100 ? 0.06 : 0.02));
  }
}

TEST_CASE("start-up is left out") {
  std::vector<double> times;
  double now_ns = 2e9;
  for (int i = 0; i < 300; ++i) {
    times.push_back(now_ns);
    now_ns += (i < 30 ? 50e6 : 10e6) + (i % 3) * 1e5;
  }
  const std::optional<throughput> found = steady_throughput({times}, 0);
  REQUIRE(found);
  CHECK(std::abs(found->per_s / 99 - 1) < 0.01);
  CHECK(found->start_up_s > 3.3);
  CHECK(found->low < found->per_s);
  CHECK(found->high > found->per_s);
  CHECK_FALSE(steady_throughput({{1, 2, 3}}, 0));
  CHECK_FALSE(steady_throughput({}, 0));
}

TEST_CASE("trials of one configuration are pooled, with their difference in the interval") {
  const throughput all = pooled({exactly(90), exactly(110)});
  CHECK(all.per_s == 100);
  CHECK(all.low <= 90);
  CHECK(all.high >= 110);
}
