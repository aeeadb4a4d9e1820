#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tool/diagnose/planted_pipelines.hpp"

namespace lotus::tool_test {

namespace {

std::int64_t from_ms(double ms) {
  return std::max<std::int64_t>(1000, std::llround(ms * 1e6));
}

}  // namespace

durations constant(double ms) {
  return [ns = from_ms(ms)](generator&) { return ns; };
}

durations spread(double median_ms, double sigma) {
  return [=](generator& random) {
    return from_ms(std::lognormal_distribution<double>(std::log(median_ms), sigma)(random));
  };
}

void made_as_one(planted_logs& logs, int thread, std::int64_t i, std::int64_t start,
                 std::int64_t duration) {
  logs.made(thread, i, start, duration);
  logs.op(thread, "Decode", start + 100, duration / 2);
  logs.op(thread, "Crop", start + 200 + duration / 2, duration / 4);
  logs.op(thread, "Collate", start + 300 + duration * 3 / 4, duration / 5 - 400);
}

consumer_truth simulate(const worker_loader& loader, planted_logs& logs, generator& random,
                        std::int64_t begin_ns) {
  consumer_truth truth;
  std::int64_t now = begin_ns;
  constexpr std::int64_t moment_ns = 1500;
  for (int epoch = 0; epoch < loader.epochs; ++epoch) {
    const auto n = static_cast<std::size_t>(loader.batches);
    const std::size_t at_once =
        static_cast<std::size_t>(loader.workers) * static_cast<std::size_t>(loader.prefetch);
    const int thread = loader.first_thread + (loader.new_threads ? epoch * loader.workers : 0);
    std::vector<std::int64_t> given(n, now + loader.spawn_ns);
    std::vector<std::int64_t> ready(n, INT64_MAX);
    std::vector<std::int64_t> worker_free(static_cast<std::size_t>(loader.workers), now);
    std::size_t preprocessing = 0;
    const auto make_until = [&](std::size_t end) {
      for (; preprocessing < std::min(end, n); ++preprocessing) {
        const auto w = preprocessing % worker_free.size();
        const std::int64_t start = std::max(given[preprocessing], worker_free[w]) + moment_ns;
        const std::int64_t duration = loader.make(random);
        ready[preprocessing] = worker_free[w] = start + duration;
        (loader.log_preprocessing ? loader.log_preprocessing : made_as_one)(
            logs, thread + static_cast<int>(w), static_cast<std::int64_t>(preprocessing), start,
            duration);
      }
    };
    make_until(at_once);
    std::set<std::pair<std::int64_t, std::size_t>> in_queue;  // finished batches in order of time
    std::vector<bool> aside(n);
    std::size_t queued = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (; queued < preprocessing; ++queued) in_queue.insert({ready[queued], queued});
      std::int64_t wait_end = now;
      if (!aside[i]) {
        for (bool got = false; !got;) {
          const auto [at, batch] = *in_queue.begin();
          in_queue.erase(in_queue.begin());
          wait_end = std::max(wait_end, at) + moment_ns;
          got = batch == i;
          if (!got) {
            aside[batch] = true;
            logs.arrived(loader.consumer, static_cast<std::int64_t>(batch), wait_end);
          }
        }
        logs.waited(loader.consumer, static_cast<std::int64_t>(i), now, wait_end - now);
        truth.waits_ns += wait_end - now;
      }
      const std::int64_t delivery = wait_end + moment_ns;
      if (epoch == 0 && i == 0) truth.first_hand_over_ns = delivery;
      truth.last_hand_over_ns = delivery;
      if (preprocessing < n) given[preprocessing] = delivery;
      make_until(preprocessing + 1);
      std::int64_t step = loader.step(random);
      if (loader.change_step) step = loader.change_step(static_cast<int>(i), step);
      now = delivery + step;
      truth.steps_ns += step;
      logs.used(loader.consumer, static_cast<std::int64_t>(i) + loader.consumed_number,
                loader.consumed_late ? now - moment_ns : delivery);
    }
    now += loader.pause_ns;
  }
  truth.end_ns = now;
  return truth;
}

}  // namespace lotus::tool_test
