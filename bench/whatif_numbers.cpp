// Prints how right lotus-tool whatif is, on this machine:
//
//   whatif_numbers TOOL [TIMES [PAIRS]]    path of lotus-tool; runs of each (5); only the first
//   pairs
//
// Runs A as it is and B with a change, in turn; asks of each A what B would make, and tells what
// B made. Beside it what simple rules say of the same A.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "real_loader.hpp"

namespace {

namespace fs = std::filesystem;
using bench::real_loader;
using nlohmann::json;

/// A run, what is changed about it, and the same in whatif's words.
struct pair {
  std::string name;
  real_loader a;
  real_loader b;
  std::string asked;
  bool more_threads = false;
};

class asker {
 public:
  asker(std::string tool, fs::path dir) : tool_(std::move(tool)), dir_(std::move(dir)) {}

  json ask(const std::string& words) const {
    const std::string out = (dir_ / "answer.json").string();
    const std::string command = "'" + tool_ + "' " + words + " -q >'" + out + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    std::ifstream in(out);
    return json::parse(in);
  }
  std::string folder(const std::string& name) const { return (dir_ / name).string(); }

 private:
  std::string tool_;
  fs::path dir_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1];
}

real_loader loader(int workers, std::vector<bench::real_operation> operations, double step_sleep,
                   double step_cpu = 0) {
  real_loader l;
  l.workers = workers;
  l.operations = std::move(operations);
  l.step_sleep_ms = step_sleep;
  l.step_cpu_ms = step_cpu;
  return l;
}

class pair_list {
 public:
  std::vector<pair> all;

  void workers(const std::string& name, const real_loader& a, int now) {
    real_loader b = a;
    b.workers = now;
    add(name + ", " + std::to_string(a.workers) + " -> " + std::to_string(now) + " workers", a, b,
        "--workers " + std::to_string(now), now > a.workers);
  }
  void prefetch(const std::string& name, const real_loader& a, int now) {
    real_loader b = a;
    b.prefetch = now;
    add(name + ", prefetch " + std::to_string(a.prefetch) + " -> " + std::to_string(now), a, b,
        "--prefetch " + std::to_string(now));
  }
  void unordered(const std::string& name, const real_loader& a) {
    real_loader b = a;
    b.ordered = false;
    add(name + ", in any order", a, b, "--unordered");
  }
  /// @param share  of an operation that is left; 0: it is gone.
  void faster(const std::string& name, const real_loader& a, std::size_t op, double share) {
    real_loader b = a;
    b.operations[op].cpu_ms *= share;
    b.operations[op].sleep_ms *= share;
    const std::string& of = a.operations[op].name;
    add(name + ", " + of + (share > 0 ? " halved" : " gone"), a, b,
        share > 0 ? "--faster " + of + "=" + std::to_string(1 / share) : "--without " + of);
  }
  void step(const std::string& name, const real_loader& a, double factor) {
    real_loader b = a;
    b.step_cpu_ms *= factor;
    b.step_sleep_ms *= factor;
    add(name + ", step x " + std::to_string(factor).substr(0, 3), a, b,
        "--step " + std::to_string(factor));
  }

 private:
  void add(const std::string& name, const real_loader& a, const real_loader& b,
           const std::string& asked, bool more = false) {
    all.push_back({name, a, b, asked, more});
  }
};

