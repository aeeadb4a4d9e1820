// Measures how accurate the predictions of lotus-tool whatif are on this machine.
//
// Usage: whatif_numbers TOOL [--examples DIR] [--times N] [--only TEXT]
//
// TOOL: path of lotus-tool. DIR: folder of the example programs; without it, they are not run. N:
// number of runs of each program (default 5). TEXT: run only pairs whose names contain this text.
//
// A pair consists of program A and program B, which is A with one change. Runs both alternately,
// predicts the throughput of B from each run of A, and compares the prediction with the measured
// throughput of B. For comparison, prints the predictions of simple rules, and the difference
// between the medians of two series of B; no prediction can be more accurate than this difference.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "asked_tool.hpp"
#include "whatif_pairs.hpp"

namespace {

using bench::median;
using bench::pair;
using bench::quantile;
using nlohmann::json;

/// The errors of the predictions for one group of pairs, in percent.
struct group {
  std::vector<double> errors;
  std::size_t covered = 0;

  void add(double error, bool in_interval) {
    errors.push_back(std::abs(error));
    covered += in_interval ? 1U : 0U;
  }
  void print(const std::string& name) const {
    if (errors.empty()) return;
    std::printf(
        "%-44s %3zu pairs  median %5.2f %%  90 %% below %5.2f %%  95 %% below %5.2f %%  worst "
        "%5.2f %%",
        name.c_str(), errors.size(), median(errors), quantile(errors, 0.9), quantile(errors, 0.95),
        quantile(errors, 1));
    if (covered > 0) std::printf("  in the interval %zu", covered);
    std::printf("\n");
  }
};

/// Returns the throughput of B as predicted by three simple rules, to compare them with the
/// simulation. "W / mean": workers ÷ mean preprocess time, or the consumer's rate if this is lower.
/// "0.8 W / mean": the same with a factor of 0.8, as in cedar's optimizer. "the fullest queue": the
/// workers' rate, or the consumer's rate if the queue of ready batches is more than half full.
/// @param ready_share  mean number of ready batches divided by the maximum number in flight.
std::map<std::string, double> simple_rules(const json& diagnosis, const pair& p,
                                           double ready_share) {
  const json& preprocessing = diagnosis["preprocessing_capacity"];
  if (preprocessing.is_null()) return {};
  const json& step = diagnosis["consumer_capacity"];
  const double consumer = step.is_null() ? HUGE_VAL : step.get<double>();
  const double now = preprocessing.get<double>() * p.workers;
  return {{"W / mean", std::min(consumer, now)},
          {"0.8 W / mean", std::min(consumer, 0.8 * now)},
          {"the fullest queue", ready_share > 0.5 ? std::min(consumer, now) : now}};
}

/// The predictions of lotus-tool whatif for one change, with one prediction for each run.
struct run_predictions {
  std::vector<double> per_s, low, high;

  void add(const json& answer) {
    const json& change = answer["changes"][0];
    per_s.push_back(change["batches_per_s"]);
    low.push_back(change["low"]);
    high.push_back(change["high"]);
  }
  double error(double truth) const { return 100 * (median(per_s) / truth - 1); }
  bool covers(double truth) const { return median(low) <= truth && truth <= median(high); }
  /// Returns whether the predicted interval is too wide to be useful: the upper end is over 1.5
  /// times the lower end.
  bool is_silent() const { return median(high) > 1.5 * median(low); }
};

/// Counts the predictions for pairs with a lock or device, which are difficult: right, wrong, and
/// silent. A silent prediction has an interval that is too wide to be useful.
struct open_answers {
  std::size_t right = 0;
  std::size_t silent = 0;
  std::size_t wrong = 0;

  void add(const run_predictions& said, double truth) {
    ++(!said.covers(truth) ? wrong : said.is_silent() ? silent : right);
  }
  void print(const char* name) const {
    if (right + silent + wrong == 0) return;
    std::printf("%-44s right %zu, silent %zu, wrong %zu\n", name, right, silent, wrong);
  }
};

class numbers {
 public:
  numbers(const bench::temporary_folder& folder, const bench::asked_tool& tool, int times)
      : folder_(folder), tool_(tool), times_(times) {}

