// Drains one thread: writes all of its records to its logs.
#ifndef LOTUS_STORE_PRODUCER_DRAIN_HPP
#define LOTUS_STORE_PRODUCER_DRAIN_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/format/compact_filler.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/format/line.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/backlog.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The arguments of drain_producer(), except for the thread and its logs.
struct drain_context {
  const tick_converter& clock;
  const name_table& names;
  bool compact;
  drain_buffer& buffer;
  backlog& set_aside;
  /// Increased by the number of records that the drain writes.
  std::atomic<std::uint64_t>& written;
};

/// Writes first the records in the thread's backlog, which are older, and then those in its ring.
template <class Filler>
int drain_with(Filler& fill, producer& p, const lane_heads& heads, const drain_context& context,
               log_appender& logs) noexcept {
  ring_block& ring = *p.ring;
  const std::uint64_t complete = heads.beyond(ring.committed());
  const auto count = [&](std::uint64_t records) {
    context.written.fetch_add(records, std::memory_order_relaxed);
  };
  int error = 0;
  while (error == 0 && p.backlog_first != nullptr) {
    ring_block& chunk = p.backlog_first->ring;
    const std::uint64_t unwritten = lane_heads{chunk}.beyond(chunk.committed());
    logs.take_records_of(chunk);
    error = drain_ring(chunk, lane_heads{chunk}, fill, logs);
    logs.take_records_of(ring);
    count(unwritten - lane_heads{chunk}.beyond(chunk.committed()));
    if (error == 0) context.set_aside.drop_oldest(p);
  }
  if (error == 0) error = drain_ring(ring, heads, fill, logs);
  count(complete - heads.beyond(ring.committed()));
  return error;
}

/// Drains one thread. Returns 0 or errno; records that could not be written stay in the backlog and
/// in the ring. The caller holds p.guard.
/// @param heads  positions in the ring up to which records are written. Must have been read before
/// context.clock was constructed, so that the clock covers these records.
inline int drain_producer(producer& p, const lane_heads& heads, const drain_context& context,
                          log_appender& logs) noexcept {
  const name_lookup names = context.names.line_starts();
  if (!context.compact) {
    line_filler fill{context.clock, names, context.buffer};
    return drain_with(fill, p, heads, context, logs);
  }
  if (p.chain == nullptr) {
    p.chain = static_cast<compact_chain*>(map_memory(sizeof(compact_chain)));
    if (p.chain == nullptr) return ENOMEM;
  }
  compact_filler fill{context.clock, names, *p.chain, context.buffer};
  return drain_with(fill, p, heads, context, logs);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_PRODUCER_DRAIN_HPP
