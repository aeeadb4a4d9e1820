// Tests that the parts of a diagnosis do not contradict each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/contradictions.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/diagnose/planted_shapes.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns the output of diagnose without line breaks.
std::string in_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) {
    const std::size_t next = text.find_first_not_of(' ', at + 1);
    text.replace(at, next == std::string::npos ? std::string::npos : next - at, " ");
  }
  return text;
}

answer diagnose(const stage_chain& chain) {
  planted p;
  generator random(7);
  simulate(chain, p, random);
  return diagnose(p.logs);
}

/// Returns the sum of the shares with this title in the table of the critical path.
double path_share(const answer& a, const std::string& title) {
  double ns = 0;
  for (const json& share : a.whole["critical_path"].array()) {
    if (share["title"].text() == title) ns += share["ns"].number();
  }
  return ns / a.whole["run_ns"].number();
}

/// Returns whether a suggestion, even a doubtful one, changes the setting `key`.
bool suggests(const answer& a, const std::string& key) {
  for (const char* const list : {"moves", "possible"}) {
    for (const json& move : a.whole[list].array()) {
      if (move["change"].has(key)) return true;
    }
  }
  return false;
}

/// Simulates eight workers on two CPUs. Their batches begin at the same times and take 10 ms: the
/// workers sleep for most of this time, and then wait `queued_ms` for a CPU.
answer sleeping_workers(double queued_ms) {
  worker_loader loader;
  loader.workers = 8;
  loader.batches = 80;
  loader.make = constant(10);
  loader.step = constant(0.2);
  loader.log_preprocessing = [queued_ms](planted_logs& logs, int thread, std::int64_t i,
                                         std::int64_t start, std::int64_t duration) {
    made_as_one(logs, thread, i, start, duration);
    const auto queued = static_cast<std::int64_t>(queued_ms * static_cast<double>(ms));
    const std::int64_t ran_from = start + duration - 200'000;
    logs.off_cpu(thread, ran_from, queued, queued);
    logs.off_cpu(thread, ran_from - queued - 10'000, duration - queued - 400'000, 0);
  };
  planted_logs logs;
  generator random(7);
  simulate(loader, logs, random);
  logs.cpus(2);
  return diagnose(logs);
}

}  // namespace

TEST_CASE("threads that sleep in their spans are no reason to use fewer of them") {
  const answer little = sleeping_workers(0.7);
  CHECK(little.checks == no_checks);
  const answer much = sleeping_workers(3);
  CHECK(much.checks == std::set<std::string>{"oversubscribed"});
  CHECK(contains(text_of(much, "oversubscribed"), "All times include waits for a CPU (29"));
  CHECK(contains(text_of(much, "oversubscribed"), "fewer threads are hardly as fast"));
  // If the threads wait for a CPU for most of the time, fewer of them may be as fast.
  CHECK(contains(text_of(sleeping_workers(7), "oversubscribed"),
                 "measure whether fewer threads are as fast"));
}

TEST_CASE("a stage-bound diagnosis says why, and names the next limit") {
  const answer a = diagnose(read_decode_pack(1));
  CHECK(a.verdict() == "stage-bound");
  CHECK(contains(in_one_line(a.text()),
                 "Why: the thread of this stage can process 250 batches/s. The next limit, of "));
}

TEST_CASE("of a stage and its operation with the same gain, only the operation is suggested") {
  stage_chain chain = read_decode_pack(3.5);
  chain.stages[1].inside = "Huffman";
  chain.stages[1].inside_share = 0.9;
  const answer capped = diagnose(chain);
  const std::string of_capped = capped.text();
  INFO(of_capped);
  CHECK(contains(of_capped, "Huffman 2x faster"));
  CHECK_FALSE(contains(of_capped, "stage Decode 2x faster"));
  // The operation Huffman now takes only 40 % of the time of the stage Decode, so making the whole
  // stage faster gains more. diagnose must suggest both.
  chain.stages[1].inside_share = 0.4;
  chain.stages[2].service = constant(1);
  const answer part = diagnose(chain);
  const std::string of_part = part.text();
  INFO(of_part);
  CHECK(contains(of_part, "stage Decode 2x faster"));
  CHECK(contains(of_part, "Huffman 2x faster"));
}

TEST_CASE(
    "if a budget of items stops the stages, more of them in flight are suggested, not threads") {
  stage_chain chain = read_decode_pack(1);
  chain.stages[1].threads = 4;
  chain.budget = 2;
  const answer held = diagnose(chain);
  CHECK(held.verdict() == "prefetch-bound");
  CHECK(contains(held.text(), "4 batches in flight instead of 2"));
  CHECK_FALSE(suggests(held, "threads"));
  // The threads of Decode limit this pipeline, although the queues between its stages are bounded
  // too.
  chain.stages[1].threads = 1;
  chain.budget = 0;
  const answer queues = diagnose(chain);
  CHECK(queues.verdict() == "stage-bound");
  CHECK(suggests(queues, "threads"));
  CHECK_FALSE(suggests(queues, "in_flight"));
}

