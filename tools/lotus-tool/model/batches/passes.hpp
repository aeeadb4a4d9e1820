// Which passes over the data a consumer made, where batch numbers alone do not tell.
#ifndef LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP
#define LOTUS_TOOL_MODEL_BATCHES_PASSES_HPP

#include <cstdint>
#include <vector>

#include "model/batches/makings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// The records and makings of one consumer, each with an epoch that counts how often its number
/// came before. That is the epoch, unless an earlier one lacks the number: where a pass was left
/// early, or what was prefetched for it was discarded. Then receptions of a later epoch come before
/// those of an earlier one, and the epochs are numbered anew by the order of the receptions: a
/// number that comes again, or a smaller one after a larger one, begins a pass. What was made and
/// not received belongs to the pass that made it; a pass of which nothing was received is one too.
class consumer_passes {
 public:
  void add(batch_record& r) { records_.push_back(&r); }
  void add(batch_making& m) { makings_.push_back(&m); }

  /// Sets all epochs. Returns the epoch after the last one.
  /// @param counted_from  the first epoch as it was counted. @param first  as it shall be.
  std::uint32_t number_epochs(std::uint32_t counted_from, std::uint32_t first);

 private:
  /// The making of a batch and what became of it: all that have its number and its epoch.
  struct instance {
    std::int64_t number = 0;
    std::uint32_t counted = 0;  ///< epoch
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
