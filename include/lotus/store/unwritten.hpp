// What the logs did not take of a thread's records when nobody will drain it again.
#ifndef LOTUS_STORE_UNWRITTEN_HPP
#define LOTUS_STORE_UNWRITTEN_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/backlog.hpp"
#include "lotus/store/ring_file.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What the logs did not take.
struct unwritten_records {
  std::uint64_t recoverable = 0;  ///< it stands in the ring file
  std::uint64_t lost = 0;
};

/// What is in memory only goes into the ring file, as far as that can grow, and is given up else.
/// Caller holds the guard of `p` and the ring file's lock.
inline unwritten_records leave_in_ring_file(producer& p, ring_file& file,
                                            std::atomic<std::size_t>& backlog_bytes) noexcept {
  unwritten_records sum;
  const auto leave = [&](ring_block& ring) {
    const lane_heads heads{ring};
    const std::uint64_t records = heads.beyond(ring.committed());
    if (records > 0) (file.add_copy(ring, heads) ? sum.recoverable : sum.lost) += records;
    skip_records(ring, heads);
  };
  for (; p.backlog_first != nullptr; drop_oldest(p, backlog_bytes)) leave(p.backlog_first->ring);
  if (p.ring_in_file) {
    sum.recoverable += lane_heads{*p.ring}.beyond(p.ring->committed());
  } else {
    leave(*p.ring);
  }
  return sum;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_UNWRITTEN_HPP
