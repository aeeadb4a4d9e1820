// Tests the critical path: each nanosecond must belong to exactly one activity, the right one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_shapes.hpp"
#include "tool/json.hpp"
#include "tool/replay/simulated_truth.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns shares of the run in percent, by the activity's name, or by its kind if it has no name.
/// Checks that their sum is 100.
std::map<std::string, double> shares_of(const answer& a) {
  const std::int64_t run_ns = a.whole["run_ns"].integer();
  std::map<std::string, double> shares;
  std::int64_t sum_ns = 0;
  for (const json& part : a.whole["critical_path"].array()) {
    sum_ns += part["ns"].integer();
    const std::string name = part.has("name") ? part["name"].text() : part["what"].text();
    shares[name] += 100.0 * static_cast<double>(part["ns"].integer()) / static_cast<double>(run_ns);
  }
  CHECK(sum_ns == run_ns);
  return shares;
}

worker_loader loading_and_cropping() {
  worker_loader loader;
  loader.workers = 1;
  loader.batches = 100;
  loader.make = constant(100);
  loader.step = constant(0.2);
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    logs.made(thread, i, start, duration);
    logs.op(thread, "Load", start, duration * 6 / 10);
    logs.op(thread, "Crop", start + duration * 6 / 10, duration * 4 / 10);
  };
  return loader;
}

/// A thread processes all the time, and hands over ten items at once to a thread that writes them.
/// @param late_ns  time from the end of the tenth item to the first write.
/// @param cpu      share of the writer's time between its writes in which it uses a CPU.
planted_logs processed_and_written(std::int64_t late_ns, double cpu) {
  constexpr std::int64_t items = 10;
  planted_logs logs(4);
  std::int64_t written_ns = 0;
  for (std::int64_t i = 0; i < 20 * items; ++i) {
    logs.stage(1, "Process", i, 10 * i * ms, 10 * ms - 1);
    const std::int64_t handed_ns = 10 * (i / items + 1) * items * ms + late_ns;
    const std::int64_t begin_ns = handed_ns + i % items * 2 * ms;
    if (written_ns < begin_ns - ms && written_ns != 0) {
      const auto off_ns = static_cast<double>(begin_ns - written_ns) * (1 - cpu);
      logs.off_cpu(2, begin_ns, static_cast<std::int64_t>(off_ns), 0);
    }
    logs.stage(2, "Write", i, begin_ns, 2 * ms - 1);
    written_ns = begin_ns + 2 * ms - 1;
  }
  return logs;
}

}  // namespace

TEST_CASE("two operations share the critical path in proportion to their time") {
  std::map<std::string, double> shares = shares_of(diagnose(loading_and_cropping()));
  CHECK(shares["Load"] == Approx(60).margin(1));
  CHECK(shares["Crop"] == Approx(40).margin(1));
}

TEST_CASE("a slow consumer takes the whole critical path, and a slow start its beginning") {
  worker_loader loader = loading_and_cropping();
  loader.workers = 4;
  loader.step = constant(100);
  std::map<std::string, double> slow = shares_of(diagnose(loader));
  CHECK(slow["step"] > 97);
  loader = loading_and_cropping();
  loader.spawn_ns = 5000 * ms;
  loader.batches = 50;
  std::map<std::string, double> spawned = shares_of(diagnose(loader));
  CHECK(spawned["start-up"] == Approx(50).margin(1));
}

TEST_CASE("a pause before an epoch whose first batch is ready is no start-up") {
  planted_logs logs(8);
  std::int64_t now = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    // The first batches are built while the consumer does something else for 60 ms.
    const std::int64_t begin = now;
    if (epoch > 0) now += 60 * ms;
    for (std::int64_t i = 0; i < 20; ++i) {
      const std::int64_t ready = begin + (20 + i) * ms;
      logs.made(1 + static_cast<int>(i % 2), i, i == 0 ? begin : ready - ms,
                (i == 0 ? 20 : 1) * ms);
      const std::int64_t at = std::max(now + 2000, ready);
      logs.waited(0, i, now, at - now);
      logs.used(0, i, at);
      now = at + 5 * ms;
    }
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  double start_up_ms = 0;
  for (const json& part : a.whole["critical_path"].array()) {
    if (part["what"].text() == "start-up") start_up_ms += part["ns"].number() / 1e6;
  }
  CHECK(start_up_ms < 1);
  CHECK(a.verdict() == "consumer-bound");
}

TEST_CASE("the critical path of a chain lies in its slowest stage") {
  planted p;
  generator random(3);
  simulate(read_decode_pack(1), p, random);
  const answer a = diagnose(p.logs);
  CHECK(a.verdict() == "stage-bound");
  CHECK(a.whole["bound_by"]["name"].text() == "Decode");
  std::map<std::string, double> shares = shares_of(a);
  CHECK(shares["Decode"] + shares["Inside"] > 95);
}

