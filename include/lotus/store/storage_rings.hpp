// Threads get rings.
#ifndef LOTUS_STORE_STORAGE_RINGS_HPP
#define LOTUS_STORE_STORAGE_RINGS_HPP

#include <atomic>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/ring_layout.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/storage.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline bool storage::attach(producer& p) noexcept {
  make_due_ring_file();
  leftovers_.of_thread(directory_, p.tid.load(std::memory_order_relaxed));
  const locked hold{file_lock_};
  if (p.ring != nullptr) ring_file::unmap(p.ring);
  p.ring = nullptr;
  int error = 0;
  ring_block* ring = file_.add_ring(p.tid.load(std::memory_order_relaxed), ring_records_, error);
  if (ring == nullptr) return false;
  p.ring_in_file = error == 0;
  if (!p.ring_in_file && file_.exists()) reports_.no_ring_file(location_, error);
  info_.add_thread(p.tid.load(std::memory_order_relaxed));
  commit_point begin{};
  begin.loader = p.loader;
  ring->commit(begin);
  p.ring = ring;
  p.attached = true;
  p.slots = ring->slots();
  p.mask = ring->capacity - 1;
  p.published = &ring->published[0];
  p.waiting_since = &ring->waiting_since;
  p.longest_wait_ticks.store(0, std::memory_order_relaxed);
  return true;
}

inline void storage::hand_over(producer& p) noexcept {
  kept_logs_.close(p);
  if (!p.attached) return;
  leftovers_.of_thread(directory_, p.tid.load(std::memory_order_relaxed));
  p.ring->tid.store(p.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
  commit_point c = p.ring->committed();
  for (log_position& log : c.logs) log = {};
  c.loader = p.loader;
  p.ring->commit(c);
  const locked hold{file_lock_};
  info_.add_thread(p.tid.load(std::memory_order_relaxed));
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_RINGS_HPP
