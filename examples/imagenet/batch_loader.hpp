// The consumer's end: gives out tasks, and hands batches over in order.
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

/// As PyTorch's DataLoader does it: batch after batch goes to worker after worker, so that each has
/// a few ahead; what arrives before its turn is kept until then.
/// Thread safety: none.
class batch_loader {
 public:
  /// Tasks that each worker has ahead, as PyTorch's prefetch_factor.
  static constexpr std::size_t prefetch = 2;

  /// How many tasks are given out and not yet handed over, at most.
  static std::size_t most_tasks(std::size_t worker_count) {
    return worker_count == 0 ? 1 : prefetch * worker_count;
  }
  /// One more than there are tasks, for the batch that the consumer works on.
  static std::size_t slots_needed(std::size_t worker_count) { return most_tasks(worker_count) + 1; }

  /// @param crew, slots  must outlive this; slots as many as slots_needed().
  batch_loader(workers& crew, std::size_t worker_count, const batch_slots& slots);

  /// Begins an epoch over the samples 0 to sample_count - 1, shuffled; batch numbers begin at 0.
  /// Call it where no batch is left of the epoch before.
  void begin_epoch(std::size_t sample_count, std::uint64_t epoch, std::uint64_t seed);

  bool has_next() const { return next_ < batch_count(); }

  /// Waits for the next batch. What it returns is valid until the next call.
  /// Errors: as workers::take().
  batch_slot next();

  /// How many batches so far came before their turn.
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
  std::size_t given_ = 0;                       ///< tasks of this epoch
  std::size_t next_ = 0;                        ///< batch to be handed over next
  std::map<std::uint64_t, std::size_t> early_;  ///< batch number -> slot
  std::size_t out_of_order_ = 0;
  std::optional<std::size_t> in_hand_;  ///< slot of the batch handed over last
};

}  // namespace imagenet

#endif  // IMAGENET_BATCH_LOADER_HPP
