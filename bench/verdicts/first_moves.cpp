// Measures how much the first suggestion of lotus-tool diagnose improves pipelines on this machine.
//
// Usage: first_moves TOOL [TIMES [PIPELINES]] [--grid]. TOOL: path of lotus-tool. TIMES: number of
// runs of each setting (default 3). PIPELINES: use only the first PIPELINES pipelines.
//
// Runs each pipeline and asks lotus-tool for its first suggestion. Then runs the pipeline
// alternately without and with the suggested change, and compares the median throughputs with the
// prediction. With --grid, also asks lotus-tool to predict the throughput of many settings, and
// runs the suggested setting, the setting with the best prediction, and three settings close to the
// best one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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

/// @return  20 pipelines whose workers share nothing but the CPUs.
std::vector<pipeline> free_pipelines() {
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

/// @return  20 pipelines with locks, devices, stages, or other programs on the CPUs.
std::vector<pipeline> contended_pipelines() {
  using operations = std::vector<bench::real_operation>;
  const operations cpu{{"Decode", 5, 0, 0.3}, {"Crop", 2, 0, 0.2}};
  const operations disk{{"Read", 0, 9, 0.3}, {"Parse", 0.5, 0, 0}};
  const operations lock{{"Fetch", 0, 4, 0.3, 1}, {"Crop", 0.6, 0, 0}};
  const operations lock_at_work{{"Decode", 2, 0, 0.3, 1}, {"Send", 0, 3, 0}};
  const operations device{{"Fetch", 0, 6, 0.3, 2}, {"Crop", 0.6, 0, 0}};
  const operations stages{{"Read", 0, 3, 0.3}, {"Decode", 0, 7, 0.3}, {"Pack", 1, 0, 0}};
  std::vector<pipeline> all;
  const auto add = [&](const std::string& name, const operations& work, int workers, double step_ms,
                       int neighbours, bool as_stages = false) {
    pipeline p;
    p.name = name + ", " + std::to_string(workers) + (as_stages ? " threads" : " workers") +
             (neighbours > 0 ? ", " + std::to_string(neighbours) + " busy CPUs" : "");
    p.loader.operations = work;
    p.loader.workers = workers;
    p.loader.step_sleep_ms = step_ms;
    p.loader.neighbours = neighbours;
    p.loader.stages = as_stages;
    all.push_back(p);
  };
  for (const int workers : {1, 2, 4}) add("lock", lock, workers, 1, 0);
  for (const int workers : {1, 4}) add("lock around work", lock_at_work, workers, 1, 0);
  for (const int workers : {1, 2, 4}) add("device of 2 channels", device, workers, 1, 0);
  for (const int workers : {1, 2, 4}) add("CPU", cpu, workers, 1, 1);
  add("CPU", cpu, 4, 1, 2);
  for (const int workers : {1, 4}) add("I/O", disk, workers, 3, 2);
  add("lock", lock, 2, 1, 1);
  add("device of 2 channels", device, 1, 1, 1);
  for (const int threads : {1, 2}) add("stages", stages, threads, 1, 0, true);
  add("stages", stages, 1, 1, 1, true);
  add("stages, slow step", stages, 2, 8, 0, true);
  return all;
}

/// Returns `loader` with a change that lotus-tool suggests. Throws std::runtime_error if this
/// benchmark cannot apply the change.
real_loader changed(real_loader loader, const json& change) {
  for (const auto& [what, value] : change.items()) {
    if (what == "workers") {
      loader.workers = value;
    } else if (what == "prefetch") {
      loader.prefetch = value;
    } else if (what == "unordered") {
      loader.ordered = false;
    } else if (what == "step") {
      loader.step_cpu_ms *= value.get<double>();
      loader.step_sleep_ms *= value.get<double>();
    } else if (what == "threads" || what == "faster") {
      for (const auto& [name, number] : value.items()) {
        std::size_t found = 0;
        for (bench::real_operation& op : loader.operations) {
          if (op.name != name && op.name + " inside" != name) continue;
          ++found;
          if (what == "threads") op.threads = number;
          if (what == "threads") continue;
          op.cpu_ms /= number.get<double>();
          op.sleep_ms /= number.get<double>();
        }
        if (found != 1) throw std::runtime_error("no operation " + name);
      }
    } else {
      throw std::runtime_error("cannot be carried out: " + change.dump());
    }
  }
  return loader;
}

/// Counts the pipelines for which lotus-tool had a suggestion, by the effect of the first
/// suggestion.
struct outcomes {
  std::size_t suggested = 0;
  std::size_t in_interval = 0;
  /// Number of pipelines that were more than 3 % slower with the suggested change than without it.
  std::size_t slower = 0;
};

double run_once(const bench::temporary_folder& folder, const bench::asked_tool& tool,
                const real_loader& loader) {
  const std::string run = folder.empty("other") + "/run";
  bench::run_real(loader, run);
  return tool.ask("diagnose '" + run + "'")["achieved_batches_per_s"];
}

void carry_out(const bench::temporary_folder& folder, const bench::asked_tool& tool,
               const pipeline& p, int times, outcomes& to) {
  const std::string run = folder.empty("run") + "/run";
  bench::run_real(p.loader, run);
  const json diagnosis = tool.ask("diagnose '" + run + "'");
  const std::string is = diagnosis["verdict"].is_null() ? "no verdict" : diagnosis["verdict"];
  std::printf("%-40s %-20s ", p.name.c_str(), is.c_str());
  std::fflush(stdout);
  if (diagnosis["moves"].empty()) {
    std::printf("nothing\n");
    return;
  }
  const json& move = diagnosis["moves"][0];
  const real_loader after = changed(p.loader, move["change"]);
  std::vector<double> before_per_s;
  std::vector<double> after_per_s;
  for (int i = 0; i < times; ++i) {
    before_per_s.push_back(run_once(folder, tool, p.loader));
    after_per_s.push_back(run_once(folder, tool, after));
  }
  const double low = move["low"];
  const double high = move["high"];
  const double made = median(after_per_s);
  const bool in_interval = low <= made && made <= high;
  const bool slower = made < 0.97 * median(before_per_s);
  ++to.suggested;
  to.in_interval += in_interval ? 1U : 0U;
  to.slower += slower ? 1U : 0U;
  std::printf("%-36s %7.1f -> %7.1f (%.1f to %.1f): %7.1f%s%s\n", move["change"].dump().c_str(),
              median(before_per_s), move["batches_per_s"].get<double>(), low, high, made,
              in_interval ? "" : "  outside", slower ? "  slower" : "");
}

/// Returns setting `s`, changed as the first suggestion of a diagnosis says.
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

/// Runs the setting that lotus-tool suggests, the setting for which it predicts the highest
/// throughput, and settings close to the one with the highest prediction.
/// @return  the throughput with the suggestion divided by the best throughput of these settings.
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
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool grid = !words.empty() && words.back() == "--grid";
  if (grid) words.pop_back();
  if (words.empty()) {
    std::fprintf(stderr, "usage: first_moves TOOL [TIMES [PIPELINES]] [--grid]\n");
    return 2;
  }
  try {
    const int times = words.size() > 1 ? std::stoi(words[1]) : 3;
    const std::size_t most = words.size() > 2 ? std::stoul(words[2]) : SIZE_MAX;
    const std::vector<pipeline> simple = free_pipelines();
    std::vector<pipeline> all = simple;
    for (pipeline& p : contended_pipelines()) all.push_back(std::move(p));
    const bench::temporary_folder folder;
    const bench::asked_tool tool(words[0], folder);
    std::printf("%-40s %-20s %-36s %s\n", "pipeline", "verdict", "first suggestion",
                "batches/s before -> predicted: measured");
    outcomes out;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
      carry_out(folder, tool, all[i], times, out);
    }
    std::printf("\nwithin its interval: %zu of %zu; slower by more than 3 %%: %zu\n",
                out.in_interval, out.suggested, out.slower);
    if (!grid) return 0;
    std::printf("\n%-40s %-36s %s\n", "pipeline", "with its first move", "batches/s of the best");
    std::size_t good = 0;
    const std::size_t count = std::min(most, simple.size());
    for (std::size_t i = 0; i < count; ++i) {
      good += judge(folder, tool, simple[i], times) >= 0.95 ? 1U : 0U;
    }
    std::printf("\nwithin 5 %% of the best: %zu of %zu\n", good, count);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_moves: %s\n", error.what());
    return 1;
  }
}
