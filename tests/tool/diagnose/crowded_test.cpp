// Tests the advice for a run with many more workers than CPUs, whose work only computes.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/replay/contended_loader.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns all suggestions that set the number of workers and nothing else.
std::vector<json> suggested_workers(const json& found) {
  std::vector<json> all;
  for (const char* const key : {"moves", "possible"}) {
    for (const auto& one : found[key].array()) {
      if (one["change"].has("workers") && one["change"].size() == 1) all.push_back(one);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("if many workers share two CPUs, two to four workers are suggested") {
  std::size_t suggested = 0;
  for (const double cv : {0.0, 0.1, 0.3, 1.0}) {
    for (const int workers : {16, 32}) {
      for (const unsigned seed : {1U, 2U}) {
        contended_loader loader;
        loader.kind = shared_kind::work;
        loader.cpus = 2;
        loader.cv = cv;
        loader.step_ms = 1;
        loader.workers = workers;
        loader.batches = 60;
        loader.seed = seed;
        planted_logs logs;
        loader.simulate_into(&logs);
        const temp_dir dir;
        logs.write(dir);
        const result r = run({"diagnose", dir.path(), "--json"});
        INFO(loader.name() << ", seed " << seed << ":\n" << r.out);
        for (const json& one : suggested_workers(parse_json(r.out))) {
          ++suggested;
          const auto chosen = static_cast<int>(one["change"]["workers"].integer());
          CHECK(chosen >= 2);
          CHECK(chosen <= 4);
          // The suggestion must not ask for another recording: one with even more workers would not
          // show how fast fewer workers are.
          CHECK_FALSE(contains(one["text"].text(), "record once with"));
          contended_loader changed = loader;
          changed.workers = chosen;
          const double truth = changed.simulate_into(nullptr);
          double best = 0;
          for (changed.workers = 1; changed.workers <= workers; ++changed.workers) {
            best = std::max(best, changed.simulate_into(nullptr));
          }
          CHECK(truth > 0.9 * best);
        }
      }
    }
  }
  CHECK(suggested >= 8);
}
