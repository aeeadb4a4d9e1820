// A slow data loader with the markers that lotus-tool needs. Worker threads build batches, and the
// main thread consumes them. Usage: quick_start [WORKERS]
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <lotus/lotus.hpp>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using tensor = std::vector<double>;  // a batch

tensor make_batch(std::size_t i) {
  LOTUS_BATCH_PREPROCESSED(i);  // 1. A worker builds batch i until the end of this block.
  tensor b(50'000);
  for (int sample = 0; sample < 4; ++sample) {
    {
      LOTUS_SCOPE("Read");  // 2. One operation, until the end of this block.
      std::this_thread::sleep_for(2ms);
    }
    LOTUS_SCOPE("Decode");
    for (double& x : b) x = 0.5 * x + sample;
  }
  return b;
}

/// Builds batches in worker threads, at most two per worker ahead of the consumer.
class loader {
 public:
  loader(std::size_t workers, std::size_t batches) : prefetch_{2 * workers}, batches_{batches} {
    for (std::size_t w = 0; w < workers; ++w) threads_.emplace_back([this] { work(); });
  }
  ~loader() {
    for (std::thread& t : threads_) t.join();
  }

  /// Waits until batch i is built.
  tensor get(std::size_t i) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return ready_.count(i) > 0; });
    tensor b = std::move(ready_.extract(i).mapped());
    received_ = i + 1;
    changed_.notify_all();
    return b;
  }

 private:
  void work() {
    std::unique_lock lock{mutex_};
    while (next_ < batches_) {
      if (next_ >= received_ + prefetch_) {
        changed_.wait(lock);
        continue;
      }
      const std::size_t i = next_++;
      lock.unlock();
      tensor b = make_batch(i);
      lock.lock();
      ready_.emplace(i, std::move(b));
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, tensor> ready_;
  std::size_t next_ = 0;
  std::size_t received_ = 0;
  std::size_t prefetch_;
  std::size_t batches_;
  std::vector<std::thread> threads_;
};

int main(int argc, char** argv) {
  const std::size_t workers = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  constexpr std::size_t batches = 200;
  loader loader{workers, batches};
  for (std::size_t i = 0; i < batches; ++i) {
    lotus::batch_wait wait;  // 3. The consumer waits ...
    const tensor b = loader.get(i);
    wait.consumed(i);                  // 4. ... until here, where its step on batch i begins.
    std::this_thread::sleep_for(3ms);  // The step, such as train(b).
  }
}
