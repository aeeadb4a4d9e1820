// Finds claims of diagnose and whatif that contradict what the same recording shows.
#ifndef LOTUS_TESTS_CONTRADICTIONS_HPP
#define LOTUS_TESTS_CONTRADICTIONS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tool/json.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

/// Returns the largest number of calls of an operation that overlap, from the text logs in a
/// folder; 0 if there are none.
inline std::size_t calls_at_once(const std::string& folder, const std::string& operation) {
  std::vector<std::pair<long long, int>> changes;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      const std::string start = 'S' + operation + ',';
      if (line.compare(0, start.size(), start) != 0) continue;
      const std::size_t comma = line.find(',', start.size());
      if (comma == std::string::npos) continue;
      const long long begin = std::atoll(line.c_str() + start.size());
      changes.emplace_back(begin, 1);
      changes.emplace_back(begin + std::atoll(line.c_str() + comma + 1), -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  std::size_t now = 0;
  std::size_t most = 0;
  for (const auto& [at, change] : changes) {
    now = change > 0 ? now + 1 : now - 1;
    most = std::max(most, now);
  }
  return most;
}

/// Returns the share (0..1) of the critical path that an operation or stage has.
inline double path_share_of(const json& d, const std::string& name) {
  double ns = 0;
  for (const json& share : d["critical_path"].array()) {
    if (share.has("name") && share["name"].text() == name) ns += share["ns"].number();
  }
  return ns / d["run_ns"].number();
}

/// Returns the predictions of whatif for a run that its diagnosis forbids.
inline std::vector<std::string> forbidden_predictions(const json& d, const std::string& folder) {
  std::vector<std::string> wrong;
  if (d["verdict"].is_null()) return wrong;
  const std::string verdict = d["verdict"].text();
  constexpr double gains = 1.05;
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{}, std::vector<std::string>{"--feed-consumer"}}) {
    std::vector<std::string> words{"whatif", folder, "--json", "-q"};
    words.insert(words.end(), asked.begin(), asked.end());
    const json answer = parse_json(run(words).out);
    if (answer.has("why")) continue;
    if (verdict == "hand-over-bound") wrong.emplace_back("predictions of a late hand-over");
    for (const json& one : answer["changes"].array()) {
      const json& change = one["change"];
      if (one["gain"].number() < gains) continue;
      const bool more = change.has("workers") && change["workers"].number() > d["workers"].number();
      if (more && verdict == "lock-bound") wrong.emplace_back("a gain of more workers at a lock");
      if (!change.has("faster") || change["faster"].size() != 1) continue;
      const std::string name = change["faster"].members().front().name;
      if (name != "preprocess" && path_share_of(d, name) < 0.01)
        wrong.push_back("a gain of " + name + ", without a share of the path");
    }
  }
  return wrong;
}

/// Returns the claims of a diagnosis (its JSON output) that its own figures forbid.
/// @param folder  the folder with the run's logs.
inline std::vector<std::string> contradictions(const json& d, const std::string& folder) {
  std::vector<std::string> wrong;
  if (d["verdict"].is_null()) return wrong;
  const std::string verdict = d["verdict"].text();
  const std::string title = d["screen"]["title"].text();
  const bool has_workers = !contains(title, "no workers") && d["workers"].number() > 0;
  double path_ns = 0;
  double steps_ns = 0;
  for (const json& part : d["critical_path"].array()) {
    path_ns += part["ns"].number();
    if (part["what"].text() == "step") steps_ns += part["ns"].number();
  }
  const bool nothing_to_do =
      verdict == "balanced" || (verdict == "consumer-bound" && 2 * steps_ns < path_ns);
  if (nothing_to_do && has_workers && d["wait_share"].number() > 0.15 &&
      !contains(d["screen"]["why"].text(), "asks for it")) {
    wrong.push_back(verdict + " although the consumer waited");
  }
  if (d.has("waits")) {
    double sum = 0;
    for (const char* const part :
         {"first_ns", "not_begun_ns", "built_ns", "between_ns", "order_ns", "hand_over_ns"}) {
      if (d["waits"][part].number() < 0) wrong.push_back(std::string(part) + " is negative");
      sum += d["waits"][part].number();
    }
    const double all = d["waits"]["all_ns"].number();
    if (std::abs(sum - all) > 1e-6 * all + 1)
      wrong.emplace_back("the parts of the waits do not add up");
  }
  const double run_ns = d["run_ns"].number();
  for (const char* const list : {"moves", "possible"}) {
    for (const json& move : d[list].array()) {
      const json& change = move["change"];
      const bool more = change.has("workers") && change["workers"].number() > d["workers"].number();
      if (more && (verdict == "hand-over-bound" || verdict == "lock-bound")) {
        wrong.push_back("more workers although the run is " + verdict);
      }
      if (!change.has("faster") || change["faster"].size() != 1 || run_ns <= 0) continue;
      const std::string name = change["faster"].members().front().name;
      if (name != "preprocess" && path_share_of(d, name) < 0.01)
        wrong.push_back(name + " faster, without a share of the path");
    }
  }
  std::string texts = d["sentence"].text();
  for (const json& text : d["screen"]["warnings"].array()) texts += ' ' + text.text();
  if (contains(texts, "idle machine") && d.has("other_programs_cpus") &&
      d["other_programs_cpus"].number() < 0.1) {
    wrong.emplace_back("an idle machine is asked for although nothing else ran");
  }
  const std::string once = " runs only once at a time";
  const std::size_t at = texts.find(once);
  if (at != std::string::npos) {
    const std::size_t begin = texts.rfind(": ", at);
    const std::string name = texts.substr(begin + 2, at - begin - 2);
    if (calls_at_once(folder, name) > 1) wrong.push_back("calls of " + name + " overlap");
  }
  // More threads do not surely cure a slow one.
  for (const json& one : d["findings"].array()) {
    if (one["id"].text() != "slow-worker") continue;
    for (const json& move : d["moves"].array()) {
      const bool threads = move["change"].has("workers") || move["change"].has("threads");
      if (threads) wrong.emplace_back("more workers as a sure cure of a slow one");
    }
  }
  // The setting that the verdict names is among the suggestions.
  bool named = false;
  std::size_t suggested = 0;
  for (const char* const list : {"moves", "possible"}) {
    for (const json& move : d[list].array()) {
      named = named || move["change"].has("prefetch") || move["change"].has("in_flight");
      ++suggested;
    }
  }
  if (verdict == "prefetch-bound" && suggested > 0 && !named) {
    wrong.emplace_back("prefetch-bound, but no suggestion raises the number in flight");
  }
  return wrong;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_CONTRADICTIONS_HPP
