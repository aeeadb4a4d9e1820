// Training and validation in one process, with two loaders that both number their batches from 0.
// LOTUS_LOADER separates the records of the loaders: lotus-tool shows "val" as a separate run, in
// run/val.
#include <cmath>
#include <cstddef>
#include <lotus/lotus.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bounded_queue.hpp"
#include "next_step.hpp"

namespace {

struct batch {
  std::size_t number = 0;
  std::vector<double> values;
};

/// Builds batches on its own two threads.
class loader {
 public:
  /// @param name  name of the loader; empty for the default loader.
  loader(std::string name, std::size_t batches) : name_{std::move(name)} {
    for (std::size_t worker = 0; worker < 2; ++worker) {
      workers_.emplace_back([=] { work(worker, batches); });
    }
  }
  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;
  ~loader() {
    made_.close();
    for (std::thread& worker : workers_) worker.join();
  }

  std::string_view name() const { return name_; }
  batch next() { return made_.pop().value(); }

 private:
  void work(std::size_t first, std::size_t batches) {
    LOTUS_LOADER(name_);  // applies to all records of this thread
    for (std::size_t i = first; i < batches; i += 2) {
      made_.push({i, make(i)});
    }
  }

  static std::vector<double> make(std::size_t i) {
    LOTUS_BATCH_PREPROCESSED(i);
    LOTUS_SCOPE("Load");
    std::vector<double> values(100'000);
    for (std::size_t at = 0; at < values.size(); ++at)
      values[at] = std::sin(static_cast<double>(at));
    return values;
  }

  std::string name_;
  bounded_queue<batch> made_{4};
  std::vector<std::thread> workers_;
};

/// Receives all batches of one epoch, in any order.
template <class Step>
void run_epoch(loader& loader, std::size_t batches, Step step) {
  LOTUS_LOADER(loader.name());  // assigns the consumer's records to this loader
  for (std::size_t i = 0; i < batches; ++i) {
    lotus::batch_wait wait;
    const batch b = loader.next();
    wait.consumed(b.number);
    step(b);
  }
}

}  // namespace

int main() {
  if (!lotus::start("run/lotustrace_log")) return 1;
  double weight = 0;
  double error = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    loader training{"", 20};
    run_epoch(training, 20, [&](const batch& b) {
      for (const double value : b.values) weight += 1e-6 * value;
    });
    loader validation{"val", 5};
    run_epoch(validation, 5, [&](const batch& b) {
      for (const double value : b.values) error += std::abs(value - weight);
    });
  }
  print_next_step("run/lotustrace_log");
  return error > 0 ? 0 : 1;
}
