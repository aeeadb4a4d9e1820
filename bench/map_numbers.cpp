// Measures how accurate the results of lotus-tool map are on this machine.
//
// Usage: map_numbers TOOL PROBE [TIMES]. TOOL and PROBE: the paths of lotus-tool and map_probe;
// TIMES: the number of repetitions.
//
// Prints the recall and precision of `map run`; the error of the CPU shares of `map join`, compared
// with the threads' own measurements; how many samples are assigned to a neighboring operation; and
// the time that LOTUS_RESUME() and LOTUS_PAUSE() take.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lotus/lotus.hpp>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using functions_of = std::map<std::string, std::set<std::string>>;

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

/// Runs a shell command and returns its stdout.
std::string output_of(const std::string& command, const fs::path& dir) {
  const std::string file = (dir / "out.txt").string();
  if (std::system((command + " >" + shell_quoted(file)).c_str()) != 0) {
    throw std::runtime_error("failed: " + command);
  }
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::vector<std::string>> table_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream in(csv);
  for (std::string line; std::getline(in, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

/// Returns the last component of a qualified name: "copy_rows" for "(anonymous
/// namespace)::copy_rows".
std::string last_name(const std::string& function) {
  const std::size_t colon = function.rfind(':');
  return colon == std::string::npos ? function : function.substr(colon + 1);
}

class measurement {
 public:
  measurement(const std::string& tool, const std::string& probe)
      : tool_{shell_quoted(tool)},
        probe_{shell_quoted(probe)},
        dir_{fs::temp_directory_path() / "lotus-map-XXXXXX"} {
    std::string name = dir_.string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    dir_ = name;
    for (const auto& row : table_of(output_of(probe_ + " --truth", dir_))) {
      truth_[row.at(0)].insert(row.at(1));
    }
  }
  measurement(const measurement&) = delete;
  measurement& operator=(const measurement&) = delete;
  ~measurement() {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }

  /// Compares the functions that `map run` finds with those that the operations of the probe really
  /// call. Prints which share of the called functions `map run` finds, and which share of the
  /// functions that it finds is really called.
  /// @param rule  options that determine the number of runs: "--confidence 0.99 --span 0.3ms" or
  ///   "--runs N".
  void recall_and_precision(const char* what, const std::string& rule) {
    functions_of found;
    std::size_t wrong_samples = 0;
    std::size_t samples = 0;
    const auto rows =
        table_of(output_of(tool_ + " map run -q --csv --rate 1000 " + rule + " --reports " +
                               shell_quoted((dir_ / "reports").string()) + " -- " + probe_,
                           dir_));
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const std::string function = last_name(rows[i].at(1));
      found[rows[i][0]].insert(function);
      const auto count = static_cast<std::size_t>(std::stod(rows[i].at(5)));
      samples += count;
      if (truth_[rows[i][0]].count(function) == 0) wrong_samples += count;
    }
    std::size_t hits = 0, there = 0, given = 0;
    for (const auto& [op, functions] : truth_) {
      there += functions.size();
      given += found[op].size();
      for (const std::string& f : functions) hits += found[op].count(f);
    }
    std::printf("%s: recall %.3f, precision %.3f; samples of others %.2f %% (%zu of %zu)\n", what,
                share(hits, there), share(hits, given), 100 * share(wrong_samples, samples),
                wrong_samples, samples);
  }

  void join() {
    const fs::path run = dir_ / "run";
    fs::remove_all(run);
    const auto truth =
        table_of(output_of("LOTUS_LOG_FILE=" + shell_quoted((run / "log").string()) + ' ' + tool_ +
                               " map record -q -- " + probe_ + " --run 4 4000",
                           dir_));
    const auto rows = table_of(
        output_of(tool_ + " map join -q --csv --prefix log " + shell_quoted(run.string()), dir_));
    std::map<std::string, double> samples;
    double all_samples = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i].at(0).empty()) continue;
      samples[rows[i][0]] += std::stod(rows[i].back());
      all_samples += std::stod(rows[i].back());
    }
    double all_seconds = 0;
    for (const auto& row : truth) all_seconds += std::stod(row.at(1));
    double worst = 0;
    for (const auto& row : truth) {
      worst = std::max(
          worst, std::abs(samples[row[0]] / all_samples - std::stod(row.at(1)) / all_seconds));
    }
    std::printf(
        "map join, 4 threads, 12 operations: worst CPU share %.2f points off (%.0f samples)\n",
        100 * worst, all_samples);
  }

 private:
  static double share(std::size_t part, std::size_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  std::string tool_;
  std::string probe_;
  fs::path dir_;
  functions_of truth_;
};

/// Measures how long LOTUS_RESUME() and LOTUS_PAUSE() take with the built-in collector.
void resume_and_pause() {
  setenv("LOTUS_COLLECTOR", "builtin", 1);
  const std::string log = (fs::temp_directory_path() / "lotus-map-pair/log").string();
  lotus::start(log);
  std::vector<double> us;
  for (int i = 0; i < 2000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    LOTUS_RESUME();
    LOTUS_PAUSE();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                     .count());
  }
  LOTUS_DETACH();
  lotus::stop();
  fs::remove_all(fs::path(log).parent_path());
  std::sort(us.begin(), us.end());
  std::printf("built-in resume + pause: median %.1f us, p99 %.1f us\n", us[us.size() / 2],
              us[us.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: map_numbers LOTUS_TOOL MAP_PROBE [TIMES]\n");
    return 2;
  }
  try {
    measurement m{argv[1], argv[2]};
    resume_and_pause();
    for (int i = 0; i < (argc > 3 ? std::stoi(argv[3]) : 3); ++i) {
      m.recall_and_precision("map run, C = 0.99", "--confidence 0.99 --span 0.3ms");
      m.join();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "map_numbers: %s\n", error.what());
    return 1;
  }
  return 0;
}
