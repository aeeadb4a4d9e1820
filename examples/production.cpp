// A training program that always records, with the settings of docs/guides/production.md. Its
// simulated storage hangs once, which makes the library take snapshots of the run;
// examples/production/operate.sh shows what an operator does then. Usage: production [BATCHES]
// [HANG_MS]
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <lotus/lotus.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "next_step.hpp"

namespace {

using namespace std::chrono_literals;

struct batch {
  std::size_t number;
  std::vector<float> values;
};

class storage {
 public:
  storage(std::size_t hangs_at, std::chrono::milliseconds hang)
      : hangs_at_{hangs_at}, hang_{hang} {}

  void read(std::size_t i) const {
    LOTUS_SCOPE("Read");
    std::this_thread::sleep_for(i == hangs_at_ ? hang_ : 3ms);
  }

 private:
  std::size_t hangs_at_;
  std::chrono::milliseconds hang_;
};

batch build(std::size_t i, const storage& from) {
  LOTUS_BATCH_PREPROCESSED(i);
  from.read(i);
  LOTUS_SCOPE("Decode");
  batch b{i, std::vector<float>(20'000)};
  float value = 0;
  for (float& v : b.values) v = value = 0.5F * value + 1;
  return b;
}

/// The settings of docs/guides/production.md, with lower limits, so that a short run reaches them.
lotus::options settings() {
  lotus::options o;
  o.log_file = "run/lotustrace_log";
  o.keep_bytes = 16'000'000;
  o.when_full = lotus::full_ring::drop;
  o.snapshot_when_wait_ms = 500;
  o.snapshot_signal = SIGUSR2;
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t batches = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1'500;
  const std::chrono::milliseconds hang{argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 2'500};
  if (!lotus::start(settings())) return 1;
  const storage from{150, hang};
  bounded_queue<batch> ready{4};
  std::thread worker{[&] {
    for (std::size_t i = 0; i < batches; ++i) ready.push(build(i, from));
    ready.finish();
  }};
  std::size_t trained = 0;
  for (;;) {
    lotus::batch_wait wait;
    const std::optional<batch> b = ready.pop();
    if (!b) break;
    wait.consumed(b->number);
    std::this_thread::sleep_for(2ms);  // the training step
    ++trained;
  }
  worker.join();
  print_next_step("run/lotustrace_log");
  return trained == batches ? 0 : 1;
}
