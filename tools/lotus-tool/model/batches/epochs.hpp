// In which epoch each batch record and each making of a batch is.
#ifndef LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP

#include <cstdint>
#include <vector>

#include "model/batches/makings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Sets `epoch` of all records and makings, as run_batches has it. Returns the first epoch of each
/// consumer, in rising order. @param cut_off  as run_batches has it.
std::vector<std::uint32_t> find_epochs(batch_records& records, makings& found, bool cut_off);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
