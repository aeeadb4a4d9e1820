// Finds the epoch of each batch record and each preprocessing of a batch.
#ifndef LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP

#include <cstdint>
#include <vector>

#include "model/batches/makings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Sets `epoch` of all records and preprocessings, see run_batches. Returns the first epoch of each
/// consumer, ascending. @param cut_off  see run_batches.
std::vector<std::uint32_t> find_epochs(batch_records& records, makings& found, bool cut_off);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