TEST_CASE("a thread that gets several items at once waited for the last of them") {
  std::map<std::string, double> shares = shares_of(diagnose(processed_and_written(1000, 0)));
  CHECK(shares["Process"] == Approx(99).margin(1));
  // A thread that used a CPU until then did something else.
  const answer works = diagnose(processed_and_written(1000, 1));
  CHECK(works.whole["path_misses"].text() == "Process");
}

TEST_CASE("a thread that looks for items from time to time waited for what was handed over last") {
  std::map<std::string, double> shares = shares_of(diagnose(processed_and_written(ms, 0)));
  CHECK(shares["Process"] > 95);
  // Each item is handed over when the next one is ready, and written a little later.
  planted_logs logs(4);
  for (std::int64_t i = 0; i < 200; ++i) {
    logs.stage(1, "Process", i, 10 * i * ms, 10 * ms - 1);
    const std::int64_t begin_ns = (10 * i + 20) * ms + 6 * ms / 10;
    logs.off_cpu(2, begin_ns, 7 * ms, 0);
    logs.stage(2, "Write", i, begin_ns, 2 * ms - 1);
  }
  shares = shares_of(diagnose(logs));
  CHECK(shares["Process"] > 95);
}

TEST_CASE("a reader that waits for room waited for the stage that had to complete an item") {
  planted_logs logs(4);
  for (std::int64_t i = 0; i < 100; ++i) {
    // At most three items are in the queue and in Process, whose thread sleeps a little in between.
    const std::int64_t begin_ns = 105 * i * ms / 10;
    const std::int64_t read_ns = i < 3 ? i * ms / 2 : 105 * (i - 3) * ms / 10 + 13 * ms;
    if (i > 3) logs.off_cpu(1, read_ns, 10 * ms, 0);
    logs.stage(1, "Read", i, read_ns, 4 * ms / 10);
    if (i > 0) logs.off_cpu(2, begin_ns + 3 * ms, 4 * ms / 10, 0);
    logs.stage(2, "Process", i, begin_ns + 3 * ms, 10 * ms - 1);
    logs.stage(3, "Write", i, begin_ns + 18 * ms, ms);
  }
  std::map<std::string, double> shares = shares_of(diagnose(logs));
  CHECK(shares["Process"] > 90);
}

TEST_CASE("a worker that waits for room waited for the step before the next batch was taken") {
  // The thread that takes a batch wakes up the worker first, and records that it took it after
  // that.
  for (const bool preempted : {false, true}) {
    CAPTURE(preempted);
    constexpr std::int64_t batches = 200;
    constexpr std::int64_t room = 4;
    planted_logs logs(4);
    std::vector<std::int64_t> taken;
    std::vector<std::int64_t> ready;
    std::int64_t begin_ns = 0;
    std::int64_t asked_ns = 0;
    for (std::int64_t i = 0; i < batches; ++i) {
      const std::int64_t make_ns = (i % 25 == 24 ? 30 : 1) * ms;
      if (!ready.empty() && begin_ns > ready.back() + ms / 10) {
        const std::int64_t gap_ns = begin_ns - ready.back();
        logs.off_cpu(1, begin_ns, gap_ns, preempted ? gap_ns : 0);
      }
      logs.made(1, i, begin_ns, make_ns);
      logs.op(1, "Read", begin_ns, make_ns);
      ready.push_back(begin_ns + make_ns);
      const std::int64_t at_ns = std::max(asked_ns + 15'000, ready.back() + 20'000);
      logs.waited(0, i, asked_ns, at_ns - asked_ns);
      logs.used(0, i, at_ns);
      taken.push_back(at_ns - 10'000);
      asked_ns = at_ns + 3 * ms;
      // The batch is in the queue when there is room for it.
      begin_ns = ready.back() + 1000;
      if (i >= room) begin_ns = std::max(begin_ns, taken[static_cast<std::size_t>(i - room)]);
    }
    std::map<std::string, double> shares = shares_of(diagnose(logs));
    CHECK((shares["unrecorded"] > 20) == preempted);
    CHECK((shares["step"] > 60) == !preempted);
  }
}

TEST_CASE("a worker that hands over its batch late works until then") {
  planted_logs logs(4);
  std::int64_t asked_ns = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t begin_ns = 8 * i * ms;
    if (i > 0) logs.off_cpu(1, begin_ns, 29 * ms / 10, 0);
    logs.made(1, i, begin_ns, 5 * ms);
    logs.op(1, "Read", begin_ns, 5 * ms);
    const std::int64_t at_ns = begin_ns + 8 * ms + 20'000;
    logs.waited(0, i, asked_ns, at_ns - asked_ns);
    logs.used(0, i, at_ns);
    asked_ns = at_ns + 2 * ms;
  }
  std::map<std::string, double> shares = shares_of(diagnose(logs));
  CHECK(shares["unrecorded"] == Approx(37).margin(2));
  CHECK(shares["Read"] == Approx(62).margin(2));
}

