// Compares the predictions of lotus-tool whatif with simulations of the changed loader.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal/table.hpp"
#include "catch.hpp"
#include "tool/diagnose/planted_shapes.hpp"
#include "tool/json.hpp"
#include "tool/replay/contended_loader.hpp"
#include "tool/replay/simulated_truth.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

json ask(const truthful_loader& loader, std::vector<std::string> words, int status = 0) {
  const temp_dir dir;
  planted_logs logs;
  loader.simulate_into(logs);
  logs.write(dir);
  words.insert(words.begin(), {"whatif", dir.path(), "--json", "-q"});
  const result r = run(words);
  INFO(r.err);
  REQUIRE(r.status == status);
  return parse_json(r.out);
}

double said(const truthful_loader& loader, const std::vector<std::string>& words) {
  const json answer = ask(loader, words);
  REQUIRE(answer["changes"].size() == 1);
  return answer["changes"][0]["batches_per_s"].number();
}

std::string text(double value) {
  return std::to_string(value);
}

/// Returns the throughput of a change as whatif prints it.
std::string shown_rate(const json& change) {
  return lotus::tool::three_digits(change["batches_per_s"].number());
}

result ask_logs(const temp_dir& dir, std::vector<std::string> words) {
  words.insert(words.begin(), {"whatif", dir.path()});
  return run(words);
}

}  // namespace

TEST_CASE("predictions for workers, prefetch, faster work and steps are right") {
  generator random(17);
  double worst = 0;
  for (int time = 0; time < 60; ++time) {
    const truthful_loader a = some_truthful(random);
    CAPTURE(a.workers, a.prefetch, a.batches, a.make_ms, a.make_sigma, a.step_ms, a.seed);
    truthful_loader b = a;
    std::vector<std::string> words;
    switch (time % 6) {
      case 0:
        b.workers = any(random, 1, 8);
        b.prefetch = 2;
        words = {"--workers", std::to_string(b.workers), "--prefetch", "2"};
        break;
      case 1:
        b.prefetch = any(random, 1, 6);
        words = {"--prefetch", std::to_string(b.prefetch)};
        break;
      case 2:
        b.step_ms *= any(random, 0.3, 3.0);
        words = {"--step", text(b.step_ms / a.step_ms)};
        break;
      case 3:  // Decode is half of the preprocessing
        b.make_ms *= 0.75;
        words = {"--faster", "SDecode=2"};
        break;
      case 4:
        b.make_ms *= 0.5;
        words = {"--without", "Decode"};
        break;
      default:
        b.make_ms *= 0.5;
        b.workers = a.workers + 1;
        b.prefetch = 2;
        words = {"--faster", "preprocess=2", "--workers", std::to_string(b.workers), "--prefetch",
                 "2"};
    }
    CAPTURE(words);
    const double error = said(a, words) / b.rate() - 1;
    worst = std::max(worst, std::abs(error));
    // A recording of one worker does not show how several workers would share the batches, so a
    // larger error is allowed.
    CHECK(std::abs(error) < (a.workers == 1 && b.workers > 1 ? 0.06 : 0.02));
  }
  std::cout << "worst error " << 100 * worst << " %\n";
}

TEST_CASE("the interval of a run with very many batches is narrow and holds the truth") {
  // Random samples of such a run contain only a part of its batches; see what_if::what_if().
  for (const int epochs : {1, 7}) {
    truthful_loader a;
    a.workers = 3;
    a.batches = 30'000 / epochs;
    a.epochs = epochs;
    a.make_sigma = 0.8;
    a.step_ms = 1;
    CAPTURE(epochs);
    truthful_loader b = a;
    b.make_ms *= 0.8;
    const json answer = ask(a, {"--faster", "preprocess=1.25"});
    REQUIRE(answer["changes"].size() == 1);
    const json& change = answer["changes"][0];
    const double truth = b.rate() * epochs;
    CHECK(change["batches_per_s"].number() == Approx(truth).epsilon(0.02));
    CHECK(change["low"].number() < truth);
    CHECK(change["high"].number() > truth);
    CHECK(change["high"].number() < 1.13 * change["low"].number());
  }
}

