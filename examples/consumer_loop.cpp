// A training loop with the two lines that record its waits for batches and its steps. With the
// argument "late", it shows a common mistake: it calls LOTUS_BATCH_CONSUMED only after the step.
#include <cmath>
#include <cstddef>
#include <deque>
#include <future>
#include <lotus/lotus.hpp>
#include <numeric>
#include <string_view>
#include <vector>

#include "next_step.hpp"

namespace {

using batch = std::vector<double>;
constexpr std::size_t batches = 24;

batch make(std::size_t i) {
  LOTUS_BATCH_PREPROCESSED(i);  // this may be on any thread
  LOTUS_SCOPE("Fill");
  batch b(100'000);
  std::iota(b.begin(), b.end(), static_cast<double>(i));
  return b;
}

/// Builds batches on its own threads, at most two batches ahead of the consumer.
class loader {
 public:
  loader() {
    ask();
    ask();
  }
  batch next() {
    batch b = coming_.front().get();
    coming_.pop_front();
    ask();
    return b;
  }

 private:
  void ask() {
    if (asked_ == batches) return;
    LOTUS_BATCH_QUEUED(asked_);
    coming_.push_back(std::async(std::launch::async, make, asked_++));
  }

  std::deque<std::future<batch>> coming_;
  std::size_t asked_ = 0;
};

double train(const batch& b) {
  LOTUS_SCOPE("Train");
  double loss = 0;
  for (const double value : b) loss += std::sqrt(value) + std::cbrt(value);
  return loss;
}

double consume(loader& loader) {
  double loss = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    lotus::batch_wait wait;
    const batch b = loader.next();
    wait.consumed(i);  // directly after the wait: the step lasts from here to the next wait
    loss += train(b);
  }
  return loss;
}

/// Shows a mistake: LOTUS_BATCH_CONSUMED comes after the step, so that the step would count as part
/// of the wait. lotus-tool prints a warning and assumes that the batch was received at the end of
/// the wait.
double consume_late(loader& loader) {
  double loss = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    const batch b = [&] {
      LOTUS_BATCH_WAIT(i);
      return loader.next();
    }();
    loss += train(b);
    LOTUS_BATCH_CONSUMED(i);
  }
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  if (!lotus::start("run/lotustrace_log")) return 1;
  const bool late = argc > 1 && std::string_view{argv[1]} == "late";
  loader loader;
  const double loss = late ? consume_late(loader) : consume(loader);
  print_next_step("run/lotustrace_log");
  return loss > 0 ? 0 : 1;
}
