// Runs diagnose on a simulated pipeline and stores its answer.
#ifndef LOTUS_TESTS_PLANTED_ANSWER_HPP
#define LOTUS_TESTS_PLANTED_ANSWER_HPP

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "catch.hpp"
#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {

constexpr std::int64_t ms = 1'000'000;

struct answer {
  json whole;
  std::shared_ptr<const temp_dir> logs;
  std::set<std::string> checks{};

  std::string verdict() const {
    return whole["verdict"].is_null() ? "none" : whole["verdict"].text();
  }
  /// Returns the output without --json.
  std::string text() const { return run({"diagnose", logs->path()}).out; }
};

inline answer diagnose(const planted_logs& logs) {
  const auto dir = std::make_shared<const temp_dir>();
  logs.write(*dir);
  const result r = run_well({"diagnose", dir->path(), "--json"});
  answer a{parse_json(r.out), dir};
  for (const json& check : a.whole["checks"].array()) a.checks.insert(check["id"].text());
  return a;
}

inline answer diagnose(const worker_loader& loader) {
  planted_logs logs;
  generator random(7);
  simulate(loader, logs, random);
  return diagnose(logs);
}

inline std::string text_of(const answer& a, const std::string& id) {
  for (const json& check : a.whole["checks"].array()) {
    if (check["id"].text() == id) return check["text"].text();
  }
  return {};
}

inline const std::set<std::string> no_checks;

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_PLANTED_ANSWER_HPP