TEST_CASE("without a change the prediction equals the run, and the table is sorted by gain") {
  truthful_loader loader;
  loader.make_ms = 30;
  const json answer = ask(loader, {});
  const double was = answer["baseline"]["batches_per_s"].number();
  CHECK(was == Approx(loader.rate()).epsilon(0.001));
  CHECK(answer["baseline"]["replayed"].number() == Approx(was).epsilon(0.005));
  REQUIRE(answer["changes"].size() > 5);
  double before = HUGE_VAL;
  for (const json& change : answer["changes"].array()) {
    CHECK(change["gain"].number() <= before);
    before = change["gain"].number();
    CHECK(change["low"].number() <= change["batches_per_s"].number());
    CHECK(change["high"].number() >= change["batches_per_s"].number());
  }
  CHECK(answer["policies"]["dispatch"].text() == "in turn");
  CHECK(answer["policies"]["ordered"].boolean());
  CHECK(answer["policies"]["batches_out"].number() == 4);
  CHECK(answer["assumptions"].size() > 0);
}

TEST_CASE("if the number of CPUs is unknown, more workers yield a range") {
  truthful_loader loader;
  loader.make_ms = 30;
  const json more = ask(loader, {"--workers", "4"});
  const double was = more["baseline"]["batches_per_s"].number();
  CHECK(more["changes"][0]["low"].number() <= was);
  CHECK(more["changes"][0]["high"].number() > 1.8 * was);
  // If the user specifies the number of CPUs, the simulated workers must share these CPUs.
  const json none = ask(loader, {"--workers", "4", "--recorded-cpus", "2"});
  CHECK(none["changes"][0]["batches_per_s"].number() == Approx(was).epsilon(0.1));
  const json enough = ask(loader, {"--workers", "4", "--recorded-cpus", "8"});
  CHECK(enough["changes"][0]["batches_per_s"].number() > 1.7 * was);
}

TEST_CASE("if other programs used the CPUs, predictions use only the CPU time they left") {
  worker_loader loader;
  loader.workers = 1;
  loader.batches = 60;
  loader.make = constant(20);
  loader.step = constant(2);
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    // The batch consists of Decode and other operations, which wait for a CPU half of the time.
    made_as_one(logs, thread, i, start, duration);
    logs.off_cpu(thread, start + duration / 2, duration / 4 - 1000, duration / 4 - 1000);
    logs.off_cpu(thread, start + duration - 100, duration / 4 - 1000, duration / 4 - 1000);
  };
  planted_logs logs;
  generator random(1);
  simulate(loader, logs, random);
  logs.cpus(4);
  const temp_dir dir;
  logs.write(dir);
  const auto asked = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "-q"});
    return parse_json(ask_logs(dir, words).out);
  };
  const json more = asked({"--workers", "2"});
  const double was = more["baseline"]["batches_per_s"].number();
  CHECK(more["baseline"]["replayed"].number() > 1.5 * was);
  CHECK(more["changes"][0]["low"].number() <= was);
  // The run is at most twice as fast, because its share of the CPUs stays the same.
  CHECK(more["changes"][0]["high"].number() < 2.2 * was);
  std::string assumed;
  for (const json& text : more["assumptions"].array()) assumed += text.text() + '\n';
  CHECK(contains(assumed, "other programs leave"));
  const json without = asked({"--without", "Decode"});
  CHECK(without["changes"][0]["batches_per_s"].number() == Approx(2 * was).epsilon(0.2));
  const answer diagnosed = diagnose(logs);
  CHECK(diagnosed.verdict() == "preprocessing-bound");
  const std::string text = diagnosed.text();
  CHECK(text.find("Warning: other programs used") < text.find("bound:"));
}

