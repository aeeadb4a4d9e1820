#include "model/times/percentile_search.hpp"

namespace lotus::tool {
namespace {

// Each pass over the durations splits a range into at most 2^13 parts. This resolves ranges of up
// to 8 us (the buckets of durations up to 2 ms) to 1 ns. The counters of a range take 64 KiB of
// memory, and an operation needs at most ten ranges.
constexpr unsigned max_parts_bits = 13;

double position_of(double share, std::uint64_t count) {
  return share * static_cast<double>(count - 1);
}

}  // namespace

percentile_search::percentile_search(const kept_durations& counted,
                                     const std::vector<double>& shares)
    : count_(counted.size()) {
  for (const double share : shares) {
    const auto below = static_cast<std::uint64_t>(position_of(share, count_));
    look_for(below, counted);
    look_for(std::min(below + 1, count_ - 1), counted);
  }
  std::sort(ranks_.begin(), ranks_.end(),
            [](const sought_rank& a, const sought_rank& b) { return a.rank < b.rank; });
  make_ranges();
}

void percentile_search::look_for(std::uint64_t rank, const kept_durations& counted) {
  std::uint64_t before = 0;
  std::size_t bucket = 0;
  while (before + counted.buckets()[bucket] <= rank) before += counted.buckets()[bucket++];
  ranks_.push_back(
      {rank, narrow_bucket::lowest(bucket), before, narrow_bucket::width_bits(bucket)});
}

void percentile_search::make_ranges() {
  ranges_.clear();
  for (const sought_rank& p : ranks_) {
    if (p.width_bits == 0 || (!ranges_.empty() && ranges_.back().lowest == p.lowest)) continue;
    const unsigned parts_bits = std::min(p.width_bits, max_parts_bits);
    range& r = ranges_.emplace_back();
    r.lowest = p.lowest;
    r.before = p.before;
    r.width_bits = p.width_bits;
    r.part_bits = p.width_bits - parts_bits;
    r.counts = std::make_unique<std::atomic<std::uint64_t>[]>(  // NOLINT(modernize-avoid-c-arrays)
        std::size_t{1} << parts_bits);
  }
}

void percentile_search::next() {
  for (sought_rank& p : ranks_) {
    const auto r = std::find_if(ranges_.begin(), ranges_.end(), [&p](const range& of) {
      return of.lowest == p.lowest && of.width_bits == p.width_bits;
    });
    if (r == ranges_.end()) continue;
    const std::size_t parts = std::size_t{1} << (r->width_bits - r->part_bits);
    std::size_t part = 0;
    while (part + 1 < parts && p.before + r->counts[part] <= p.rank) p.before += r->counts[part++];
    p.lowest += static_cast<std::int64_t>(part << r->part_bits);
    p.width_bits = r->part_bits;
  }
  make_ranges();
}

double percentile_search::at(double share) const {
  const double position = position_of(share, count_);
  const auto below = static_cast<std::uint64_t>(position);
  const auto value = [this](std::uint64_t rank) {
    const auto at = std::find_if(ranks_.begin(), ranks_.end(),
                                 [rank](const sought_rank& p) { return p.rank == rank; });
    return static_cast<double>(at->lowest);
  };
  const double low = value(below);
  const double high = value(std::min(below + 1, count_ - 1));
  return low + (position - static_cast<double>(below)) * (high - low);
}

const std::vector<double>& described_shares() {
  static const std::vector<double> shares{0.25, 0.50, 0.75, 0.90, 0.99};
  return shares;
}

distribution describe(const kept_durations& counted, const percentile_search& search) {
  distribution d = counted.sums();
  d.p25_ns = search.at(0.25);
  d.p50_ns = search.at(0.50);
  d.p75_ns = search.at(0.75);
  d.p90_ns = search.at(0.90);
  d.p99_ns = search.at(0.99);
  return d;
}

}  // namespace lotus::tool