TEST_CASE("full queues between stages are not taken for a limit on the items in flight") {
  generator random(5);
  for (const planted_shape& shape : planted_stages()) {
    if (shape.name != std::string("stages") && shape.name != std::string("workers and pin")) {
      continue;
    }
    for (int time = 0; time < 40; ++time) {
      planted p;
      shape.plant(p, random);
      const answer a = diagnose(p.logs);
      const std::string text = a.text();
      INFO(shape.name << ' ' << time << ":\n" << text);
      CHECK(a.verdict() != "prefetch-bound");
      CHECK_FALSE(suggests(a, "in_flight"));
      CHECK_FALSE(contains(text, "items in the stages"));
      // The reason that is printed after "Why:" must be about the stage that is the bottleneck, not
      // about another one.
      const std::string stage = a.verdict() == "stage-bound" ? a.whole["stage"].text() : "";
      const std::size_t served = text.find("Why: at most ");
      if (served != std::string::npos && !stage.empty()) {
        CHECK(contains(text.substr(served, 80), " calls of " + stage));
      }
    }
  }
}

TEST_CASE("if the number of unfinished items is limited, no more threads are suggested") {
  constexpr std::int64_t items_per_batch = 4;
  constexpr std::size_t most = 2;
  planted_logs logs;
  std::vector<std::int64_t> finished;
  std::int64_t read_until = 0;
  std::int64_t waits_from = 0;
  for (std::int64_t i = 0; i < 60 * items_per_batch; ++i) {
    // At most two items are unfinished: reading an item begins after the item before the previous
    // one is finished.
    std::int64_t start = read_until + 10'000;
    if (finished.size() >= most) start = std::max(start, finished[finished.size() - most] + 10'000);
    read_until = start + ms;
    logs.stage(1, "Read", i, start, ms);
    const std::int64_t end = read_until + 10'000 + 4 * ms;
    logs.stage(2 + static_cast<int>(i % 4), "Decode", i, read_until + 10'000, 4 * ms);
    finished.push_back(end);
    const std::int64_t batch = i / items_per_batch;
    logs.takes(2 + static_cast<int>(i % 4), end + 1000, batch, i);
    if (i % items_per_batch + 1 < items_per_batch) continue;
    logs.waited(0, batch, waits_from, end + 20'000 - waits_from);
    logs.used(0, batch, end + 30'000);
    waits_from = end + 500'000;
  }
  const answer held = diagnose(logs);
  CHECK(held.verdict() == "stage-bound");
  CHECK(contains(in_one_line(held.text()),
                 "Why: the number of items in the stages is limited to 2,"));
  CHECK_FALSE(suggests(held, "threads"));
  CHECK_FALSE(suggests(held, "workers"));
}

TEST_CASE("if batches are built on demand, the step delays them, not the prefetch depth") {
  planted_logs logs;
  std::int64_t now = 0;
  for (int i = 0; i < 60; ++i) {
    made_as_one(logs, 1, i, now + 20'000, 10 * ms);
    logs.waited(0, i, now, 10 * ms + 40'000);
    logs.used(0, i, now + 10 * ms + 50'000);
    now += 18 * ms;
  }
  const answer a = diagnose(logs);
  CHECK(path_share(a, "before the next batch was begun") < 0.01);
  CHECK(path_share(a, "the consumer's steps") == Approx(8.0 / 18).epsilon(0.05));
}

TEST_CASE("a short run's rates are called uncertain, not intervals") {
  worker_loader loader;
  loader.batches = 10;
  const answer a = diagnose(loader);
  CHECK(a.checks == std::set<std::string>{"short"});
  CHECK(contains(in_one_line(a.text()),
                 "only 10 batches were recorded, so all rates are uncertain."));
}

TEST_CASE("all rates of --details cover the whole run") {
  const result r = run({"diagnose", traces() + "/c_ooo_w4", "--details"});
  INFO(r.out);
  CHECK(r.status == 0);
  CHECK(contains(r.out, "measured throughput"));
  // The output must not contain the throughput in steady state: it leaves out the start-up, so it
  // may exceed the capacity of the workers.
  CHECK_FALSE(contains(r.out, "steady"));
  CHECK(contains(r.out, " batches/s ("));
  CHECK(contains(r.out, " samples/s"));
}

TEST_CASE("no diagnosis contradicts its recording") {
  std::set<std::string> folders;
  for (const std::string& root : {traces(), std::string(LOTUS_TEST_SAMPLES), shared_traces()}) {
    if (root.empty()) continue;
    for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
      if (contains(file.path().filename().string(), "_log")) {
        folders.insert(file.path().parent_path().string());
      }
    }
  }
  CHECK(folders.size() >= 2);
  std::size_t judged = 0;
  for (const std::string& folder : folders) {
    const result r = run({"diagnose", folder, "--json", "-q"});
    if (r.status != 0) continue;  // not every folder has one run
    const json document = parse_json(r.out);
    if (document.has("runs")) continue;
    INFO(folder);
    ++judged;
    CHECK(contradictions(document, folder) == std::vector<std::string>());
    CHECK(forbidden_predictions(document, folder) == std::vector<std::string>());
  }
  CHECK(judged >= 2);
}
