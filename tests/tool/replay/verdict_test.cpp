// Tests that the verdict names the change with the largest gain; the gains are found by simulating
// the changed loader.
#include <algorithm>
#include <iostream>
#include <map>
#include <string>

#include "catch.hpp"
#include "tool/diagnose/planted_shapes.hpp"
#include "tool/replay/simulated_truth.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the factor by which each change shortens the run, by verdict. Delivery order is not
/// simulated.
std::map<std::string, double> true_gains(const truthful_loader& loader) {
  const double was = loader.whole_ns();
  std::map<std::string, double> gains;
  const auto gain = [&](const std::string& name, const auto& change) {
    truthful_loader changed = loader;
    change(changed);
    gains[name] = was / changed.whole_ns();
  };
  gain("consumer-bound", [](truthful_loader& l) { l.step_ms /= 1.25; });
  gain("preprocessing-bound", [](truthful_loader& l) { l.make_ms /= 1.25; });
  gain("prefetch-bound", [](truthful_loader& l) { l.prefetch = 16; });
  gain("start-up-bound", [](truthful_loader& l) { l.spawn_ns = 0; });
  return gains;
}

}  // namespace

TEST_CASE("the verdict on 200 loaders is the change that gains most") {
  generator random(5);
  constexpr int loaders = 200;
  int right = 0;
  int by_order = 0;
  std::map<std::string, int> reported;
  for (int time = 0; time < loaders; ++time) {
    const truthful_loader loader = some_truthful(random);
    planted_logs logs;
    loader.simulate_into(logs);
    const answer a = diagnose(logs);
    const std::map<std::string, double> gains = true_gains(loader);
    double best = 1;
    for (const auto& [name, gain] : gains) best = std::max(best, gain);
    const std::string verdict = a.verdict();
    ++reported[verdict];
    double order_gain = 1;
    for (const json& g : a.whole["gains"].array()) {
      if (g["bound"].text() == "order-bound") order_gain = g["gain"].number();
    }
    for (const json& move : a.whole["moves"].array()) {
      INFO(move["text"].text());
      CHECK(move["batches_per_s"].number() >= 1.04 * a.whole["achieved_batches_per_s"].number());
    }
    bool is_right = false;
    if (verdict == "order-bound") {
      ++by_order;
      is_right = order_gain >= best - 0.02;
    } else if (verdict == "balanced") {
      is_right = best < 1.06;
    } else if (gains.count(verdict) != 0) {
      is_right = gains.at(verdict) >= best - 0.02;
    }
    if (is_right) {
      ++right;
    } else {
      std::cout << "wrong: " << verdict << ", best " << best << ", workers " << loader.workers
                << ", prefetch " << loader.prefetch << ", make " << loader.make_ms << " sigma "
                << loader.make_sigma << ", step " << loader.step_ms << ", spawn "
                << loader.spawn_ns / ms << ", seed " << loader.seed << '\n';
    }
  }
  for (const auto& [verdict, times] : reported) std::cout << verdict << ": " << times << '\n';
  CHECK(100 * right >= 98 * loaders);
  CHECK(by_order * 4 < loaders);
  CHECK(reported.size() >= 4);
}

TEST_CASE("predicted changes match the simulated loader with the change") {
  generator random(23);
  int moved = 0;
  for (int time = 0; time < 40; ++time) {
    truthful_loader loader = some_truthful(random);
    loader.workers = any(random, 2, 6);
    loader.spawn_ns = 0;
    planted_logs logs;
    loader.simulate_into(logs);
    logs.cpus(64);  // so many CPUs that the prediction for more workers is no interval
    const answer a = diagnose(logs);
    if (a.whole["moves"].size() == 0) continue;
    const json first = a.whole["moves"][0];
    truthful_loader changed = loader;
    const json change = first["change"];
    if (change.has("unordered") || change.has("faster")) continue;
    if (change.has("workers")) changed.workers = static_cast<int>(change["workers"].integer());
    if (change.has("prefetch")) changed.prefetch = static_cast<int>(change["prefetch"].integer());
    CAPTURE(first["text"].text(), loader.workers, loader.prefetch);
    CHECK(first["batches_per_s"].number() == Approx(changed.rate()).epsilon(0.03));
    const std::string text = first["text"].text();
    CHECK(contains(a.text(), text.substr(0, text.find(':'))));
    ++moved;
  }
  CHECK(moved >= 5);
}

TEST_CASE("a reader that is late now and then is not held up by a limit on batches in flight") {
  planted_logs logs;
  std::int64_t read = 0;
  std::int64_t received = 0;
  for (int i = 0; i < 200; ++i) {
    logs.stage(1, "Read", i, read, 6 * ms);
    logs.stage(2, "Decode", i, read + 6 * ms, ms);
    const std::int64_t ready = read + 7 * ms;
    logs.waited(0, i, received, ready + ms / 20 - received);
    logs.used(0, i, ready + ms / 20);
    received = ready + ms / 2;
    // In between, the batch before is mostly still in Decode.
    read += 6 * ms + (i % 20 == 7 ? 3 * ms : ms / 50);
  }
  logs.cpus(4);
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "stage-bound");
  CHECK_FALSE(contains(a.text(), "in flight"));
}