TEST_CASE("whatif gives no predictions for a run that its own records do not explain") {
  const temp_dir dir;
  planted_logs logs;
  for (int i = 0; i < 30; ++i) {  // no record explains why each batch begins so late
    logs.made(1, i, (100 * i + 80) * ms, 10 * ms);
    logs.waited(0, i, 100 * i * ms, 90 * ms);
    logs.used(0, i, (100 * i + 90) * ms);
  }
  logs.write(dir);
  const result r = ask_logs(dir, {});
  CHECK(r.status == 0);
  CHECK(contains(r.out, "no predictions: by the recorded times, "));
  CHECK(parse_json(ask_logs(dir, {"--json"}).out).has("why"));
  // With a target, a missing answer must be an error for scripts.
  CHECK(ask_logs(dir, {"--target", "5/s"}).status == 4);
}

TEST_CASE("larger batches take proportionally longer") {
  truthful_loader loader;
  loader.make_sigma = loader.step_sigma = 0;
  const json answer = ask(loader, {"--batch-size", "2x"});
  CHECK(answer["changes"][0]["batches_per_s"].number() ==
        Approx(answer["baseline"]["batches_per_s"].number() / 2).epsilon(0.05));
  // Only the first batch and the last step take twice as long; the length of the rest of the run is
  // unchanged.
  CHECK(answer["changes"][0]["gain"].number() ==
        Approx(answer["baseline"]["run_ns"].number() / answer["changes"][0]["run_ns"].number()));
}

TEST_CASE("a target is reached with the fewest workers, or whatif says what is too slow") {
  truthful_loader loader;
  loader.workers = 1;
  loader.make_ms = 30;
  loader.make_sigma = 0;
  loader.step_ms = 5;
  const json reached = ask(loader, {"--target", "90/s"});
  CHECK(reached["target"]["reached"].boolean());
  CHECK(reached["changes"][0]["change"]["workers"].integer() == 3);
  const temp_dir dir;
  planted_logs logs;
  loader.simulate_into(logs);
  logs.write(dir);
  const result shown = ask_logs(dir, {"--target", "90/s"});
  CHECK(contains(shown.out, "3 workers instead of 1"));
  // The target is a throughput in steady state. The table shows the throughput with start-up.
  CHECK(contains(shown.out, "Target: 90 batches/s in steady state."));
  CHECK(contains(shown.out, shown_rate(reached["changes"][0]) + " batches/s over the whole run."));
  // The recording does not contain the number of CPUs.
  CHECK(contains(shown.out, "if there are CPUs for them"));
  const json fed = ask(loader, {"--feed-consumer"});
  CHECK(fed["target"]["reached"].boolean());
  CHECK(fed["changes"][0]["change"]["workers"].integer() >= 6);
  const json never = ask(loader, {"--target", "1000/s"}, 4);
  CHECK_FALSE(never["target"]["reached"].boolean());
  CHECK(ask_logs(dir, {"--target", "1000/s"}).status == 4);
}

TEST_CASE("whatif does not add workers for the last percent of a target") {
  truthful_loader loader;
  loader.workers = 2;
  loader.make_ms = 20.4;  // so four workers build 196 batches/s, and the consumer can receive 200/s
  loader.make_sigma = 0;
  loader.step_ms = 5;
  loader.step_sigma = 0;
  const json fed = ask(loader, {"--feed-consumer"});
  CHECK(fed["target"]["reached"].boolean());
  const double target = fed["target"]["batches_per_s"].number();
  const json& change = fed["changes"][0];
  CHECK(change["change"]["workers"].integer() == 4);
  CHECK(change["steady_batches_per_s"].number() > 0.97 * target);
  CHECK(change["steady_batches_per_s"].number() <
        target);  // slightly below the target, which would need more workers
}

