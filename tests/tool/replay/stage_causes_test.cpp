// Tests diagnose with stages and workers whose cause of slowness is known.
#include <algorithm>
#include <array>
#include <cstdint>

#include "catch.hpp"
#include "tool/diagnose/planted_answer.hpp"
#include "tool/diagnose/planted_pipelines.hpp"

using namespace lotus::tool_test;

TEST_CASE("stages that could build many more batches are not the bottleneck") {
  for (const bool between : {false, true}) {
    planted_logs logs;
    std::int64_t received = 0;
    for (int i = 0; i < 100; ++i) {
      // Something without a marker lets one batch pass every 7 ms.
      const std::int64_t passed = 7 * ms * (i + 1);
      const std::int64_t read = between ? std::max<std::int64_t>(0, passed - 20 * ms) : passed;
      logs.stage(1, "Read", i, read, ms);
      const std::int64_t decoded = between ? passed : read + ms;
      logs.stage(2 + i % 2, "Decode", i, decoded, 2 * ms);
      logs.waited(0, i, received, decoded + 2 * ms - received);
      logs.used(0, i, decoded + 2 * ms);
      received = decoded + 3 * ms;
    }
    logs.cpus(4);
    const answer a = diagnose(logs);
    INFO(a.text());
    CHECK(a.verdict() == "preprocessing-bound");
    CHECK(contains(a.whole["screen"]["why"].text(),
                   between ? "between two stages is slow" : "before the first stage is slow"));
  }
}

TEST_CASE("calls that have become longer are not taken for calls that wait for each other") {
  planted_logs logs;
  std::array<std::int64_t, 3> free{};
  std::int64_t received = 0;
  for (int i = 0; i < 124; ++i) {
    const auto worker = std::min_element(free.begin(), free.end()) - free.begin();
    std::int64_t& from = free[static_cast<std::size_t>(worker)];
    const std::int64_t needs = (i < 62 ? 4 : 36) * ms + i % 7 * ms / 50;
    logs.op(1 + static_cast<int>(worker), "Load", from, needs);
    logs.made(1 + static_cast<int>(worker), i, from, needs);
    from += needs;
    const std::int64_t ready = std::max(from, received);
    logs.waited(0, i, received, ready - received);
    logs.used(0, i, ready);
    received = ready + 3 * ms;
  }
  logs.cpus(8);
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(contains(a.text(), "Load takes 4"));
  CHECK(contains(a.text(), "workers instead of 3"));
}

TEST_CASE("a worker that is slow in a stage is named") {
  planted_logs logs;
  std::int64_t now = 0;
  for (int i = 0; i < 90; ++i, now += 20 * ms) {
    logs.stage(1 + i % 3, "Decode", i, now, (i % 3 == 1 ? 40 : 8) * ms);
    logs.waited(0, i, now + 22 * ms, 19 * ms);
    logs.used(0, i, now + 41 * ms);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  REQUIRE(a.whole["slow_workers"].size() == 1);
  CHECK(a.whole["slow_workers"][0]["stage"].text() == "Decode");
  CHECK(contains(a.text(), "needs 40.00 ms for a batch in Decode, 5 times as long"));
}

TEST_CASE("a stage that puts items together as they come is not what limits") {
  planted_logs logs;
  std::int64_t received = 0;
  for (int b = 0; b < 60; ++b) {
    // Each batch has 8 items that two threads decode; Collate begins with the first and waits.
    const std::int64_t begin = 16 * ms * b;
    for (int i = 0; i < 8; ++i) {
      logs.stage(1 + i % 2, "Decode", 8 * b + i, begin + i / 2 * 4 * ms, 4 * ms);
      logs.takes(3, begin + (i / 2 + 1) * 4 * ms, b, 8 * b + i);
    }
    logs.stage(3, "Collate", b, begin + ms, 16 * ms);
    logs.off_cpu(3, begin + 16 * ms, 15 * ms, 0);
    logs.off_cpu(1, begin + 16 * ms, 0, 0);
    logs.off_cpu(2, begin + 16 * ms, 0, 0);
    logs.waited(0, b, received, begin + 17 * ms - received);
    logs.used(0, b, begin + 17 * ms);
    logs.off_cpu(0, begin + 17 * ms, begin + 17 * ms - received, 0);
    received = begin + 18 * ms;
  }
  logs.cpus(4);
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "stage-bound");
  CHECK(a.whole["bound_by"]["name"].text() == "Decode");
  for (const json& part : a.whole["critical_path"].array()) {
    if (part["title"].text() == "stage Collate") CHECK(part["ns"].number() < 0.1 * 960 * ms);
  }
}

TEST_CASE("a buffer that is filled again and again is not called a start-up") {
  planted_logs logs;
  std::int64_t now = 0;
  std::int64_t received = 0;
  for (int i = 0; i < 160; ++i) {
    if (i % 40 == 0) logs.op(1, "Fill", now, 120 * ms);
    const std::int64_t needs = (i % 40 == 0 ? 123 : 3) * ms;
    logs.made(1, i, now, needs);
    now += needs;
    const std::int64_t ready = std::max(now, received);
    logs.waited(0, i, received, ready - received);
    logs.used(0, i, ready);
    received = ready + 3 * ms;
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() != "start-up-bound");
  CHECK_FALSE(contains(a.text(), "first batches of an epoch"));
}

TEST_CASE("parts of a batch that threads of a stage build at once are simulated as such") {
  planted_logs logs(8);
  constexpr std::int64_t step = 7 * ms;
  for (int i = 0; i < 100; ++i) {
    // Three threads build two parts each of the batch after the next one, while the consumer works.
    for (int part = 0; part < 6; ++part) {
      const std::int64_t start = (i - 2) * step + part / 3 * 16 * ms / 10;
      logs.stage(1 + part % 3, "Utterance", i, std::max<std::int64_t>(0, start + 20 * step),
                 16 * ms / 10);
      logs.off_cpu(1 + part % 3, start + 20 * step + 15 * ms / 10, 14 * ms / 10, 0);
    }
    const std::int64_t now = (i + 20) * step;
    logs.waited(0, i, now, 10'000);
    logs.used(0, i, now + 10'000);
  }
  const answer a = diagnose(logs);
  INFO(a.text());
  CHECK(a.verdict() == "consumer-bound");
  const result r = run_well({"whatif", a.logs->path(), "--step", "0.5", "--json"});
  // Built by one thread each, only two of the three threads would ever work.
  CHECK(parse_json(r.out)["changes"][0]["gain"].number() > 1.85);
}
