// Loaders that are slow because of how their consumer asks for batches.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lotus/lotus.hpp"
#include "planted_causes.hpp"
#include "planted_loader.hpp"

namespace planted {
namespace {

/// Numbers of batches that the consumer has asked for, and of those that are ready.
class requests {
 public:
  /// @param room  how many batches may be ready; a worker waits before it adds more.
  /// @param look_again_ms  0: the consumer is notified; else it looks again after this time.
  explicit requests(std::size_t room = 1000, double look_again_ms = 0)
      : room_(room), look_again_ms_(look_again_ms) {}

  void ask(int i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_.push_back(i);
    changed_.notify_all();
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  std::optional<int> take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !asked_.empty(); });
    if (asked_.empty()) return std::nullopt;
    const int i = asked_.front();
    asked_.pop_front();
    return i;
  }

  void add(int i) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return ready_.size() < room_; });
    ready_.push_back(i);
    if (look_again_ms_ <= 0) is_ready_.notify_one();
  }

  int receive() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (ready_.empty()) {
      if (look_again_ms_ <= 0) {
        is_ready_.wait(lock);
      } else {
        is_ready_.wait_for(lock, std::chrono::duration<double, std::milli>(look_again_ms_));
      }
    }
    const int i = ready_.front();
    ready_.pop_front();
    changed_.notify_all();
    return i;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable is_ready_;
  std::deque<int> asked_;
  std::deque<int> ready_;
  std::size_t room_;
  double look_again_ms_;
  bool closed_ = false;
};

std::vector<std::thread> workers_of(requests& from, int count,
                                    const std::function<void(int)>& make) {
  std::vector<std::thread> workers;
  for (int w = 0; w < count; ++w) {
    workers.emplace_back([&from, make] {
      while (const std::optional<int> i = from.take()) {
        {
          LOTUS_BATCH_PREPROCESSED(static_cast<unsigned>(*i));
          make(*i);
        }
        from.add(*i);
      }
    });
  }
  return workers;
}

int receive(requests& from) {
  lotus::batch_wait wait;
  const int i = from.receive();
  wait.consumed(static_cast<unsigned>(i));
  return i;
}

/// Receives batches in any order, and asks for `window` more when it used as many, or for one more
/// whenever it received one.
void run_windows(int window, int workers, double make_ms, double train_ms) {
  const double slow_ms = make_ms / window + train_ms;
  const int n = std::max(8, batches_of(slow_ms) / window) * window;
  requests all;
  std::vector<std::thread> threads =
      workers_of(all, workers, [=](int) { step("Load", [=] { nap(make_ms); }); });
  int next = 0;
  const auto ask = [&](int more) {
    for (; more > 0 && next < n; --more) all.ask(next++);
  };
  ask(window);
  for (int k = 1; k <= n; ++k) {
    receive(all);
    if (!slow) ask(1);
    train(train_ms);
    if (slow && k % window == 0) ask(window);
  }
  all.close();
  for (std::thread& t : threads) t.join();
}

/// The parts of each batch are built by short threads.
void run_parts(int parts, double part_ms, double train_ms) {
  const std::size_t ahead = slow ? 1 : 3;
  const int n = std::max(30, batches_of(slow ? part_ms + train_ms : train_ms + 1));
  std::deque<std::vector<std::future<void>>> asked;
  for (int i = 0, next = 0; i < n; ++i) {
    for (; next < n && asked.size() < ahead; ++next) {
      asked.emplace_back();
      for (int part = 0; part < parts; ++part) {
        asked.back().push_back(std::async(std::launch::async, [next, part_ms] {
          const lotus::stage marker("Decode", static_cast<unsigned>(next));
          nap(part_ms);
        }));
      }
    }
    {
      lotus::batch_wait wait;
      for (std::future<void>& part : asked.front()) part.get();
      wait.consumed(static_cast<unsigned>(i));
    }
    asked.pop_front();
    train(train_ms);
  }
}

}  // namespace

const cause_map& asking_causes() {
  static const cause_map all{{"timed-wait",
                              [] {
                                const int n = std::max(200, batches_of(slow ? 5 : 2));
                                requests queue(3, slow ? 25 : 0);
                                for (int i = 0; i < n; ++i) queue.ask(i);
                                queue.close();
                                std::vector<std::thread> threads = workers_of(queue, 3, [](int i) {
                                  step("Parse", [i] { nap(5 + i % 3); });
                                });
                                for (int i = 0; i < n; ++i) {
                                  receive(queue);
                                  train(1);
                                }
                                for (std::thread& t : threads) t.join();
                              }},
                             {"used-windows", [] { run_windows(8, 4, 9, 3); }},
                             {"used-windows-2", [] { run_windows(5, 2, 8, 5); }},
                             {"asked-parts", [] { run_parts(6, 7, 4); }},
                             {"asked-parts-2", [] { run_parts(3, 12, 6); }}};
  return all;
}

}  // namespace planted
