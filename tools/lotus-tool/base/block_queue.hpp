// Passes blocks of data from one thread to another.
#ifndef LOTUS_TOOL_BASE_BLOCK_QUEUE_HPP
#define LOTUS_TOOL_BASE_BLOCK_QUEUE_HPP

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace lotus::tool {

/// A queue of a few blocks between one thread that fills blocks and one that uses them. Blocks that
/// were used can be filled again, so that their memory is allocated only once. Because a few blocks
/// may wait in the queue, a short delay of one thread does not stop the other. Thread-safe.
template <class Block>
class block_queue {
 public:
  /// @param most  the number of blocks that may wait, including the one in use.
  explicit block_queue(std::size_t most) : most_(most) {}

  /// Adds a block at the end. Waits while the queue is full. Returns a block to fill next, with its
  /// old contents. After fail(), rethrows its exception.
  Block push(Block&& block) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return full_.size() < most_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    full_.push_back(std::move(block));
    Block next;
    if (!free_.empty()) {
      next = std::move(free_.back());
      free_.pop_back();
    }
    lock.unlock();
    changed_.notify_all();
    return next;
  }

  /// Ends the queue: next() returns nullptr after the last block.
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  /// Returns the first block, which stays in the queue until done() is called. Waits while the
  /// queue is empty. Returns nullptr at the end. After fail(), rethrows its exception.
  Block* next() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !full_.empty() || closed_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    return full_.empty() ? nullptr : &full_.front();
  }
  /// Removes the block that next() returned.
  void done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(full_.front()));
    full_.pop_front();
    changed_.notify_all();
  }

  /// Makes all later calls of push() and next() throw `failure`, and also the calls that are
  /// waiting. Blocks that are still in the queue may be lost.
  void fail(std::exception_ptr failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = std::move(failure);
    changed_.notify_all();
  }
  void rethrow_failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::size_t most_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Block> full_;
  std::vector<Block> free_;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_BLOCK_QUEUE_HPP
