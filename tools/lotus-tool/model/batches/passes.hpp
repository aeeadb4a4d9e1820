// Finds the epochs of the batches of one consumer in runs in which some epochs do not contain all
// batch numbers.
#ifndef LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP
#define LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP

#include <cstdint>
#include <vector>

#include "model/batches/batch_preprocessings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// The records and preprocessings of one consumer. Each is added with a preliminary epoch: how
/// often its batch number occurred before. This epoch is wrong if an earlier epoch does not contain
/// the number, because the consumer stopped that epoch early or prefetched batches were discarded.
/// Then the times of the preliminary epochs overlap, and number_epochs() numbers the epochs again
/// in the order in which batches were received: a number that repeats, or a smaller number after a
/// larger one, begins a new pass (epoch). Batches that were never received belong to the pass in
/// which they were built. A pass of which no batch was received is an epoch too.
class consumer_passes {
 public:
  void add(batch_record& r) { records_.push_back(&r); }
  void add(batch_preprocessing& m) { preprocessings_.push_back(&m); }

  /// Replaces the preliminary epochs of all records and preprocessings by their final epochs.
  /// Returns the number that follows the number of the last epoch.
  /// @param counted_from  the lowest preliminary epoch of this consumer.
  /// @param first  the number that the first final epoch gets.
  std::uint32_t number_epochs(std::uint32_t counted_from, std::uint32_t first);

 private:
  /// One occurrence of a batch number: all records and preprocessings with this number and
  /// preliminary epoch.
  struct instance {
    std::int64_t number = 0;
    std::uint32_t counted = 0;  ///< the preliminary epoch
    std::int64_t received_ns = INT64_MAX;
    std::int64_t began_ns = INT64_MAX;
    std::uint32_t epoch = 0;
  };

  bool are_epochs_apart() const;
  void find_instances();
  void find_received_passes();
  void place_discarded();

  std::vector<batch_record*> records_;
  std::vector<batch_preprocessing*> preprocessings_;
  std::vector<instance> instances_;  // sorted by number and preliminary epoch
  std::uint32_t passes_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP
