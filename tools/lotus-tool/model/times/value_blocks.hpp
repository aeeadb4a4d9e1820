// Stores very many values in little memory, as sums of neighboring values.
#ifndef LOTUS_TOOL_MODEL_TIMES_VALUE_BLOCKS_HPP
#define LOTUS_TOOL_MODEL_TIMES_VALUE_BLOCKS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lotus::tool {

struct value_block {
  double sum = 0;
  double count = 0;
};

/// Stores values in their order: up to `few` values one by one; if there are more, as sums over
/// blocks of neighboring values, at most 2 * few. Not thread-safe.
class value_blocks {
 public:
  static constexpr std::size_t few = 8192;

  value_blocks() = default;
  value_blocks(const std::vector<std::int64_t>& values) {  // NOLINT(google-explicit-constructor)
    for (const std::int64_t v : values) add(v);
  }

  void add(std::int64_t value) { add(value_block{static_cast<double>(value), 1}); }
  /// Appends the values in `others` to those of this object.
  void add(const value_blocks& others) {
    for (const value_block& b : others.all_) {
      all_.push_back(b);
      if (all_.size() == 2 * few) halve();
    }
    count_ += others.count_;
    sum_ += others.sum_;
  }

  std::uint64_t count() const noexcept { return count_; }
  double mean() const noexcept { return sum_ / static_cast<double>(count_); }
  /// Returns at most `most` blocks of about equal size, in order.
  std::vector<value_block> blocks(std::size_t most) const;

 private:
  void add(const value_block& value) {
    ++count_;
    sum_ += value.sum;
    if (!all_.empty() && all_.back().count < size_) {
      all_.back().sum += value.sum;
      ++all_.back().count;
      return;
    }
    if (all_.size() == few) halve();
    all_.push_back(value);
  }
  void halve();

  std::vector<value_block> all_;
  double size_ = 1;  // number of values in a full block
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_TIMES_VALUE_BLOCKS_HPP
