#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/diagnose/planted_pipelines.hpp"
#include "tool/diagnose/planted_shapes.hpp"

namespace lotus::tool_test {
namespace {

constexpr std::int64_t ms = 1'000'000;

void one_thread(planted& p, generator& random) {
  const int n = any(random, 25, 60);
  std::int64_t now = 0;
  for (int epoch = 0; epoch < any(random, 1, 2); ++epoch) {
    for (int i = 0; i < n; ++i) {
      const std::int64_t preprocessing = any(random, 1, 20) * ms;
      made_as_one(p.logs, 0, i, now + 1000, preprocessing);
      p.logs.waited(0, i, now, preprocessing + 2000);
      p.logs.used(0, i, now + preprocessing + 3000);
      p.logs.op(0, "Train", now + preprocessing + 4000, 5 * ms);
      now += preprocessing + any(random, 6, 12) * ms;
    }
  }
}

stage_chain some_stages(generator& random) {
  stage_chain chain;
  const int n = any(random, 2, 5);
  for (int s = 0; s < n; ++s) {
    stage_spec spec;
    spec.name = "Stage" + std::to_string(s);
    spec.threads = any(random, 1, 4);
    spec.service = any_spread(random, 1, 12, 0.4);
    spec.bound = any(random, 1, 6);
    chain.stages.push_back(spec);
  }
  chain.step = spread(any(random, 0.5, 6.0), 0.1);
  chain.batches = any(random, 100, 160);
  return chain;
}

void stages(planted& p, generator& random) {
  simulate(some_stages(random), p, random);
}

void workers_and_pin(planted& p, generator& random) {
  stage_chain chain = some_stages(random);
  chain.stages.resize(2);
  chain.stages[1].name = "Pin";
  chain.stages[1].threads = 1;
  chain.first_is_workers = true;
  simulate(chain, p, random);
}

void pool(planted& p, generator& random) {
  stage_chain chain = some_stages(random);
  chain.pool = any(random, 2, 6);
  for (stage_spec& spec : chain.stages) {
    spec.bound = 1000;
    spec.threads = any(random, 0, 2) == 0 ? 1 : chain.pool;
  }
  simulate(chain, p, random);
  p.stages.clear();  // no log shows which stage a pool's idle time belongs to
}

void service(planted& p, generator& random) {
  const int threads = any(random, 1, 6);
  std::vector<std::int64_t> free(static_cast<std::size_t>(threads), 0);
  std::int64_t came = 0;
  for (int request = 0; request < 120; ++request) {
    came += any(random, 1, 8) * ms;
    std::size_t first = 0;
    for (std::size_t t = 1; t < free.size(); ++t) {
      if (free[t] < free[first]) first = t;
    }
    const std::int64_t start = std::max(came, free[first]);
    const std::int64_t took = any(random, 1, 20) * ms;
    p.logs.stage(static_cast<int>(first) + 1, "Request", request, start, took);
    p.logs.op(static_cast<int>(first) + 1, "Parse", start + 1000, took / 3);
    p.batches[request] = {took, took};
    free[first] = start + took + 1000;
  }
}

/// Tasks that pause and continue on another thread; they are recorded as asynchronous operations.
void asynchronous(planted& p, generator& random) {
  const int threads = any(random, 1, 4);
  worker_loader loader = some_workers(random);
  loader.workers = threads;
  loader.log_preprocessing = [threads](planted_logs& logs, int thread, std::int64_t i,
                                       std::int64_t start, std::int64_t duration) {
    // The second segment runs on another thread, inside a span of that thread.
    logs.segment(thread, "Fetch", i, start, duration / 8);
    logs.segment(1 + (thread % threads), "Fetch", i, start + duration / 2, duration / 8);
    made_as_one(logs, thread, i, start, duration);
  };
  simulate(loader, p.logs, random);
  p.may = {"unrecorded-work"};
}

}  // namespace

const std::vector<planted_shape>& planted_stages() {
  static const std::vector<planted_shape> all{{"one thread", one_thread, 8},
                                              {"stages", stages, 24},
                                              {"workers and pin", workers_and_pin, 12},
                                              {"pool", pool, 12},
                                              {"service", service, 8},
                                              {"asynchronous", asynchronous, 8}};
  return all;
}

}  // namespace lotus::tool_test
