// Provides memory for batches: a fixed number of slots that worker threads or worker processes
// share with the consumer.
#ifndef IMAGENET_BATCH_SLOTS_HPP
#define IMAGENET_BATCH_SLOTS_HPP

#include <cstddef>
#include <cstdint>

#include "imagenet/shared_memory.hpp"

namespace imagenet {

/// Number of floats in one image of a batch.
constexpr std::size_t image_floats = std::size_t{3} * 224 * 224;

/// The memory of one batch, which batch_slots owns.
struct batch_slot {
  struct counts {
    std::uint32_t wanted = 0;  ///< number of samples that the consumer requested
    /// Number of samples that the worker built; less than `wanted` if files cannot be decoded.
    std::uint32_t made = 0;
  };

  counts* size = nullptr;
  std::uint32_t* samples = nullptr;  ///< array of `wanted` file numbers
  std::int32_t* labels = nullptr;    ///< array of `made` labels
  float* images = nullptr;           ///< array [made][3][224][224] of floats
};

/// Memory for several batches. It needs no locks, because each slot belongs at any time either to
/// the consumer or to one worker: it passes to the worker with the task, and back to the consumer
/// with the finished batch.
class batch_slots {
 public:
  /// Throws the errors of shared_memory.
  batch_slots(std::size_t count, std::size_t batch_size)
      : count_{count}, batch_size_{batch_size}, memory_{count * slot_bytes()} {}

  std::size_t count() const { return count_; }
  std::size_t batch_size() const { return batch_size_; }

  batch_slot operator[](std::size_t i) const {
    std::byte* at = memory_.data() + i * slot_bytes();
    batch_slot slot;
    slot.size = reinterpret_cast<batch_slot::counts*>(at);
    slot.samples = reinterpret_cast<std::uint32_t*>(at + line_bytes);
    slot.labels = reinterpret_cast<std::int32_t*>(at + line_bytes + numbers_bytes());
    slot.images = reinterpret_cast<float*>(at + line_bytes + 2 * numbers_bytes());
    return slot;
  }

 private:
  static constexpr std::size_t line_bytes = 64;

  std::size_t numbers_bytes() const {
    return (batch_size_ * sizeof(std::uint32_t) + line_bytes - 1) / line_bytes * line_bytes;
  }
  std::size_t slot_bytes() const {
    return line_bytes + 2 * numbers_bytes() + batch_size_ * image_floats * sizeof(float);
  }

  std::size_t count_;
  std::size_t batch_size_;
  shared_memory memory_;
};

}  // namespace imagenet

#endif  // IMAGENET_BATCH_SLOTS_HPP
