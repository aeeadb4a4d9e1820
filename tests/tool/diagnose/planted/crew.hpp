// Provides threads for a stage of a test program, and the bounded queues between stages.
#ifndef LOTUS_TESTS_CREW_HPP
#define LOTUS_TESTS_CREW_HPP

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lotus::tool_test {

/// A bounded queue of numbers. All functions are thread-safe.
class channel {
 public:
  explicit channel(std::size_t bound) : bound_{bound} {}

  /// Appends a number; waits while the queue is full.
  void put(int number) {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return numbers_.size() < bound_; });
    numbers_.push_back(number);
    changed_.notify_all();
  }
  /// Marks the end: no more numbers follow.
  void close() {
    const std::lock_guard guard{mutex_};
    closed_ = true;
    changed_.notify_all();
  }
  /// Waits for a number, removes it from the queue and returns it. Returns nullopt if the queue is
  /// empty and closed.
  std::optional<int> take() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return closed_ || !numbers_.empty(); });
    if (numbers_.empty()) return std::nullopt;
    const int number = numbers_.front();
    numbers_.pop_front();
    changed_.notify_all();
    return number;
  }

 private:
  const std::size_t bound_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> numbers_;
  bool closed_ = false;
};

/// Threads that call each(number) for all numbers that `next` returns, and put each number into the
/// queue `to`. The last thread to end closes the queue.
class crew {
 public:
  /// @param next  must return each number once, and then nullopt.
  crew(int threads, const std::function<std::optional<int>()>& next, channel& to,
       const std::function<void(int)>& each)
      : left_{threads} {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, next, &to, each] {
        while (const std::optional<int> i = next()) {
          each(*i);
          to.put(*i);
        }
        if (--left_ == 0) to.close();
      });
    }
  }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<int> left_;
  std::vector<std::thread> threads_;
};

/// Returns a function that returns each number from 0 to `below` - 1 once.
inline std::function<std::optional<int>()> numbers(int below) {
  return [below, next = std::make_shared<std::atomic<int>>(0)] {
    const int i = (*next)++;
    return i < below ? std::optional{i} : std::nullopt;
  };
}

/// Returns a function that takes numbers out of `from`, into which another crew puts them.
inline std::function<std::optional<int>()> out_of(channel& from) {
  return [&from] { return from.take(); };
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_CREW_HPP
