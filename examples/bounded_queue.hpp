// Provides a queue of limited size between threads, which makes the faster side wait for the slower
// side.
#ifndef EXAMPLES_BOUNDED_QUEUE_HPP
#define EXAMPLES_BOUNDED_QUEUE_HPP

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

/// A queue of at most `capacity` values. Any number of threads may push and pop.
template <class T>
class bounded_queue {
 public:
  explicit bounded_queue(std::size_t capacity) : capacity_{capacity} {}

  /// Appends a value. Waits while the queue is full. After finish() or close(), does nothing.
  void push(T value) {
    std::unique_lock hold{lock_};
    not_full_.wait(hold, [&] { return values_.size() < capacity_ || finished_; });
    if (finished_) return;
    values_.push_back(std::move(value));
    not_empty_.notify_one();
  }

  /// Removes and returns a value. Waits while the queue is empty. Returns nullopt after close(), or
  /// when the queue is empty after finish().
  std::optional<T> pop() {
    std::unique_lock hold{lock_};
    not_empty_.wait(hold, [&] { return !values_.empty() || finished_; });
    if (values_.empty()) return std::nullopt;
    std::optional<T> value{std::move(values_.front())};
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

  /// Declares that no more values follow, and wakes all waiting threads. Queued values can still be
  /// removed.
  void finish() {
    const std::lock_guard hold{lock_};
    end_waits();
  }

  /// Like finish(), but also drops the queued values.
  void close() {
    const std::lock_guard hold{lock_};
    values_.clear();
    end_waits();
  }

  std::size_t size() const {
    const std::lock_guard hold{lock_};
    return values_.size();
  }

 private:
  void end_waits() {
    finished_ = true;
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  std::size_t capacity_;
  mutable std::mutex lock_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> values_;
  bool finished_ = false;
};

#endif  // EXAMPLES_BOUNDED_QUEUE_HPP
