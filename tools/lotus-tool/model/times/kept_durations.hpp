// Stores durations without keeping all of them in memory.
#ifndef LOTUS_TOOL_MODEL_TIMES_KEPT_DURATIONS_HPP
#define LOTUS_TOOL_MODEL_TIMES_KEPT_DURATIONS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/statistics/distribution.hpp"

namespace lotus::tool {

/// Assigns durations to buckets that are narrow relative to the duration. Each value below 256 ns
/// has its own bucket. From 256 ns on, there are 128 buckets for each power of two.
struct narrow_bucket {
  static constexpr unsigned bits = 7;

  static std::size_t of(std::int64_t ns) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
    if (value < (std::uint64_t{2} << bits)) return value;
    const unsigned power = 63U - static_cast<unsigned>(__builtin_clzll(value)) - bits;
    return (std::size_t{power} << bits) + (value >> power);
  }
  /// Returns how many low bits of a duration can change without moving the duration from `bucket`
  /// to another bucket. The bucket is 2 to the power of this number ns wide.
  static unsigned width_bits(std::size_t bucket) noexcept {
    return bucket < (std::size_t{2} << bits) ? 0 : static_cast<unsigned>((bucket >> bits) - 1);
  }
  static std::int64_t lowest(std::size_t bucket) noexcept {
    const unsigned power = width_bits(bucket);
    return static_cast<std::int64_t>((bucket - (std::size_t{power} << bits)) << power);
  }
};

/// Stores up to `few` durations one by one, in the order in which they were added. If there are
/// more, stores only how many are in each bucket, and exact sums. Not thread-safe.
class kept_durations {
 public:
  static constexpr std::size_t few = 4096;

  void add(std::int64_t ns) {
    if (more_ == nullptr) {
      if (only_ == none) {
        only_ = ns;
        return;
      }
      more_ = std::make_unique<several>();
      more_->values.push_back(only_);
    }
    if (!more_->buckets.empty()) {
      count(ns);
    } else {
      more_->values.push_back(ns);
      if (more_->values.size() > few) count_all();
    }
  }
  /// Appends the durations in `others` to those of this object.
  void add(kept_durations&& others);

  std::uint64_t size() const noexcept {
    if (more_ == nullptr) return only_ == none ? 0 : 1;
    return are_all() ? more_->values.size() : more_->count;
  }
  /// Returns whether values() contains all durations; otherwise use buckets().
  bool are_all() const noexcept { return more_ == nullptr || more_->buckets.empty(); }
  std::vector<std::int64_t> values() const {
    if (more_ != nullptr) return more_->values;
    return only_ == none ? std::vector<std::int64_t>() : std::vector<std::int64_t>{only_};
  }
  const std::vector<std::uint64_t>& buckets() const noexcept { return more_->buckets; }

  // The following functions are only valid if are_all() is false.
  std::uint64_t below_100us() const noexcept { return more_->below_100us; }
  std::uint64_t below_10ms() const noexcept { return more_->below_10ms; }
  /// Returns the distribution of the durations, with exact mean, standard deviation, minimum,
  /// maximum and total. Its percentiles are 0, because they cannot be computed from sums.
  distribution sums() const;
  /// Returns a number that the median is not below, by at most 1/128.
  std::int64_t least_median_ns() const;

 private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

  struct several {
    std::vector<std::int64_t> values;  // all durations; empty if they are counted in buckets
    // Number of durations in each narrow_bucket; empty if they are in `values`.
    std::vector<std::uint64_t> buckets;
    std::uint64_t count = 0;
    std::uint64_t below_100us = 0;
    std::uint64_t below_10ms = 0;
    std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_ns = std::numeric_limits<std::int64_t>::min();
    long double squares = 0;     // sum of squared differences from `near_ns`
    long double difference = 0;  // sum of differences from `near_ns`
    std::int64_t near_ns = 0;  // a typical duration; differences from it keep precision in the sums
  };

  void count(std::int64_t ns) {
    several& c = *more_;
    const std::size_t bucket = narrow_bucket::of(ns);
    if (bucket >= c.buckets.size()) c.buckets.resize(bucket + 1);
    ++c.buckets[bucket];
    ++c.count;
    c.below_100us += static_cast<std::uint64_t>(ns < 100'000);
    c.below_10ms += static_cast<std::uint64_t>(ns < 10'000'000);
    c.min_ns = std::min(c.min_ns, ns);
    c.max_ns = std::max(c.max_ns, ns);
    const auto off = static_cast<long double>(ns - c.near_ns);
    c.difference += off;
    c.squares += off * off;
  }
  void count_all();

  // There may be very many names with one call each, so a single duration takes only 16 bytes.
  std::int64_t only_ = none;  // the first duration; `none` if there is none
  std::unique_ptr<several> more_;
};

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

#endif  // LOTUS_TOOL_MODEL_TIMES_KEPT_DURATIONS_HPP
