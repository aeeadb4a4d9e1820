// A program without markers, into which a test pastes those that the tool suggests.
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

constexpr int batches = 160;
std::atomic<int> next_batch{0};

[[gnu::noinline]] void burn(int ms) {
  const auto own_ms = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  };
  for (const long end = own_ms() + ms; own_ms() < end;) {
  }
}

class Queue {
 public:
  [[gnu::noinline]] int receive() {
    std::unique_lock<std::mutex> hold(mutex_);
    not_empty_.wait(hold, [this] { return !ready_.empty(); });
    const int batch = ready_.front();
    ready_.pop();
    return batch;
  }
  [[gnu::noinline]] void put(int batch) {
    const std::lock_guard<std::mutex> hold(mutex_);
    ready_.push(batch);
    not_empty_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::queue<int> ready_;
};

[[gnu::noinline]] void decode(int) {
  burn(12);
}

[[gnu::noinline]] void train(int) {
  burn(2);
}

[[gnu::noinline]] void worker_loop(Queue& queue) {
  for (int i = next_batch++; i < batches; i = next_batch++) {
    decode(i);
    queue.put(i);
  }
}

[[gnu::noinline]] void train_all(Queue& queue) {
  for (int n = 0; n < batches; ++n) {
    const int i = queue.receive();
    train(i);
  }
}

int main() {
  Queue queue;
  std::thread first(worker_loop, std::ref(queue));
  std::thread second(worker_loop, std::ref(queue));
  train_all(queue);
  first.join();
  second.join();
}
