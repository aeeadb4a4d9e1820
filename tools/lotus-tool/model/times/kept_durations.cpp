#include "model/times/kept_durations.hpp"

#include <cmath>
#include <utility>

namespace lotus::tool {

void kept_durations::count_all() {
  std::vector<std::int64_t> values;
  values.swap(more_->values);
  more_->near_ns = values.front();
  for (const std::int64_t ns : values) count(ns);
}

void kept_durations::add(kept_durations&& others) {
  if (others.are_all()) {
    if (size() == 0) {
      *this = std::move(others);
      return;
    }
    for (const std::int64_t ns : others.values()) add(ns);
    others = {};
    return;
  }
  if (are_all()) {
    // Here `others` stores only how many durations are in each bucket, while this object still
    // stores its durations one by one. Counts have no order, so it makes no difference that this
    // object's durations are counted after those of `others`.
    const std::vector<std::int64_t> own = values();
    *this = std::move(others);
    for (const std::int64_t ns : own) count(ns);
    return;
  }
  several& to = *more_;
  const several& from = *others.more_;
  to.buckets.resize(std::max(to.buckets.size(), from.buckets.size()));
  for (std::size_t i = 0; i < from.buckets.size(); ++i) to.buckets[i] += from.buckets[i];
  to.count += from.count;
  to.below_100us += from.below_100us;
  to.below_10ms += from.below_10ms;
  to.min_ns = std::min(to.min_ns, from.min_ns);
  to.max_ns = std::max(to.max_ns, from.max_ns);
  const auto shift_ns = static_cast<long double>(from.near_ns - to.near_ns);
  const auto count = static_cast<long double>(from.count);
  to.squares += from.squares + 2 * shift_ns * from.difference + count * shift_ns * shift_ns;
  to.difference += from.difference + count * shift_ns;
  others = {};
}

distribution kept_durations::sums() const {
  const several& c = *more_;
  distribution d;
  d.count = c.count;
  const auto n = static_cast<long double>(c.count);
  const long double total = static_cast<long double>(c.near_ns) * n + c.difference;
  constexpr auto limit_ns = std::numeric_limits<std::int64_t>::max();
  d.total_ns = total >= static_cast<long double>(limit_ns) ? limit_ns : std::llround(total);
  d.mean_ns = static_cast<double>(total / n);
  const long double off = c.difference / n;
  d.std_ns = std::sqrt(static_cast<double>(std::max(0.0L, c.squares / n - off * off)));
  d.min_ns = c.min_ns;
  d.max_ns = c.max_ns;
  return d;
}

std::int64_t kept_durations::least_median_ns() const {
  std::uint64_t before = 0;
  std::size_t bucket = 0;
  while (2 * (before + buckets()[bucket]) < size()) before += buckets()[bucket++];
  return narrow_bucket::lowest(bucket);
}

std::vector<value_block> value_blocks::blocks(std::size_t most) const {
  const std::size_t n = std::min<std::size_t>(count_, most);
  std::vector<value_block> found;
  double before = 0;  // number of values in the blocks before the current one
  for (const value_block& b : all_) {
    // Divide all values evenly among n blocks: block i ends after count * (i + 1) / n values.
    const std::size_t i = found.empty() ? 0 : found.size() - 1;
    const std::uint64_t wanted = count_ * (i + 1) / n;
    const auto end = static_cast<double>(wanted);
    if (found.empty() || before >= end) found.emplace_back();
    found.back().sum += b.sum;
    found.back().count += b.count;
    before += b.count;
  }
  return found;
}

void value_blocks::halve() {
  for (std::size_t i = 0; i + 1 < all_.size(); i += 2) {
    all_[i / 2] = {all_[i].sum + all_[i + 1].sum, all_[i].count + all_[i + 1].count};
  }
  all_.resize(all_.size() / 2);
  size_ *= 2;
}

}  // namespace lotus::tool