TEST_CASE("the way to a target never makes the whole run longer") {
  for (const int workers : {1, 2, 4}) {
    for (const int batches : {10, 16, 40}) {
      truthful_loader loader;
      loader.workers = workers;
      loader.batches = batches;
      loader.make_ms = 30;
      loader.step_ms = 4;
      loader.spawn_ns = 20'000'000;
      const temp_dir dir;
      planted_logs logs;
      loader.simulate_into(logs);
      logs.write(dir);
      for (const std::string target : {"40/s", "60/s", "200/s", ""}) {
        std::vector<std::string> words{"--recorded-cpus", "2", "--json", "-q"};
        words.emplace_back(target.empty() ? "--feed-consumer" : "--target");
        if (!target.empty()) words.push_back(target);
        const result r = ask_logs(dir, words);
        CAPTURE(workers, batches, target, r.err, r.out);
        REQUIRE((r.status == 0 || r.status == 4));
        const json answer = parse_json(r.out);
        if (!answer.has("baseline")) continue;  // the recording does not explain itself
        const double now = answer["baseline"]["steady_batches_per_s"].number();
        if (answer["target"]["batches_per_s"].number() <= now) continue;
        CHECK(answer["changes"][0]["gain"].number() >= 1);
      }
    }
  }
}

TEST_CASE("threads of a stage may be asked about although only one loader has the stage") {
  planted p;
  generator random(3);
  p.logs.loader("train");
  simulate(read_decode_pack(4), p, random);
  p.logs.loader("val");
  truthful_loader{}.simulate_into(p.logs);
  const temp_dir dir;
  p.logs.write(dir);
  const result r = ask_logs(dir, {"--workers", "Decode=2"});
  INFO(r.err << r.out);
  CHECK(r.status == 0);
  CHECK(contains(r.out, "2 threads in Decode instead of 1"));
  CHECK(contains(r.out, "no predictions: --workers: Decode is an operation"));
  CHECK(ask_logs(dir, {"--workers", "Dekode=2"}).status == 1);
}

TEST_CASE("the number of batches in flight is shown") {
  truthful_loader loader;
  loader.make_ms = 1;
  loader.step_ms = 10;
  const json answer = ask(loader, {"--prefetch", "4"});
  CHECK(answer["changes"][0]["batches_out"].number() == 8);
}

TEST_CASE("a run of stages is asked about threads of a stage, not about workers") {
  for (const bool equal : {false, true}) {
    planted p;
    generator random(3);
    simulate(read_decode_pack(equal ? 4 : 1), p, random);
    const temp_dir dir;
    p.logs.write(dir);
    const result workers = ask_logs(dir, {"--workers", "4"});
    CHECK(workers.status == 1);
    CHECK(
        contains(workers.err, "--workers: stages build these batches; name one, as in --workers "));
    const result target = ask_logs(dir, {"--target", "700/s"});
    INFO(target.out);
    CHECK(target.status == 0);
    CHECK(contains(target.out, "3 threads in Decode instead of 1"));
    // If Decode and Pack are equally slow, more threads in only one of them gain nothing.
    CHECK(contains(target.out, "3 threads in Pack instead of 1") == equal);
    CHECK_FALSE(contains(target.out, "in Read instead"));
    // Without options, whatif lists single changes. It must add no threads to a stage that is
    // mostly idle.
    const result changes = ask_logs(dir, {});
    INFO(changes.out);
    CHECK(contains(changes.out, "threads in Decode instead of 1"));
    CHECK_FALSE(contains(changes.out, "in Read instead"));
    const result misspelled = ask_logs(dir, {"--workers", "Dekode=2"});
    CHECK(contains(misspelled.err, "did you mean 'Decode'?"));
    // The message must not suggest the operation Inside, because only stages have threads.
    const result operation = ask_logs(dir, {"--workers", "Insid=2"});
    CHECK(operation.status == 1);
    CHECK(contains(operation.err, "no stage is named 'Insid'; these are: Read, Decode, Pack"));
  }
}