  void run(const pair& p) {
    std::vector<double> a_per_s, b_per_s, b_again_per_s, replayed, fitted;
    run_predictions said, with_also;
    std::map<std::string, std::vector<double>> rules;
    for (int i = 0; i < times_; ++i) {
      const std::string a = recorded("a", p.a);
      b_per_s.push_back(achieved(recorded("b", p.b)));
      b_again_per_s.push_back(achieved(recorded("b", p.b)));
      const json answer = tool_.ask("whatif '" + a + "' " + p.asked);
      if (!answer.contains("changes")) {
        std::printf("%-50s silent: %s\n", p.name.c_str(), answer.value("why", "").c_str());
        if (p.contended) ++contended_.silent;
        return;
      }
      said.add(answer);
      if (p.also) {
        const json also = tool_.ask("whatif '" + a + "' " + p.asked + " --also '" +
                                    recorded("also", p.also) + "'");
        if (also.contains("changes")) with_also.add(also);
      }
      const json& baseline = answer["baseline"];
      a_per_s.push_back(baseline["batches_per_s"]);
      replayed.push_back(100 * (baseline["replayed"].get<double>() / a_per_s.back() - 1));
      fitted.push_back(100 * (baseline["fitted"].get<double>() / a_per_s.back() - 1));
      const json stats = tool_.ask("stats '" + a + "'")["runs"][0];
      const double ready_share = 1e-9 * stats["delay"].value("mean_ns", 0.0) * a_per_s.back() /
                                 answer["policies"].value("batches_out", 1.0);
      const json diagnosis = tool_.ask("diagnose '" + a + "'");
      for (const auto& [rule, per_s] : simple_rules(diagnosis, p, ready_share)) {
        rules[rule].push_back(per_s);
      }
    }
    const double truth = median(b_per_s);
    const double error = said.error(truth);
    const double repeated = 100 * (median(b_again_per_s) / truth - 1);
    std::printf("%-50s %8.1f %8.1f %8.1f %+6.1f%% %+6.1f%% %+6.1f%% %+6.1f%%", p.name.c_str(),
                median(a_per_s), median(said.per_s), truth, error, repeated, median(replayed),
                median(fitted));
    const bool has_also = !with_also.per_s.empty();
    if (has_also) std::printf("  also %+5.1f%%", with_also.error(truth));
    std::printf("%s\n", said.covers(truth) ? "" : "  outside its interval");
    std::fflush(stdout);
    if (p.contended) {
      contended_.add(said, truth);
      if (has_also) {
        contended_also_.add(with_also, truth);
      } else if (p.also) {
        ++contended_also_.silent;
      }
      return;
    }
    (p.more ? beyond_again_ : within_again_).add(repeated, false);
    replayed_.add(median(replayed), false);
    fitted_.add(median(fitted), false);
    (p.more ? beyond_ : within_).add(error, said.covers(truth));
    if (has_also) also_.add(with_also.error(truth), with_also.covers(truth));
    for (const auto& [rule, per_s] : rules) {
      simple_[rule].add(100 * (median(per_s) / truth - 1), false);
    }
  }

  void print() const {
    std::printf("\n");
    replayed_.print("the run as it was");
    fitted_.print("that, with what is fitted to it");
    within_.print("changes without more threads");
    within_again_.print("the program itself, repeated");
    beyond_.print("more threads or CPUs");
    beyond_again_.print("the program itself, repeated");
    also_.print("the same, with --also");
    contended_.print("locks, devices, crowded CPUs");
    contended_also_.print("the same, with --also");
    for (const auto& [rule, errors] : simple_) errors.print("all, by " + rule);
  }

 private:
  std::string recorded(const char* name, const bench::recorded_run& run) const {
    const std::string folder = folder_.empty(name);
    run(folder);
    return folder + "/run";
  }

  double achieved(const std::string& run) const {
    return tool_.ask("diagnose '" + run + "'")["achieved_batches_per_s"];
  }

  const bench::temporary_folder& folder_;
  const bench::asked_tool& tool_;
  int times_;
  group replayed_, fitted_, within_, within_again_, beyond_, beyond_again_, also_;
  std::map<std::string, group> simple_;
  open_answers contended_, contended_also_;
};

struct options {
  std::string tool, examples, only;
  int times = 5;
};

options parse(int argc, char** argv) {
  options given;
  if (argc % 2 != 0) throw std::runtime_error("whatif_numbers TOOL [--examples DIR] ...");
  given.tool = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--examples") {
      given.examples = argv[i + 1];
    } else if (name == "--times") {
      given.times = static_cast<int>(std::strtol(argv[i + 1], nullptr, 10));
    } else if (name == "--only") {
      given.only = argv[i + 1];
    } else {
      throw std::runtime_error("unknown option: " + name);
    }
  }
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options given = parse(argc, argv);
    const bench::temporary_folder folder;
    const bench::asked_tool tool(given.tool, folder);
    std::vector<pair> pairs = bench::made_up_pairs();
    if (!given.examples.empty()) {
      for (pair& p : bench::example_pairs(given.examples, folder.empty("images"))) {
        pairs.push_back(std::move(p));
      }
    }
    std::printf("%-50s %8s %8s %8s %7s %7s %7s %7s\n", "pair", "A", "said", "B", "error", "B again",
                "replay", "fitted");
    numbers all(folder, tool, given.times);
    for (const pair& p : pairs) {
      if (p.name.find(given.only) != std::string::npos) all.run(p);
    }
    all.print();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "whatif_numbers: %s\n", error.what());
    return 1;
  }
}
