// Provides the loader, which sends tasks to workers and delivers batches in order.
#ifndef IMAGENET_BATCH_LOADER_HPP
#define IMAGENET_BATCH_LOADER_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "imagenet/batch_slots.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {

/// Works like PyTorch's DataLoader: sends the tasks to the workers round-robin, so that each worker
/// has a few tasks queued. Buffers a batch that arrives before the consumer has received all
/// earlier ones. Not thread-safe.
class batch_loader {
 public:
  /// Number of batches in flight per worker, like PyTorch's prefetch_factor.
  static constexpr std::size_t prefetch = 2;

  /// Returns how many tasks may be in flight at the same time. A task is in flight until the
  /// consumer has received its batch.
  static std::size_t max_tasks(std::size_t worker_count) {
    return worker_count == 0 ? 1 : prefetch * worker_count;
  }
  /// Returns how many slots the loader needs: one for each task in flight, and one for the batch
  /// that the consumer uses.
  static std::size_t slots_needed(std::size_t worker_count) { return max_tasks(worker_count) + 1; }

  /// @param crew, slots  must outlive this object; there must be slots_needed() slots.
  batch_loader(workers& crew, std::size_t worker_count, const batch_slots& slots);

  /// Begins an epoch over the samples 0 to sample_count - 1 in random order; batch numbers begin at
  /// 0. Call this only when all batches of the previous epoch have been received.
  void begin_epoch(std::size_t sample_count, std::uint64_t epoch, std::uint64_t seed);

  bool has_next() const { return next_ < batch_count(); }

  /// Waits for the next batch and returns it; it is valid until next() is called again. Throws the
  /// errors of workers::take().
  batch_slot next();

  /// Returns the number of batches that arrived out of order.
  std::size_t out_of_order() const { return out_of_order_; }

 private:
  std::size_t batch_count() const;
  void give_next_task();
  std::size_t slot_of_next();

  workers& crew_;
  std::size_t worker_count_;
  const batch_slots& slots_;
  std::vector<std::size_t> free_slots_;
  std::vector<std::uint32_t> order_;
  std::uint64_t epoch_ = 0;
  std::size_t given_ = 0;  ///< number of tasks of this epoch that were sent to workers
  std::size_t next_ = 0;   ///< number of the batch that will be delivered next
  /// The slots of batches that arrived early, by batch number.
  std::map<std::uint64_t, std::size_t> early_;
  std::size_t out_of_order_ = 0;
  std::optional<std::size_t> in_hand_;  ///< slot of the batch that was delivered last
};

}  // namespace imagenet

#endif  // IMAGENET_BATCH_LOADER_HPP