std::vector<pair> make_pairs() {
  pair_list pairs;
  const std::vector<bench::real_operation> cpu{{"Decode", 5, 0, 0.3}, {"Crop", 2, 0, 0.2}};
  const std::vector<bench::real_operation> disk{{"Read", 0, 9, 0.3}, {"Parse", 0.5, 0, 0}};
  const std::vector<bench::real_operation> tail{{"Fetch", 0, 5, 1.0}, {"Parse", 0.3, 0, 0}};
  const std::vector<bench::real_operation> both{{"Read", 0, 5, 0.3}, {"Decode", 3, 0, 0.3}};
  for (const int now : {2, 4}) pairs.workers("CPU", loader(1, cpu, 2), now);
  for (const int now : {1, 4}) pairs.workers("CPU", loader(2, cpu, 2), now);
  for (const int now : {1, 2, 8}) pairs.workers("CPU, more than CPUs", loader(4, cpu, 1), now);
  for (const int now : {2, 4}) pairs.workers("CPU, more than CPUs", loader(8, cpu, 1), now);
  for (const double share : {0.5, 0.0}) {
    for (const std::size_t op : {0U, 1U}) {
      pairs.faster("CPU, 2 workers", loader(2, cpu, 2), op, share);
      pairs.faster("CPU, 4 workers", loader(4, cpu, 1), op, share);
      pairs.faster("I/O + CPU, 4 workers", loader(4, both, 1), op, share);
      pairs.faster("CPU, consumer burns too", loader(2, cpu, 0, 3), op, share);
      pairs.faster("I/O + CPU, consumer burns too", loader(8, both, 0, 1), op, share);
    }
  }
  for (const double factor : {0.5, 2.0}) {
    pairs.step("CPU, 2 workers", loader(2, cpu, 6), factor);
    pairs.step("CPU, consumer burns too", loader(2, cpu, 0, 3), factor);
    pairs.step("I/O, 4 workers", loader(4, disk, 3), factor);
    pairs.step("heavy tail", loader(4, tail, 1), factor);
  }
  for (const int now : {1, 4, 8}) pairs.workers("I/O", loader(2, disk, 1), now);
  for (const int now : {2, 4}) pairs.workers("I/O", loader(8, disk, 1), now);
  for (const int now : {4, 8}) pairs.workers("I/O, consumer burns", loader(2, disk, 0, 2), now);
  for (const int now : {2, 8}) pairs.workers("I/O + CPU", loader(4, both, 1), now);
  for (const int now : {2, 4}) pairs.workers("I/O + CPU", loader(8, both, 1), now);
  for (const int now : {1, 2}) pairs.workers("heavy tail", loader(4, tail, 1), now);
  for (const int now : {8}) pairs.workers("heavy tail", loader(4, tail, 1), now);
  pairs.unordered("heavy tail, 4 workers", loader(4, tail, 1));
  pairs.unordered("heavy tail, 2 workers", loader(2, tail, 2));
  pairs.unordered("I/O + CPU, 4 workers", loader(4, both, 1));
  for (const int now : {1, 4}) pairs.prefetch("heavy tail, 4 workers", loader(4, tail, 2), now);
  for (const int now : {1, 4}) pairs.prefetch("CPU, 2 workers", loader(2, cpu, 4), now);
  real_loader narrow = loader(4, tail, 2);
  narrow.prefetch = 1;
  pairs.prefetch("heavy tail, 4 workers", narrow, 4);
  pairs.unordered("heavy tail, prefetch 1", narrow);
  for (const double share : {0.5, 0.0}) {
    real_loader stages =
        loader(1, {{"Read", 0, 3, 0.2}, {"Decode", 4, 0, 0.3}, {"Pack", 1, 0, 0}}, 1);
    stages.stages = true;
    pairs.faster("stages", stages, 1, share);
    pairs.faster("stages", stages, 0, share);
  }
  for (const double share : {0.5, 0.0})
    pairs.faster("I/O, 2 workers", loader(2, disk, 1), 0, share);
  for (const double share : {0.5, 0.0}) pairs.faster("heavy tail", loader(4, tail, 1), 0, share);
  return pairs.all;
}

/// Errors of one group, in per cent.
struct group {
  std::vector<double> errors;
  std::size_t covered = 0;

  void print(const char* name) const {
    if (errors.empty()) return;
    std::printf("%-44s %3zu pairs  median %5.2f %%  95 %% below %5.2f %%  worst %5.2f %%", name,
                errors.size(), median(errors), quantile(errors, 0.95), quantile(errors, 1));
    if (covered > 0) std::printf("  in the interval %zu", covered);
    std::printf("\n");
  }
};