TEST_CASE("a stage that waits for room waited until the next stage took an item") {
  planted_logs logs(4);
  for (std::int64_t k = 0; k < 60; ++k) {
    // Process looks for items every 10 ms, and finds one in the queue and one at the reader, which
    // goes on at once. It records that it begins after that.
    const std::int64_t taken_ns = 10 * k * ms + 7 * ms;
    if (k == 0) {
      logs.stage(1, "Read", 0, ms, 3 * ms - 1);
      logs.stage(1, "Read", 1, 4 * ms, 3 * ms - 1);
    }
    logs.off_cpu(2, taken_ns, 8 * ms - 10'000, 0);
    logs.stage(2, "Process", 2 * k, taken_ns + 5000, ms - 6000);
    logs.stage(2, "Process", 2 * k + 1, taken_ns + ms, ms);
    if (k > 0) logs.off_cpu(1, taken_ns, 4 * ms - 10'000, 0);
    logs.stage(1, "Read", 2 * k + 2, taken_ns, 3 * ms - 1);
    logs.stage(1, "Read", 2 * k + 3, taken_ns + 3 * ms, 3 * ms - 1);
  }
  std::map<std::string, double> shares = shares_of(diagnose(logs));
  CHECK(shares["Read"] == Approx(30).margin(2));
  CHECK(shares["hand-over"] == Approx(70).margin(2));
}

TEST_CASE("threads that are started for one batch waited for those of the batch before") {
  planted_logs logs(4);
  for (std::int64_t i = 0; i < 30; ++i) {
    logs.stage(1, "Read", i, i * ms, ms - 1);
    logs.stage(10 + 2 * static_cast<int>(i), "Map", i, (20 * i + 1) * ms, 20 * ms - 1000);
    logs.stage(11 + 2 * static_cast<int>(i), "Map", i, (20 * i + 1) * ms, 15 * ms);
    logs.stage(2, "Write", i, (20 * i + 31) * ms, ms);
  }
  std::map<std::string, double> shares = shares_of(diagnose(logs));
  CHECK(shares["Map"] > 90);
}

TEST_CASE("a critical path without the stage that always works is left out everywhere") {
  const answer a = diagnose(processed_and_written(9 * ms, 0));
  CHECK(a.whole["path_misses"].text() == "Process");
  CHECK(a.whole["critical_path"].size() == 0);
  CHECK(a.whole["screen"]["where"].size() == 0);
  const std::string path = "No critical path is shown: the stage Process worked";
  CHECK(contains(run({"diagnose", a.logs->path(), "--details", "--wide"}).out, path));
  const auto drawn = [](const answer& of) {
    const result r = run_well({"viz", of.logs->path(), "-o", "-"});
    return contains(r.out, "\"cat\":\"path\"");
  };
  CHECK_FALSE(drawn(a));
  const answer shown = diagnose(processed_and_written(1000, 0));
  CHECK_FALSE(shown.whole.has("path_misses"));
  CHECK(shown.whole["screen"]["where"].size() > 0);
  CHECK_FALSE(contains(run({"diagnose", shown.logs->path(), "--details", "--wide"}).out, path));
  CHECK(drawn(shown));
}

TEST_CASE("a batch that its builder divides among threads is built by these threads") {
  for (const int parts : {1, 3}) {
    CAPTURE(parts);
    planted_logs logs;
    constexpr std::int64_t batches = 60;
    for (std::int64_t i = 0; i < batches; ++i) {
      const std::int64_t begin = 20 * i * ms;
      for (int part = 0; part < parts; ++part) {
        logs.stage(2 + part, "Parse", i, begin + (1 + part) * ms, 16 * ms);
      }
      logs.made(1, i, begin, 20 * ms);
      logs.waited(9, i, i == 0 ? 0 : begin + ms, i == 0 ? 20 * ms : 19 * ms);
      logs.used(9, i, begin + 20 * ms);
    }
    const answer a = diagnose(logs);
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(shares_of(a)["Parse"] == Approx(100.0 * (15 + parts) / 20).margin(1));
    const temp_dir dir;
    logs.write(dir);
    const result r = run_well({"whatif", dir.path(), "--faster", "Parse=2", "--json", "-q"});
    const json predicted = parse_json(r.out)["changes"][0];
    const double gain = 20 / (20 - (15.0 + parts) / 2);
    CHECK(predicted["gain"].number() == Approx(gain).epsilon(0.05));
  }
}

TEST_CASE("the critical path of every pipeline adds up to the run's time") {
  for (const auto* shapes : {&planted_loaders(), &planted_stages()}) {
    for (const planted_shape& shape : *shapes) {
      generator random(31);
      planted p;
      shape.plant(p, random);
      const temp_dir dir;
      p.logs.write(dir);
      INFO(shape.name);
      const result r = run({"diagnose", dir.path(), "--json", "-q"});
      if (r.status != 0) continue;
      const json whole = parse_json(r.out);
      for (const json& one : whole.has("runs") ? whole["runs"].array() : std::vector{whole}) {
        std::int64_t sum_ns = 0;
        for (const json& part : one["critical_path"].array()) sum_ns += part["ns"].integer();
        CHECK(sum_ns == one["run_ns"].integer());
      }
    }
  }
}
