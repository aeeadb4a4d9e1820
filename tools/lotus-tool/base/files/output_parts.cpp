#include "base/files/output_parts.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace lotus::tool {
namespace {

constexpr std::size_t divided_at = std::size_t{512} << 10U;
constexpr std::size_t part_bytes = divided_at + 4 * output_buffer::room_bytes;
/// The number of blocks of a part that may wait to be written. More blocks would take more memory
/// than the CPUs' caches.
constexpr std::size_t max_waiting = 1;

/// Writes the blocks of several parts in turn. Each thread writes the blocks of its own part.
/// Thread-safe; each part must be used by one thread only.
class output_parts {
 public:
  /// @param out  must outlive this object. Nothing else may be written to it until all parts have
  ///   ended.
  output_parts(output_file& out, std::size_t count) : out_(out), parts_(count) {}

  using block = std::vector<char>;

  /// Adds a block to a part. Waits while the part has too many blocks that are not written yet.
  /// Throws what stop() was given, and input_error if the output cannot be written.
  /// @param bytes  the number of bytes of the block that are to be written.
  /// @return a block to fill next, with its old contents.
  block push(std::size_t part, block&& full, std::size_t bytes);
  /// Writes the rest of a part and ends it. Each part must be ended, or stop() be called. Throws
  /// like push().
  void end(std::size_t part);
  /// Makes all other calls throw `failure`, also those that are waiting.
  void stop(std::exception_ptr failure);
  void rethrow_failure();

 private:
  struct full_block {
    block data;
    std::size_t bytes = 0;
  };
  struct one_part {
    std::deque<full_block> full;
    bool ended = false;
  };

  void skip_ended();
  void write_down_to(std::size_t waiting, std::size_t part, std::unique_lock<std::mutex>& lock);

  output_file& out_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<one_part> parts_;
  std::vector<block> free_;
  std::size_t turn_ = 0;  // the part whose block is written next
  std::exception_ptr failure_;
};

output_parts::block output_parts::push(std::size_t part, block&& full, std::size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  parts_[part].full.push_back({std::move(full), bytes});
  write_down_to(max_waiting, part, lock);
  block next;
  if (!free_.empty()) {
    next = std::move(free_.back());
    free_.pop_back();
  }
  return next;
}

void output_parts::end(std::size_t part) {
  std::unique_lock<std::mutex> lock(mutex_);
  write_down_to(0, part, lock);
  parts_[part].ended = true;
  skip_ended();
}

void output_parts::stop(std::exception_ptr failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_ == nullptr) failure_ = std::move(failure);
  changed_.notify_all();
}

void output_parts::rethrow_failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

/// If the part whose turn it is has ended, gives the turn to the next part that has not.
void output_parts::skip_ended() {
  for (std::size_t n = 0; n < parts_.size() && parts_[turn_].ended; ++n) {
    turn_ = (turn_ + 1) % parts_.size();
  }
  changed_.notify_all();
}

/// Writes the blocks of a part while it is the part's turn. Waits for further turns until at most
/// `waiting` blocks are left.
void output_parts::write_down_to(std::size_t waiting, std::size_t part,
                                 std::unique_lock<std::mutex>& lock) {
  std::deque<full_block>& full = parts_[part].full;
  while (!full.empty()) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (turn_ != part) {
      if (full.size() <= waiting) return;
      changed_.wait(lock, [&] { return turn_ == part || failure_ != nullptr; });
      continue;
    }
    lock.unlock();
    out_.write_block_now({full.front().data.data(), full.front().bytes});
    lock.lock();
    free_.push_back(std::move(full.front().data));
    full.pop_front();
    turn_ = (turn_ + 1) % parts_.size();
    skip_ended();
  }
}

/// One of several parts of an output.
class output_part final : public output_buffer {
 public:
  /// @param parts  must outlive this object.
  output_part(output_parts& parts, std::size_t number);

  /// Writes the rest and ends the part. Throws input_error if the output cannot be written.
  void finish();

 private:
  void make_room(std::size_t n) override;
  void divide() override;

  output_parts& parts_;
  std::size_t number_;
};

output_part::output_part(output_parts& parts, std::size_t number)
    : output_buffer(divided_at), parts_(parts), number_(number) {
  buffer_.resize(part_bytes);
}

void output_part::make_room(std::size_t n) {
  buffer_.resize(std::max(buffer_.size() * 2, used_ + n));
}

void output_part::divide() {
  buffer_ = parts_.push(number_, std::move(buffer_), used_);
  used_ = 0;
  if (buffer_.empty()) buffer_.resize(part_bytes);
}

void output_part::finish() {
  if (used_ > 0) divide();
  parts_.end(number_);
}

}  // namespace

bool form_in_parts(output_file& out, std::size_t count,
                   const std::function<void(std::size_t, output_buffer&)>& form) {
  output_parts parts(out, count);
  const auto form_one = [&](std::size_t number) {
    try {
      output_part part(parts, number);
      form(number, part);
      part.finish();
    } catch (...) {
      parts.stop(std::current_exception());
    }
  };
  // All parts progress together, so no thread may begin before all exist.
  std::promise<bool> decided;
  const std::shared_future<bool> all_exist = decided.get_future().share();
  std::vector<std::thread> others;
  try {
    for (std::size_t number = 1; number < count; ++number) {
      others.emplace_back([&form_one, all_exist, number] {
        if (all_exist.get()) form_one(number);
      });
    }
  } catch (const std::system_error&) {
    decided.set_value(false);
    for (std::thread& other : others) other.join();
    return false;
  }
  decided.set_value(true);
  form_one(0);
  for (std::thread& other : others) other.join();
  parts.rethrow_failure();
  return true;
}

}  // namespace lotus::tool
