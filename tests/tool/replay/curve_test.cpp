// Compares the curve of lotus-tool whatif with simulations of the same loader with other settings.
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/json.hpp"
#include "tool/replay/simulated_truth.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Writes a simulated run of a program into a subfolder.
void record(const temp_dir& all, const std::string& folder, const truthful_loader& loader,
            const std::string& command, int cpus = 0) {
  const temp_dir dir;
  planted_logs logs;
  if (cpus > 0) logs.cpus(cpus);
  loader.simulate_into(logs);
  logs.write(dir);
  for (const std::string& name : dir.names()) {
    std::string text = read_file(dir.path() + '/' + name);
    if (name.rfind(".lotus_info", 0) == 0) text += "command " + command + '\n';
    all.file(folder + '/' + name, text);
  }
}

truthful_loader with_workers(int workers) {
  truthful_loader loader;
  loader.workers = workers;
  loader.batches = 200;
  return loader;
}

/// Records a program with one to six workers, and another program.
void record_runs(const temp_dir& all) {
  for (const int workers : {1, 2, 3, 4, 6}) {
    const std::string count = std::to_string(workers);
    record(all, "w" + count, with_workers(workers), "./loader workers=" + count);
  }
  record(all, "other", with_workers(5), "./another");
}

json curve_of(const temp_dir& all, const std::string& run_name, const std::string& what) {
  const result r =
      run_well({"whatif", all.path() + '/' + run_name, "--curve", what, "--json", "-q"});
  return parse_json(r.out)["curve"];
}

}  // namespace

TEST_CASE("runs with other numbers of workers lie on the curve of one run") {
  const temp_dir all;
  record_runs(all);
  for (const std::string from : {"w1", "w2", "w4"}) {
    CAPTURE(from);
    const json curve = curve_of(all, from, "workers");
    REQUIRE(curve["measured"].size() == 5);  // without the other program
    CHECK(curve["measured"][0]["recorded"].boolean());
    for (std::size_t d = 0; d < curve["measured"].size(); ++d) {
      const json& dot = curve["measured"][d];
      CAPTURE(dot["dir"].text());
      CHECK(contains(dot["dir"].text(), "/w" + std::to_string(std::lround(dot["at"].number()))));
      const auto point = static_cast<std::size_t>(dot["at"].number()) - 1;
      const json& predicted = curve["points"][point];
      REQUIRE(predicted["at"].number() == dot["at"].number());
      const double error = predicted["batches_per_s"].number() / dot["batches_per_s"].number() - 1;
      // As in the test of single predictions: one worker does not show how several share batches.
      CHECK(std::abs(error) < (from == "w1" ? 0.06 : 0.02));
      CHECK(predicted["low"].number() <= predicted["batches_per_s"].number());
      CHECK(predicted["high"].number() >= predicted["batches_per_s"].number());
    }
    // The consumer needs 5 ms for a batch.
    REQUIRE(curve["limits"].size() > 0);
    CHECK(curve["limits"][0]["name"].text() == "consumer");
    CHECK(std::abs(curve["limits"][0]["batches_per_s"].number() - 200) < 20);
    for (std::size_t p = 0; p < curve["points"].size(); ++p) {
      CHECK(curve["points"][p]["batches_per_s"].number() <
            1.02 * curve["limits"][0]["batches_per_s"].number());
    }
  }
}

TEST_CASE("a run with a faster operation is a dot at its speed, and other settings are no dots") {
  const temp_dir all;
  record_runs(all);
  truthful_loader faster = with_workers(1);
  faster.make_ms *= 0.75;  // Decode is half of the work, so it is now twice as fast
  record(all, "decode", faster, "./loader decode=once");
  const json curve = curve_of(all, "w1", "Decode");
  CHECK(curve["axis"].text() == "speed");
  CHECK(curve["of"].text() == "Decode");
  CHECK(curve["measured"].size() == 2);
  CHECK(contains(curve["measured"][1]["dir"].text(), "decode"));
  // Besides round values, the curve has the value of each dot.
  std::map<double, double> speeds;
  for (const json& point : curve["points"].array()) {
    speeds[point["at"].number()] = point["batches_per_s"].number();
  }
  REQUIRE(speeds.count(2) == 1);
  CHECK(speeds[2] > 1.2 * speeds.begin()->second);
  CHECK(speeds.count(curve["measured"][1]["at"].number()) == 1);
}

TEST_CASE("a run whose code needs less CPU time is no dot on a curve of a setting") {
  const temp_dir all;
  truthful_loader faster = with_workers(2);
  faster.make_ms *= 0.5;
  // The CPU time of each thread is recorded, and nothing was off a CPU.
  record(all, "before", with_workers(2), "./loader", 8);
  record(all, "same", with_workers(3), "./loader", 8);
  record(all, "after", faster, "./loader", 8);
  const json curve = curve_of(all, "before", "workers");
  REQUIRE(curve["measured"].size() == 2);
  CHECK(contains(curve["measured"][1]["dir"].text(), "same"));
}

TEST_CASE("the curve is drawn in 15 lines that fit the terminal, with each measured run below") {
  const temp_dir all;
  record_runs(all);
  const result r = run_well({"whatif", all.path() + "/w2", "--curve", "workers", "-q"});
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < r.out.size();) {
    const std::size_t end = r.out.find('\n', at);
    lines.push_back(r.out.substr(at, end - at));
    at = end + 1;
  }
  REQUIRE(lines.size() == 15 + 5);
  CHECK(contains(lines[12], "0 └"));
  CHECK(contains(lines[14], "predicted"));
  CHECK(contains(lines[14], "consumer 1"));
  CHECK(contains(lines[15], "◆ w2: 2 workers"));
  CHECK(contains(lines[16], "● w1: 1 worker, "));
  CHECK(contains(lines[16], "(predicted "));
  std::string picture;
  for (std::size_t i = 1; i < 12; ++i) picture += lines[i];
  for (const char* const part : {"▄", "░", "◆", "●", "╌"}) CHECK(contains(picture, part));
}

TEST_CASE("the curve's picture contains its points, limits and measured runs") {
  const temp_dir all;
  record_runs(all);
  const result r =
      run_well({"whatif", all.path() + "/w1", "--curve", "workers", "--format", "svg"});
  CHECK(r.out.rfind("<svg", 0) == 0);
  CHECK(contains(r.out, "limit: consumer, "));
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = r.out.find("<circle", at)) != std::string::npos; ++at) ++circles;
  CHECK(circles == 5 + 2);  // two of them in the legend
  CHECK(contains(r.out, "<title>w4: 4 workers, "));
}

TEST_CASE("a curve that is impossible is refused with what is possible") {
  const temp_dir all;
  record(all, "run", with_workers(2), "./loader");
  const std::string dir = all.path() + "/run";
  const result unknown = run({"whatif", dir, "--curve", "Deco"});
  CHECK(unknown.status == 1);
  CHECK(contains(unknown.err, "did you mean 'Decode'?"));
  CHECK(run({"whatif", dir, "--curve", "stage:Decode"}).status == 1);
  CHECK(run({"whatif", dir, "--curve", "workers", "--workers", "3"}).status == 2);
  CHECK(run({"whatif", dir, "--format", "svg"}).status == 2);
}
