// Tests pipelines that end in a last stage instead of a consumer, and readers that are reset to
// begin again with batch 0. The throughput must count the batches that were finished, and the other
// results must agree with it.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// A pipeline that reads on one thread, transforms on several, and writes in order on one thread. A
/// batch can begin only when one of `tokens` tokens is free.
struct pushed_pipeline {
  std::int64_t read_ns = 2 * ms;
  std::int64_t transform_ns = 9 * ms;
  std::int64_t write_ns = ms;
  int threads = 3;
  int tokens = 6;
  int batches = 90;

  /// Returns the batches per second from the beginning of the run to the end of its last batch.
  double simulate_into(planted_logs& logs) const {
    std::vector<std::int64_t> free_ns(static_cast<std::size_t>(threads));
    std::vector<std::int64_t> written;
    std::int64_t reader_ns = 0;
    std::int64_t writer_ns = 0;
    for (int i = 0; i < batches; ++i) {
      const std::int64_t token_ns = i < tokens ? 0 : written[static_cast<std::size_t>(i - tokens)];
      const std::int64_t read = std::max(reader_ns, token_ns);
      reader_ns = read + read_ns;
      const auto thread = std::min_element(free_ns.begin(), free_ns.end());
      const std::int64_t transform = std::max(*thread, reader_ns);
      *thread = transform + transform_ns + i % 3 * ms / 10;
      const std::int64_t write = std::max(writer_ns, *thread);
      writer_ns = write + write_ns;
      written.push_back(writer_ns);
      logs.stage(1, "Read", i, read, read_ns);
      logs.stage(2 + static_cast<int>(thread - free_ns.begin()), "Transform", i, transform,
                 *thread - transform);
      logs.stage(2 + threads, "Write", i, write, write_ns);
    }
    return batches * 1e9 / static_cast<double>(written.back());
  }
};

}  // namespace

TEST_CASE("without a consumer, the ends of the last stage give the throughput") {
  const pushed_pipeline pipeline;
  planted_logs logs;
  const double per_s = pipeline.simulate_into(logs);
  const temp_dir dir;
  logs.write(dir);
  const json d = parse_json(run_well({"diagnose", dir.path(), "--json", "-q"}).out);
  CHECK(d["achieved_batches_per_s"].number() == Approx(per_s).epsilon(0.001));
  CHECK(d["verdict"].text() == "stage-bound");
  CHECK(d["stage"].text() == "Transform");
  const result text = run({"diagnose", dir.path(), "-q"});
  CHECK(contains(text.out, "Batches leave the pipeline with its last stage"));
  CHECK_FALSE(contains(text.out, "the consumer"));

  pushed_pipeline faster = pipeline;
  faster.transform_ns /= 2;
  planted_logs unused;
  const double truth = faster.simulate_into(unused);
  const result asked = run({"whatif", dir.path(), "--faster", "Transform=2", "--json", "-q"});
  REQUIRE(asked.status == 0);
  const json answer = parse_json(asked.out);
  REQUIRE(answer.has("changes"));
  const json change = answer["changes"][0];
  CHECK(change["batches_per_s"].number() == Approx(truth).epsilon(0.05));
  CHECK(change["gain"].number() ==
        Approx(change["batches_per_s"].number() / answer["baseline"]["batches_per_s"].number()));
  CHECK(change["gain"].number() ==
        Approx(answer["baseline"]["run_ns"].number() / change["run_ns"].number()));
}

TEST_CASE("requests that come slowly are not limited by a setting") {
  planted_logs logs(8);
  for (int i = 0; i < 90; ++i) logs.stage(1 + i % 3, "Request", i, i * 12 * ms, 9 * ms);
  const temp_dir dir;
  logs.write(dir);
  const result r = run({"diagnose", dir.path(), "-q"});
  INFO(r.out << r.err);
  CHECK(contains(r.out, "The program seems to be a service that waits for requests"));
  CHECK_FALSE(contains(r.out, "in flight"));
}

TEST_CASE("a reader that prefetches and is reset has one epoch, with discarded batches counted") {
  // Each chunk is read by one thread and parsed in parts by two threads. These threads exist only
  // for this chunk.
  planted_logs logs;
  int thread = 2;
  std::int64_t now = 0;
  std::int64_t waits_from = 0;
  const auto chunk = [&](std::int64_t i) {
    logs.made(1, i, now, 10 * ms);
    logs.op(1, "Parse", now + 2000, 10 * ms - 4000);
    for (int part = 0; part < 2; ++part, ++thread) {
      logs.made(thread, i, now + ms, 8 * ms);
      logs.op(thread, "Tokens", now + ms + 2000, 8 * ms - 4000);
    }
    now += 10 * ms + 5000;
  };
  for (std::int64_t i = 0; i < 3; ++i) chunk(i);
  const std::int64_t begin = now;
  waits_from = now;
  for (std::int64_t i = 0; i < 60; ++i) {
    chunk(i);
    logs.waited(0, i, waits_from, now - waits_from);
    logs.used(0, i, now + 1000);
    waits_from = now + 2 * ms;
  }
  const temp_dir dir;
  logs.write(dir);
  const json d = parse_json(run_well({"diagnose", dir.path(), "--json", "-q"}).out);
  const double length = 1e-9 * static_cast<double>(now + 2 * ms - begin);
  CHECK(d["achieved_batches_per_s"].number() == Approx(60 / length).epsilon(0.01));
  CHECK(d["discarded"].integer() == 3);
  CHECK(d["verdict"].text() == "preprocessing-bound");
  CHECK(d["workers"].integer() == 1);
  CHECK(contains(run({"diagnose", dir.path(), "--details", "-q"}).out, "built and discarded"));
}
