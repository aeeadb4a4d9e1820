// Tests diagnose with over 200 simulated pipelines, whose results are known: exactly the right
// checks must fail, and all numbers must be correct.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/diagnose/planted_shapes.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the first random seed; LOTUS_PLANTED_SEED changes it, to test other pipelines.
std::uint64_t first_seed() {
  const char* const wanted = std::getenv("LOTUS_PLANTED_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
}

bool is_unsafe(const json& check) {
  return check["unsafe"].boolean();
}

struct answers {
  int distinguished = 0;
  /// Number of stages for which the logs cannot show whether they were starved or blocked.
  int left_open = 0;
  /// Number of runs that the tool's simulation does not reproduce, although no check says that the
  /// recording is unsafe.
  int unexplained = 0;
};

void compare_stages(const planted& p, const json& run, answers& idle) {
  for (const stage_truth& truth : p.stages) {
    INFO(truth.name << ": busy " << truth.busy << ", starved " << truth.starved << ", blocked "
                    << truth.blocked);
    if (!run.has("stages") || !run["stages"].has(truth.name)) {
      FAIL_CHECK("no such stage");
      continue;
    }
    const json stage = run["stages"][truth.name];
    CHECK(stage["capacity_per_s"].number() == Approx(truth.capacity_per_s).epsilon(0.03));
    CHECK(stage["busy"].number() == Approx(truth.busy).margin(0.02));
    if (stage["starved"].is_null() && stage["blocked"].is_null()) {
      ++idle.left_open;
      continue;
    }
    ++idle.distinguished;
    CHECK(stage["starved"].number() == Approx(truth.starved).margin(0.02));
    CHECK(stage["blocked"].number() == Approx(truth.blocked).margin(0.02));
  }
}

void compare_batches(const planted& p, const json& run) {
  if (p.batches.empty()) return;
  std::size_t found = 0;
  for (const json& b : run["batches"].array()) {
    const auto truth = p.batches.find(b["index"].integer());
    REQUIRE(truth != p.batches.end());
    ++found;
    if (!b.has("latency_ns")) {
      FAIL_CHECK("no latency");
      return;
    }
    if (b["latency_ns"].integer() == truth->second.latency_ns &&
        b["service_ns"].integer() == truth->second.service_ns &&
        b["queueing_ns"].integer() == truth->second.latency_ns - truth->second.service_ns) {
      continue;
    }
    FAIL_CHECK("batch " << truth->first << ": " << b.canonical());
  }
  CHECK(found == p.batches.size());
}

/// Compares the tool's results for a simulated pipeline with the true results.
void judge(const planted& p, answers& idle) {
  const temp_dir dir;
  p.logs.write(dir);
  const result s = run({"stats", dir.path(), "--json", "-q"});
  INFO(s.err);
  REQUIRE(s.status == 0);
  const json runs = parse_json(s.out)["runs"];
  std::set<std::string> failed;
  std::set<std::string> unsafe;
  std::string texts;
  for (const json& one : runs.array()) {
    for (const json& check : one["checks"].array()) {
      failed.insert(check["id"].text());
      if (is_unsafe(check)) unsafe.insert(check["id"].text());
      texts += check["id"].text() + ": " + check["text"].text() + '\n';
    }
  }
  INFO(texts);
  std::set<std::string> unexpected = failed;
  for (const std::string& id : p.checks) {
    INFO("must fail: " << id);
    CHECK(failed.count(id) == 1);
    unexpected.erase(id);
  }
  for (const std::string& id : p.may) unexpected.erase(id);
  CHECK(unexpected.empty());
  if (runs.size() == 1) {
    compare_stages(p, runs[0], idle);
    compare_batches(p, runs[0]);
  }
  const result d = run({"diagnose", dir.path(), "--json", "-q"});
  if (d.status != 0) return;  // the logs are empty
  const json answer = parse_json(d.out);
  if (answer.has("runs")) return;
  const bool unexplained =
      answer.has("why") && contains(answer["why"].text(), "by the recorded times, ");
  if (unexplained) {
    ++idle.unexplained;
    std::cout << "not explained: " << p.shape << ": " << answer["why"].text() << '\n';
  }
  const bool is_service =
      answer.has("why") && contains(answer["why"].text(), "The program seems to be a service");
  CHECK((!is_service || p.shape == "service"));
  CHECK(answer["verdict"].is_null() == (unexplained || is_service || !unsafe.empty()));
  CHECK(answer.has("why") == answer["verdict"].is_null());
  if (p.verdict && !unexplained) CHECK(answer["verdict"].text() == *p.verdict);
  if (p.workers) CHECK(answer["workers"].integer() == *p.workers);
  if (p.steady_per_s > 0) {
    CHECK(answer["steady_batches_per_s"].number() == Approx(p.steady_per_s).epsilon(0.001));
  }
  const result text = run({"diagnose", dir.path(), "--details", "-q"});
  CHECK(text.status == 0);
  CHECK(contains(text.out, "No verdict: ") == answer["verdict"].is_null());
  std::size_t shown = 0;
  for (const std::string start : {"\n  warning [", "\n  no verdict ["}) {
    for (std::size_t at = text.out.find(start); at != std::string::npos;
         at = text.out.find(start, at + 1)) {
      ++shown;
    }
  }
  CHECK(shown == answer["checks"].array().size());
}

}  // namespace

TEST_CASE("simulated pipelines of every shape get the right checks and figures") {
  int planted_in_all = 0;
  answers idle;
  std::cout << "seed " << first_seed() << " (LOTUS_PLANTED_SEED plants others)\n";
  std::vector<planted_shape> shapes = planted_loaders();
  shapes.insert(shapes.end(), planted_stages().begin(), planted_stages().end());
  for (const planted_shape& of : shapes) {
    for (int time = 0; time < of.times; ++time) {
      const std::uint64_t seed = first_seed() * 1000 + static_cast<std::uint64_t>(time);
      INFO(of.name << ", seed " << seed);
      generator random(seed);
      planted p;
      p.shape = of.name;
      of.plant(p, random);
      judge(p, idle);
      ++planted_in_all;
    }
  }
  CHECK(planted_in_all >= 200);
  INFO(idle.distinguished << " stages' idle times told apart, " << idle.left_open << " left open");
  CHECK(10 * idle.left_open <= idle.distinguished);
  CHECK(50 * idle.unexplained <= planted_in_all);
}
