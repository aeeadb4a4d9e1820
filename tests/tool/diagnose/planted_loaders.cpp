#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/diagnose/planted_shapes.hpp"

namespace lotus::tool_test {

worker_loader some_workers(generator& random) {
  worker_loader loader;
  loader.workers = any(random, 1, 6);
  loader.prefetch = any(random, 1, 4);
  loader.batches = any(random, 30, 60);
  loader.make = any_spread(random, 2, 40, 0.5);
  loader.step = any_spread(random, 1, 20, 0.3);
  return loader;
}

namespace {

constexpr std::int64_t ms = 1'000'000;

void workers(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.epochs = any(random, 1, 3);
  loader.pause_ns = any(random, 0, 2000) * ms;
  loader.new_threads = any(random, 0, 1) == 1;
  simulate(loader, p.logs, random);
}

void short_run(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.batches = any(random, 3, 19);
  simulate(loader, p.logs, random);
  p.checks = {"short"};
}

void consumed_late(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.consumed_late = true;
  const consumer_truth truth = simulate(loader, p.logs, random);
  const double late =
      static_cast<double>(truth.steps_ns) / static_cast<double>(truth.steps_ns + truth.waits_ns);
  if (late > 0.22) p.checks = {"consumed-late"};
  if (late > 0.18 && late <= 0.22) p.may = {"consumed-late"};
}

/// The scope LOTUS_BATCH_PREPROCESSED contains only the last part of the work on each batch.
void unrecorded(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  const int share = any(random, 5, 60);  // recorded part in percent
  loader.log_preprocessing = [share](planted_logs& logs, int thread, std::int64_t i,
                                     std::int64_t start, std::int64_t duration) {
    const std::int64_t outside = duration * (100 - share) / 100;
    logs.op(thread, "Decode", start, outside - 1000);
    logs.made(thread, i, start + outside, duration - outside);
    logs.op(thread, "Collate", start + outside, duration - outside - 100);
  };
  simulate(loader, p.logs, random);
  p.checks = {"unrecorded-work"};
}

/// A few operations are outside of batches, and one is on the thread of the consumer. Neither may
/// make a check fail.
void a_little_unrecorded(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  const int share = any(random, 0, 15);
  loader.log_preprocessing = [share](planted_logs& logs, int thread, std::int64_t i,
                                     std::int64_t start, std::int64_t duration) {
    const std::int64_t outside = duration * share / 100;
    if (outside > 0) logs.op(thread, "Index", start, outside);
    logs.made(thread, i, start + outside, duration - outside);
    logs.op(thread, "Decode", start + outside, duration - outside);
  };
  const consumer_truth truth = simulate(loader, p.logs, random);
  p.logs.op(0, "Train", 0, truth.end_ns);
}

void twice(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  const int samples = any(random, 1, 8);
  loader.log_preprocessing = [samples](planted_logs& logs, int thread, std::int64_t i,
                                       std::int64_t start, std::int64_t duration) {
    const std::int64_t half = duration / 2;
    for (const std::int64_t from : {start, start + half}) {
      const std::int64_t each = (half - 1000) / samples;
      for (int s = 0; s < samples; ++s) {
        logs.op(thread, "Decode", from + s * each, each * 2 / 3);
        logs.op(thread, "Crop", from + s * each + each * 2 / 3, each / 4);
      }
    }
    logs.made(thread, i, start, half);
  };
  simulate(loader, p.logs, random);
  p.checks = {"twice"};
}

void in_parts(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    for (int part = 0; part < 3; ++part) {
      logs.made(thread + 10 * part, i, start + part * (duration / 3), duration / 3);
      logs.op(thread + 10 * part, "Decode", start + part * (duration / 3), duration / 3);
    }
  };
  simulate(loader, p.logs, random);
  p.checks = {"pieces"};
}

void wrong_number(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.prefetch = 1;
  loader.consumed_number = loader.workers + any(random, 2, 4);
  simulate(loader, p.logs, random);
  p.checks = {"other-numbers"};
}

void two_loaders(planted& p, generator& random) {
  const bool named = any(random, 0, 2) == 0;
  const bool at_once = any(random, 0, 1) == 1;
  worker_loader train = some_workers(random);
  worker_loader val = some_workers(random);
  val.batches = train.batches / any(random, 2, 5);
  val.first_thread = 20;
  if (at_once) val.consumer = 10;
  const int rounds = any(random, 2, 3);
  std::int64_t now = 0;
  for (int round = 0; round < rounds; ++round) {
    if (named) p.logs.loader("train");
    const std::int64_t trained = simulate(train, p.logs, random, now).end_ns;
    if (named) p.logs.loader("val");
    const std::int64_t validated =
        simulate(val, p.logs, random, at_once ? now + ms : trained).end_ns;
    now = std::max(trained, validated);
  }
  if (named) {
    p.may = {"short"};
    return;
  }
  p.checks = {"loaders-mixed"};
  p.may = {"negative-delay"};
}

void dropped(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  simulate(loader, p.logs, random);
  if (any(random, 0, 1) == 0) {
    p.logs.records(100'000, static_cast<std::uint64_t>(any(random, 1, 9000)));
  } else {
    p.logs.damage(1, any(random, 1, 50));
  }
  p.checks = {"dropped"};
}

void crossing(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                                std::int64_t duration) {
    made_as_one(logs, thread, i, start, duration);
    // Simulates a coroutine's scope that ends during the next operation of the thread.
    if (i % 7 == 3) logs.op(thread, "Fetch", start - duration / 3, duration / 2);
  };
  simulate(loader, p.logs, random);
  p.checks = {"overlap"};
  p.may = {"unrecorded-work"};
}

void oversubscribed(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.workers = any(random, 4, 6);
  loader.step = constant(1);
  const bool sleeping = any(random, 0, 1) == 1;
  if (sleeping) {
    // Each worker waits for a disk during 90 % of its time, but not all workers at the same time.
    loader.make = spread(20, 0.4);
    loader.log_preprocessing = [](planted_logs& logs, int thread, std::int64_t i,
                                  std::int64_t start, std::int64_t duration) {
      made_as_one(logs, thread, i, start, duration);
      logs.off_cpu(thread, start + 100 + duration * 4 / 10, duration * 4 / 10 - 100, 0);
      logs.off_cpu(thread, start + duration - 100, duration / 2 - 2000, 0);
    };
  }
  const int cpus = any(random, 1, 8);
  if (!sleeping && cpus < loader.workers) {
    const int workers = loader.workers;
    loader.log_preprocessing = [=](planted_logs& logs, int thread, std::int64_t i,
                                   std::int64_t start, std::int64_t duration) {
      made_as_one(logs, thread, i, start, duration);
      const std::int64_t queued = duration * (workers - cpus) / workers;
      logs.off_cpu(thread, start + duration - 100, queued, queued);
    };
  }
  simulate(loader, p.logs, random);
  p.logs.cpus(cpus);
  if (!sleeping && cpus < loader.workers) p.checks = {"oversubscribed"};
  // The consumer's step may need a CPU too.
  if (!sleeping && cpus == loader.workers) p.may = {"oversubscribed"};
  if (sleeping && cpus < 4) p.may = {"oversubscribed"};
}

void a_thread_a_batch(planted& p, generator& random) {
  worker_loader loader = some_workers(random);
  loader.prefetch = 1;
  const int offset = any(random, 0, 3);
  loader.log_preprocessing = [offset](planted_logs& logs, int, std::int64_t i, std::int64_t start,
                                      std::int64_t duration) {
    made_as_one(logs, static_cast<int>(10 + offset + i), i, start, duration);
  };
  simulate(loader, p.logs, random);
}

}  // namespace

const std::vector<planted_shape>& planted_loaders() {
  static const std::vector<planted_shape> all{{"workers", workers, 20},
                                              {"short", short_run, 8},
                                              {"consumed late", consumed_late, 12},
                                              {"unrecorded", unrecorded, 12},
                                              {"a little unrecorded", a_little_unrecorded, 10},
                                              {"twice", twice, 10},
                                              {"pieces", in_parts, 10},
                                              {"wrong number", wrong_number, 8},
                                              {"two loaders", two_loaders, 20},
                                              {"dropped", dropped, 10},
                                              {"crossing", crossing, 10},
                                              {"oversubscribed", oversubscribed, 12},
                                              {"a thread a batch", a_thread_a_batch, 12}};
  return all;
}

}  // namespace lotus::tool_test
