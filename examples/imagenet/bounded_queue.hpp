// A queue between threads that makes the faster side wait.
#ifndef IMAGENET_BOUNDED_QUEUE_HPP
#define IMAGENET_BOUNDED_QUEUE_HPP

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace imagenet {

/// Thread safety: all functions, any number of threads at both ends.
template <class T>
class bounded_queue {
 public:
  explicit bounded_queue(std::size_t capacity) : capacity_{capacity} {}

  /// Waits while the queue is full. After close() the value is dropped.
  void push(T value) {
    std::unique_lock hold{lock_};
    not_full_.wait(hold, [&] { return values_.size() < capacity_ || closed_; });
    if (closed_) return;
    values_.push_back(std::move(value));
    not_empty_.notify_one();
  }

  /// Waits while the queue is empty. Nothing after close().
  std::optional<T> pop() {
    std::unique_lock hold{lock_};
    not_empty_.wait(hold, [&] { return !values_.empty() || closed_; });
    if (closed_) return std::nullopt;
    std::optional<T> value{std::move(values_.front())};
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

  /// Drops what is queued; nobody waits any more.
  void close() {
    const std::lock_guard hold{lock_};
    closed_ = true;
    not_full_.notify_all();
    not_empty_.notify_all();
  }

 private:
  std::size_t capacity_;
  std::mutex lock_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace imagenet

#endif  // IMAGENET_BOUNDED_QUEUE_HPP
