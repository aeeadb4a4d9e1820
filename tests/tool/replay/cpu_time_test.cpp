// Tests how predictions use the recorded CPU time of whole processes, and the recorded idle time of
// the machine.
#include <algorithm>
#include <cstdint>

#include "catch.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr int batches = 100;

/// Writes the logs of a worker that is blocked for 10 ms per batch, on a machine of two CPUs.
/// @param unrecorded_ns  CPU time that threads without markers use per batch.
/// @param others  number of CPUs that other programs use.
void plant(const temp_dir& dir, std::int64_t unrecorded_ns, int others = 0) {
  planted_logs logs(2);
  for (int i = 0; i < batches; ++i) {
    const std::int64_t start = 10 * ms * i;
    const std::int64_t end = start + 10 * ms;
    logs.op(1, "Parse", start + 1000, 10 * ms - 102'000);
    logs.off_cpu(1, end - 101'000, 10 * ms - 120'000, 0);
    logs.made(1, i, start, 10 * ms - 100'000);
    logs.waited(0, i, start, 10 * ms - 80'000);
    logs.used(0, i, end - 70'000);
    logs.off_cpu(0, end - 10'000, 10 * ms - 20'000, 0);
  }
  logs.cpu_time(0, 0, 0);
  const std::int64_t used = batches * (unrecorded_ns + 100'000);
  logs.cpu_time(10 * ms * batches, used, (20 - 10 * others) * ms * batches - used);
  logs.write(dir);
}

json prediction_for_workers(const temp_dir& dir, const char* workers) {
  const result r = run_well({"whatif", dir.path(), "--workers", workers, "--json", "-q"});
  return parse_json(r.out)["changes"][0];
}

}  // namespace

TEST_CASE("CPU time of threads without markers limits what more workers can do") {
  const temp_dir alone;
  plant(alone, 0);
  CHECK(prediction_for_workers(alone, "8")["batches_per_s"].number() > 600);
  const temp_dir helped;
  plant(helped, 8 * ms);
  // Each batch takes 8.1 ms of CPU time, so two CPUs have time for 2 / 8.1 ms = 247 batches per
  // second.
  const json limited = prediction_for_workers(helped, "8");
  CHECK(limited["batches_per_s"].number() > 200);
  CHECK(limited["batches_per_s"].number() < 260);
  CHECK(limited["low"].number() < 247);
}

TEST_CASE("predictions do not deny that other programs used the CPUs") {
  // The process uses 0.1 ms per batch, and one of the two CPUs is never idle.
  for (const bool busy : {false, true}) {
    const temp_dir dir;
    plant(dir, 0, busy ? 1 : 0);
    const result r = run({"whatif", dir.path(), "-q"});
    INFO(r.out);
    CHECK(contains(r.out, "no other program uses the CPUs") != busy);
    CHECK(contains(r.out, "other programs no longer use CPUs (they used 1)") == busy);
    // A run that hardly needs a CPU is not delayed by them.
    CHECK_FALSE(contains(run({"diagnose", dir.path(), "-q"}).out, "other program"));
  }
}

TEST_CASE("threads whose samples take turns at waiting and computing overlap sample by sample") {
  // Two workers build batches of 4 samples. Each sample waits for 30 ms and then computes for about
  // 4 ms. Four workers use the 2 CPUs for a quarter of the time, so they hardly disturb each other.
  // If each batch waited first and then computed for 16 ms, they would compute at the same time.
  constexpr int samples = 4;
  planted_logs logs(2);
  std::int64_t free_at[3] = {};
  std::int64_t received = 0;
  for (int i = 0; i < batches; ++i) {
    const int worker = 1 + i % 2;
    const std::int64_t start = free_at[worker];
    std::int64_t now = start + 1000;
    for (int sample = 0; sample < samples; ++sample) {
      const std::int64_t decode = 4 * ms + ms * ((7 * i + sample) % 5 - 2) / 20;
      logs.op(worker, "Read", now, 30 * ms);
      logs.off_cpu(worker, now + 30 * ms, 30 * ms, 0);
      logs.op(worker, "Decode", now + 30 * ms, decode);
      now += 30 * ms + decode;
    }
    logs.made(worker, i, start, now - start);
    free_at[worker] = now + 1000;
    const std::int64_t from = received;
    received = std::max(now, received) + 20'000;
    logs.waited(0, i, from, received - from);
    logs.used(0, i, received);
    logs.off_cpu(0, received, received - from - 20'000, 0);
  }
  const temp_dir dir;
  logs.write(dir);
  const double alone = 1e3 / samples / 34;  // of one worker, in batches per second
  CHECK(prediction_for_workers(dir, "1")["batches_per_s"].number() == Approx(alone).epsilon(0.02));
  const json four = prediction_for_workers(dir, "4");
  CHECK(four["batches_per_s"].number() == Approx(4 * alone).epsilon(0.05));
  CHECK(four["high"].number() > 4 * 0.99 * alone);
}

TEST_CASE("without an operation, its CPU time is not waited for either") {
  // A worker sleeps for 5 ms, waits for a CPU for 1.5 ms and computes for 4 ms. In the run it takes
  // 0.3 ms until it begins the next batch, so the simulation is too fast, and the waits for a CPU
  // would explain that. Without Decode, nothing is left that uses the CPU.
  planted_logs logs(1);
  for (int i = 0; i < batches; ++i) {
    const std::int64_t start = 10'800'000LL * i;
    const std::int64_t read = start + 6'500'000;
    const std::int64_t made = read + 4 * ms;
    logs.op(1, "Read", start + 1000, 6'499'000);
    logs.off_cpu(1, read, 6'499'000, 1'500'000);
    logs.op(1, "Decode", read, 4 * ms - 1000);
    logs.made(1, i, start, made - start);
    logs.waited(0, i, start, made + 100'000 - start);
    logs.used(0, i, made + 110'000);
    logs.off_cpu(0, made + 120'000, made + 90'000 - start, 0);
  }
  const temp_dir dir;
  logs.write(dir);
  const result r = run_well({"whatif", dir.path(), "--without", "Decode", "--json", "-q"});
  const json without = parse_json(r.out)["changes"][0];
  CHECK(without["batches_per_s"].number() > 170);
  CHECK(without["batches_per_s"].number() < 200);
}
