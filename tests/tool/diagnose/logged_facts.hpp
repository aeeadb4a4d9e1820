// Helpers of tests that log runs of unusual structure.
#ifndef LOTUS_TESTS_LOGGED_FACTS_HPP
#define LOTUS_TESTS_LOGGED_FACTS_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "tool/diagnose/planted_answer.hpp"

namespace lotus::tool_test {

/// Returns the text of the finding; "" if the diagnosis does not have it.
inline std::string found(const answer& a, const std::string& id) {
  for (const json& one : a.whole["findings"].array()) {
    if (one["id"].text() == id) return one["text"].text();
  }
  return {};
}

inline bool suggests(const answer& a, const std::string& key) {
  for (const char* const list : {"moves", "possible"}) {
    for (const json& one : a.whole[list].array()) {
      if (one["change"].has(key)) return true;
    }
  }
  return false;
}

/// Logs a batch that its thread builds, mostly asleep.
inline void slept(planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                  std::int64_t ns) {
  logs.made(thread, i, start, ns);
  logs.op(thread, "Load", start + 1000, ns - 2000);
  logs.off_cpu(thread, start + ns - 2000, ns - 100'000, 0);
}

/// Logs that the consumer waits for a batch from `from` until `at`, and then begins its step.
inline void received(planted_logs& logs, std::int64_t i, std::int64_t from, std::int64_t at) {
  logs.waited(0, i, from, at - from);
  logs.off_cpu(0, at - 1000, at - from - 2000, 0);
  logs.used(0, i, at);
}

/// The same for a batch that can be received at `ready`. Returns when the step begins.
inline std::int64_t received_when(planted_logs& logs, std::int64_t i, std::int64_t from,
                                  std::int64_t ready) {
  const std::int64_t at = std::max(from + 2000, ready);
  received(logs, i, from, at);
  return at;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_LOGGED_FACTS_HPP