/// Workers ÷ mean preprocess time, or the consumer's; and that with 0.8 as cedar's optimizer has
/// it.
std::map<std::string, double> simple_rules(const json& diagnosis, const pair& p) {
  const double consumer = diagnosis["consumer_capacity"].is_null()
                              ? HUGE_VAL
                              : diagnosis["consumer_capacity"].get<double>();
  if (diagnosis["preprocessing_capacity"].is_null()) return {};
  const double one = diagnosis["preprocessing_capacity"].get<double>() / p.a.workers;
  return {{"W / mean", std::min(consumer, one * p.b.workers)},
          {"0.8 W / mean", std::min(consumer, 0.8 * one * p.b.workers)}};
}

int print_pairs(const asker& asker, int times, std::size_t most) {
  group identity;
  group within;
  group beyond;
  std::map<std::string, group> simple;
  std::vector<pair> pairs = make_pairs();
  if (pairs.size() > most) pairs.resize(most);
  std::printf("%-48s %9s %9s %9s %7s %8s\n", "pair", "A", "said", "B", "error", "replay");
  for (const pair& p : pairs) {
    std::vector<double> a_per_s, said, low, high, b_per_s, off;
    std::map<std::string, std::vector<double>> rules;
    for (int i = 0; i < times; ++i) {
      const std::string a = asker.folder("a");
      const std::string b = asker.folder("b");
      for (const std::string& folder : {a, b}) fs::remove_all(folder);
      bench::run_real(p.a, a);
      bench::run_real(p.b, b);
      const json answer = asker.ask("whatif '" + a + "' --json " + p.asked);
      const json& change = answer["changes"][0];
      a_per_s.push_back(answer["baseline"]["batches_per_s"]);
      off.push_back(100 * (answer["baseline"]["replayed"].get<double>() / a_per_s.back() - 1));
      said.push_back(change["batches_per_s"]);
      low.push_back(change["low"]);
      high.push_back(change["high"]);
      b_per_s.push_back(
          asker.ask("diagnose '" + b + "' --json")["achieved_batches_per_s"].get<double>());
      const json diagnosis = asker.ask("diagnose '" + a + "' --json");
      for (const auto& [rule, per_s] : simple_rules(diagnosis, p)) rules[rule].push_back(per_s);
    }
    const double truth = median(b_per_s);
    const double error = 100 * (median(said) / truth - 1);
    const bool covered = median(low) <= truth && truth <= median(high);
    std::printf("%-48s %9.1f %9.1f %9.1f %+6.1f%% %+6.1f%% %s\n", p.name.c_str(), median(a_per_s),
                median(said), truth, error, median(off), covered ? "" : "  outside its interval");
    std::fflush(stdout);
    identity.errors.push_back(std::abs(median(off)));
    group& to = p.more_threads ? beyond : within;
    to.errors.push_back(std::abs(error));
    to.covered += covered ? 1U : 0U;
    for (const auto& [rule, per_s] : rules) {
      simple[rule].errors.push_back(std::abs(100 * (median(per_s) / truth - 1)));
    }
  }
  std::printf("\n");
  identity.print("the run as it was");
  within.print("changes without more threads");
  beyond.print("more threads");
  for (const auto& [rule, errors] : simple) errors.print(("all, by " + rule).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: whatif_numbers TOOL [TIMES [PAIRS]]\n");
    return 2;
  }
  try {
    char folder[] = "/tmp/lotus-whatif-XXXXXX";
    if (mkdtemp(folder) == nullptr) throw std::runtime_error("no temporary folder");
    const int status = print_pairs(
        asker(argv[1], folder), argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 5,
        argc > 3 ? std::strtoul(argv[3], nullptr, 10) : SIZE_MAX);
    fs::remove_all(folder);
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "whatif_numbers: %s\n", error.what());
    return 1;
  }
}