TEST_CASE("reads from the page cache and a loader with fewer CPUs are predicted") {
  const bool files = GENERATE(true, false);
  contended_loader loader;
  loader.workers = files ? 2 : 6;
  loader.cv = 0.3;
  contended_loader changed = loader;
  std::vector<std::string> words;
  if (files) {
    loader.reads_files = true;
    loader.wait_samples_per_s = 200;
    changed.fetch_ms = 0.01;
    words = {"--cached-reads"};
  } else {
    loader.kind = changed.kind = shared_kind::work;
    loader.cpus = changed.cpus = 4;
    loader.fetch_ms = changed.fetch_ms = 6;
    loader.step_ms = changed.step_ms = 2;
    loader.step_computes = changed.step_computes = true;
    changed.loader_cpus = 2;
    words = {"--loader-cpus", "2"};
  }
  planted_logs logs;
  const double before = loader.simulate_into(&logs);
  const temp_dir dir;
  logs.write(dir);
  words.insert(words.end(), {"--json", "-q"});
  const result r = ask_logs(dir, words);
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  const double truth = changed.simulate_into(nullptr);
  const json change = parse_json(r.out)["changes"][0];
  CAPTURE(before, truth);
  CHECK(std::abs(truth / before - 1) > 0.05);
  CHECK(change["low"].number() <= truth);
  CHECK(truth <= change["high"].number());
  CHECK(change["batches_per_s"].number() == Approx(truth).epsilon(0.1));
}

TEST_CASE("invalid arguments are reported in one line") {
  const temp_dir dir;
  planted_logs logs;
  truthful_loader{}.simulate_into(logs);
  logs.write(dir);
  const auto refused = [&](std::vector<std::string> words, int status, const std::string& part) {
    const result r = ask_logs(dir, std::move(words));
    CAPTURE(r.err, r.out);
    CHECK(r.status == status);
    CHECK(contains(r.err, part));
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') <= 2);
  };
  refused({"--faster", "Decoed=2"}, 1,
          "no operation or stage 'Decoed' is part of building a batch; did you mean 'Decode'?");
  refused({"--faster", "Decode"}, 2, "--faster: expected NAME=NUMBER");
  refused({"--faster", "Decode=0"}, 2, "a number above 0");
  refused({"--faster", "Decode=nan"}, 2, "a number above 0");
  refused({"--workers", "1.5"}, 2, "whole number");
  refused({"--workers", "Decode=3"}, 1, "has no threads of its own");
  refused({"--workers", "Decod=3"}, 1,
          "this run has no stage 'Decod', only workers; give their number");
  refused({"--target", "30/m"}, 2, "such as 2/s");
  refused({"--target", "30/s", "--workers", "2"}, 2, "cannot be combined");
  refused({"--own-thread"}, 1, "workers");
  refused({"--order", "Decode"}, 2, "--order: expected two operations");
  refused({"--cache", "Decoed"}, 1, "did you mean 'Decode'?");
  refused({"--cached-reads"}, 1, "no wait samples show an operation that waits for a file");
  refused({"--loader-cpus", "1"}, 1, "--loader-cpus: ");
  refused({"--ready-samples"}, 1, "does not show the samples of a batch");
  refused({"--also", dir.path() + "/nowhere"}, 1, "nowhere");
}

TEST_CASE("a faster step may gain nothing if batches may be handed over one after the other") {
  // Workers are early. Either something needs 50 ms to pass each batch on, also during the steps,
  // or receiving a batch takes as long as the mean wait.
  constexpr std::int64_t milli = 1'000'000;
  const auto predicted = [](bool in_turn, std::int64_t varies) {
    const temp_dir dir;
    planted_logs logs;
    std::int64_t now = 100 * milli;
    for (std::int64_t i = 0; i < 100; ++i) {
      logs.made(1, i, i * 20 * milli, 20 * milli);
      const std::int64_t step = (i % 2 == 0 ? 44 - varies : 44 + varies) * milli;
      const std::int64_t passed_on = in_turn ? 100 * milli + i * 50 * milli : now + 6 * milli;
      logs.waited(0, i, now, passed_on - now);
      logs.used(0, i, passed_on + step);
      now = passed_on + step;
    }
    logs.write(dir);
    const result r = ask_logs(dir, {"--step", "0.5", "--json", "-q"});
    INFO(r.err << r.out);
    REQUIRE(r.status == 0);
    const json answer = parse_json(r.out);
    return std::pair(answer["changes"][0]["low"].number(),
                     answer["baseline"]["batches_per_s"].number());
  };
  for (const std::int64_t varies : {0, 4}) {
    const auto [low, measured] = predicted(true, varies);
    CHECK(low <= measured);
  }
  const auto [low, measured] = predicted(false, 4);
  CHECK(low > 1.1 * measured);
}
