// Finds the epochs of one consumer if batch numbers alone do not determine them.
#ifndef LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP
#define LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP

#include <cstdint>
#include <vector>

#include "model/batches/makings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// The records and preprocessings of one consumer, each with a preliminary epoch: how often its
/// number occurred before. This is the epoch, unless an earlier epoch lacks the number because it
/// was left early or prefetched batches were discarded. In that case receptions of a later epoch
/// come before those of an earlier one, and the epochs are numbered again by the order of the
/// receptions: a number that repeats, or a smaller one after a larger one, begins a new pass.
/// Batches that were built and not received belong to the pass that built them; a pass of which no
/// batch was received counts too.
class consumer_passes {
 public:
  void add(batch_record& r) { records_.push_back(&r); }
  void add(batch_making& m) { makings_.push_back(&m); }

  /// Sets all epochs. Returns the epoch after the last one.
  /// @param counted_from  the first preliminary epoch. @param first  the first final epoch.
  std::uint32_t number_epochs(std::uint32_t counted_from, std::uint32_t first);

 private:
  /// One preprocessing of a batch and its reception: all records with its number and preliminary
  /// epoch.
  struct instance {
    std::int64_t number = 0;
    std::uint32_t counted = 0;  ///< preliminary epoch
    std::int64_t received_ns = INT64_MAX;
    std::int64_t made_ns = INT64_MAX;
    std::uint32_t epoch = 0;
  };

  bool are_epochs_apart() const;
  void find_instances();
  void find_received_passes();
  void place_discarded();

  std::vector<batch_record*> records_;
  std::vector<batch_making*> makings_;
  std::vector<instance> instances_;  // in order of number and counted epoch
  std::uint32_t passes_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP
