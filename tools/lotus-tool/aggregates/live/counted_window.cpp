#include "aggregates/live/counted_window.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <lotus/aggregates/aggregate_copies.hpp>
#include <memory>

#include "log/operation_names.hpp"

namespace lotus::tool {
namespace {

using buckets_t = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

std::uint64_t less(std::uint64_t from, std::uint64_t what) noexcept {
  return from > what ? from - what : 0;
}

/// Merges two sorted lists of buckets. Calls `join(count in a, count in b)` for the count of each
/// bucket of the result; a bucket that a list does not contain has the count 0 there.
template <class Join>
buckets_t joined(const buckets_t& a, const buckets_t& b, Join join) {
  buckets_t all;
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size() || k < b.size()) {
    const bool of_a = k == b.size() || (i < a.size() && a[i].first <= b[k].first);
    const bool of_b = i == a.size() || (k < b.size() && b[k].first <= a[i].first);
    const std::uint32_t bucket = of_a ? a[i].first : b[k].first;
    const std::uint64_t count = join(of_a ? a[i].second : 0, of_b ? b[k].second : 0);
    if (count > 0) all.emplace_back(bucket, count);
    i += of_a ? 1 : 0;
    k += of_b ? 1 : 0;
  }
  return all;
}

}  // namespace

void counted_calls::add(const counted_calls& other) {
  count += other.count;
  total_ticks += other.total_ticks;
  self_ticks += other.self_ticks;
  buckets = joined(buckets, other.buckets, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

counted_calls counted_calls::since(const counted_calls& before) const {
  return {less(count, before.count), less(total_ticks, before.total_ticks),
          less(self_ticks, before.self_ticks), joined(buckets, before.buckets, less)};
}

void counted_window::add(std::int64_t began_ns, std::int64_t now_ns, counted_by_name sums) {
  // If the recording began less than window_ns_ ago, add a reading for the time when it began
  // (`began_ns`): all sums were 0 then.
  if (counts_at_.empty() && began_ns <= now_ns && began_ns >= now_ns - window_ns_) {
    counts_at_.push_back({began_ns, began_ns, {}});
  }
  if (!counts_at_.empty() && counts_at_.back().sums == sums) {
    counts_at_.back().until_ns = now_ns;
    return;
  }
  const std::size_t n = counts_at_.size();
  // To limit memory, replace the last stored reading by the new one if the last stored reading is
  // less than an eighth of the window later than the reading before it.
  const bool instead = n >= 2 && counts_at_[n - 1].at_ns - counts_at_[n - 2].at_ns < window_ns_ / 8;
  if (instead) counts_at_.pop_back();
  counts_at_.push_back({now_ns, now_ns, std::move(sums)});
  const std::int64_t begin_ns = now_ns - window_ns_;
  while (counts_at_.size() > 2 && counts_at_[1].at_ns <= begin_ns) counts_at_.pop_front();
}

std::optional<counted_window::interval> counted_window::since(std::int64_t begin_ns) const {
  if (counts_at_.size() < 2) return std::nullopt;
  std::size_t first = 0;
  while (first + 1 < counts_at_.size() && counts_at_[first + 1].at_ns <= begin_ns) ++first;
  const counts_at& from = counts_at_[first];
  const counts_at& to = counts_at_.back();
  interval found;
  const std::int64_t from_ns = std::max(from.at_ns, std::min(from.until_ns, begin_ns));
  found.ns = std::max<std::int64_t>(to.until_ns - from_ns, 1);
  for (const auto& [name, calls] : to.sums) {
    const auto before = from.sums.find(name);
    const counted_calls came = before == from.sums.end() ? calls : calls.since(before->second);
    if (came.count > 0) found.calls.emplace(name, came);
  }
  return found;
}

namespace {

using lotus::detail::aggregate_chain;
using lotus::detail::aggregate_state;
using lotus::detail::aggregates_block;
using lotus::detail::whole_aggregate;

// Limits for reading the blocks of aggregates in a ring file, which happens every second.
// max_bytes, the limit for all blocks together, is the size of about 4,000 usual blocks.
constexpr std::uint64_t max_block_bytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20U;

counted_calls calls_of(const whole_aggregate& of) {
  counted_calls calls;
  calls.count = of.count;
  calls.total_ticks = of.total_ticks;
  calls.self_ticks = of.self_ticks;
  std::uint64_t remaining = of.count;
  for (std::uint32_t b = 0; remaining > 0 && b < std::size(of.counts); ++b) {
    if (of.counts[b] == 0) continue;
    remaining -= of.counts[b];
    calls.buckets.emplace_back(b, of.counts[b]);
  }
  return calls;
}

}  // namespace

counted_by_name read_counts(const detail::dead_ring_file& file, const ring_names& names) {
  lotus::detail::aggregate_copies copies;
  std::uint64_t all_bytes = 0;
  bool read = true;
  file.for_each_aggregates_block([&](std::uint64_t at, std::uint64_t bytes) {
    if (bytes < sizeof(aggregates_block) || bytes > max_block_bytes ||
        bytes > max_bytes - all_bytes || !read) {
      return;
    }
    all_bytes += bytes;
    aggregates_block* const block = copies.add(bytes);
    read = block != nullptr &&
           lotus::detail::read_at(file.descriptor(), static_cast<void*>(block), bytes, at);
    if (read) block->header.bytes = bytes;
  });
  if (!read || all_bytes == 0) return {};
  copies.finish();
  counted_by_name all;
  const auto room = std::make_unique<whole_aggregate>();
  copies.for_each_chain(aggregate_state::moving, [&](aggregate_chain& chain) {
    chain.for_each(*room, [&](const whole_aggregate& one) {
      const std::string folder = names.folder(one.loader());
      const std::string_view start = names.line_start(one.name());
      all[{folder, decode_name(start.substr(0, start.size() - 1))}].add(calls_of(one));
    });
  });
  return all;
}

}  // namespace lotus::tool
