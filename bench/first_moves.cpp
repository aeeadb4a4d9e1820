// Measures how good the first suggestion of lotus-tool diagnose is on this machine.
//
// Usage: first_moves TOOL [TIMES [PIPELINES]]. TOOL: path of lotus-tool. TIMES: number of runs of
// each setting (default 3). PIPELINES: use only this many of the pipelines.
//
// Runs each pipeline and asks lotus-tool for its first suggestion, and for the predicted throughput
// of each setting of a grid. Then runs the suggested setting, the setting with the best prediction,
// and three settings close to the best one, alternately.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "asked_tool.hpp"
#include "real_loader.hpp"

namespace {

using bench::median;
using bench::real_loader;
using nlohmann::json;

struct setting {
  int workers = 1;
  int prefetch = 2;
  bool ordered = true;

  bool operator<(const setting& other) const {
    return std::tie(workers, prefetch, ordered) <
           std::tie(other.workers, other.prefetch, other.ordered);
  }
};

struct pipeline {
  std::string name;
  real_loader loader;
};

std::string text_of(const setting& s) {
  return std::to_string(s.workers) + " workers, prefetch " + std::to_string(s.prefetch) +
         (s.ordered ? "" : ", any order");
}

setting setting_of(const real_loader& l) {
  return {l.workers, l.prefetch, l.ordered};
}

real_loader with(real_loader loader, const setting& s) {
  loader.workers = s.workers;
  loader.prefetch = s.prefetch;
  loader.ordered = s.ordered;
  return loader;
}

std::vector<pipeline> make_pipelines() {
  const std::vector<bench::real_operation> cpu{{"Decode", 5, 0, 0.3}, {"Crop", 2, 0, 0.2}};
  const std::vector<bench::real_operation> disk{{"Read", 0, 9, 0.3}, {"Parse", 0.5, 0, 0}};
  const std::vector<bench::real_operation> tail{{"Fetch", 0, 5, 1.0}, {"Parse", 0.3, 0, 0}};
  const std::vector<bench::real_operation> both{{"Read", 0, 5, 0.3}, {"Decode", 3, 0, 0.3}};
  std::vector<pipeline> all;
  const auto add = [&](const std::string& name, const std::vector<bench::real_operation>& work,
                       int workers, int prefetch, double step_sleep_ms, double step_cpu_ms) {
    pipeline p;
    p.name = name + ", " + std::to_string(workers) + " workers, step " +
             std::to_string(static_cast<int>(step_sleep_ms + step_cpu_ms)) + " ms";
    p.loader.operations = work;
    p.loader.workers = workers;
    p.loader.prefetch = prefetch;
    p.loader.step_sleep_ms = step_sleep_ms;
    p.loader.step_cpu_ms = step_cpu_ms;
    all.push_back(p);
  };
  for (const double step : {1.0, 5.0, 12.0}) add("CPU", cpu, 1, 2, step, 0);
  add("CPU", cpu, 2, 2, 2, 0);
  add("CPU", cpu, 4, 2, 2, 0);
  for (const double step : {1.0, 3.0, 12.0}) add("I/O", disk, 1, 2, step, 0);
  for (const double step : {1.0, 3.0}) add("I/O", disk, 4, 2, step, 0);
  for (const double step : {1.0, 4.0}) add("heavy tail", tail, 2, 1, step, 0);
  for (const double step : {1.0, 4.0}) add("heavy tail", tail, 4, 2, step, 0);
  for (const double step : {1.0, 5.0}) add("I/O + CPU", both, 1, 2, step, 0);
  for (const double step : {1.0, 5.0}) add("I/O + CPU", both, 4, 2, step, 0);
  add("I/O, consumer burns", disk, 2, 2, 0, 2);
  add("I/O + CPU, consumer burns", both, 2, 2, 0, 1);
  return all;
}

/// Returns setting `s` with the first suggestion applied.
setting first_move(const json& diagnosis, setting s) {
  if (diagnosis["moves"].empty()) return s;
  const json& change = diagnosis["moves"][0]["change"];
  s.workers = change.value("workers", s.workers);
  s.prefetch = change.value("prefetch", s.prefetch);
  if (change.value("unordered", false)) s.ordered = false;
  return s;
}

setting best_of_grid(const bench::asked_tool& tool, const std::string& run, const setting& now) {
  setting best = now;
  double best_per_s = 0;
  for (int workers = 1; workers <= 8; ++workers) {
    for (const int prefetch : {1, 2, 4}) {
      for (const bool ordered : {true, false}) {
        const json answer =
            tool.ask("whatif '" + run + "' --workers " + std::to_string(workers) + " --prefetch " +
                     std::to_string(prefetch) + (ordered ? "" : " --unordered"));
        const double per_s = answer["changes"][0]["batches_per_s"];
        if (per_s <= best_per_s) continue;
        best_per_s = per_s;
        best = {workers, prefetch, ordered};
      }
    }
  }
  return best;
}

std::vector<setting> neighbours(const setting& s) {
  const int prefetch = s.prefetch == 4 ? 2 : 2 * s.prefetch;
  return {{s.workers == 8 ? 7 : s.workers + 1, s.prefetch, s.ordered},
          {std::max(1, s.workers - 1), s.prefetch, s.ordered},
          {s.workers, prefetch, s.ordered}};
}

/// @return  the throughput with the first suggestion divided by the best throughput of all settings
/// that were run.
double judge(const bench::temporary_folder& folder, const bench::asked_tool& tool,
             const pipeline& p, int times) {
  const std::string run = folder.empty("run") + "/run";
  bench::run_real(p.loader, run);
  const setting move = first_move(tool.ask("diagnose '" + run + "'"), setting_of(p.loader));
  const setting best = best_of_grid(tool, run, setting_of(p.loader));
  std::map<setting, std::vector<double>> made;
  std::vector<setting> wanted = neighbours(best);
  wanted.push_back(best);
  wanted.push_back(move);
  for (const setting& s : wanted) made[s];
  for (int i = 0; i < times; ++i) {
    for (auto& [s, per_s] : made) {
      const std::string other = folder.empty("other") + "/run";
      bench::run_real(with(p.loader, s), other);
      per_s.push_back(tool.ask("diagnose '" + other + "'")["achieved_batches_per_s"]);
    }
  }
  double most = 0;
  for (const auto& [s, per_s] : made) most = std::max(most, median(per_s));
  const double share = median(made[move]) / most;
  std::printf("%-40s %-36s %7.1f of %7.1f  %5.1f %%\n", p.name.c_str(), text_of(move).c_str(),
              median(made[move]), most, 100 * share);
  std::fflush(stdout);
  return share;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: first_moves TOOL [TIMES [PIPELINES]]\n");
    return 2;
  }
  try {
    const int times = argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 3;
    std::vector<pipeline> pipelines = make_pipelines();
    if (argc > 3) {
      pipelines.resize(std::min<std::size_t>(pipelines.size(), std::strtoul(argv[3], nullptr, 10)));
    }
    const bench::temporary_folder folder;
    const bench::asked_tool tool(argv[1], folder);
    std::printf("%-40s %-36s %s\n", "pipeline", "with its first move", "batches/s of the best");
    std::size_t good = 0;
    for (const pipeline& p : pipelines) good += judge(folder, tool, p, times) >= 0.95 ? 1U : 0U;
    std::printf("\nwithin 5 %% of the best: %zu of %zu\n", good, pipelines.size());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_moves: %s\n", error.what());
    return 1;
  }
}
