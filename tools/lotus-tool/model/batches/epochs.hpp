// Finds the epoch to which each batch record and each preprocessing of a batch belongs.
#ifndef LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
#define LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/sorting.hpp"
#include "model/batches/batch_preprocessings.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {

/// Returns the indices of all records, sorted by `key(record)`. Records with equal keys keep their
/// order in `records`.
template <class Key>
std::vector<record_number> numbers_by(const batch_records& records, Key key) {
  std::vector<record_number> numbers(records.size());
  std::iota(numbers.begin(), numbers.end(), record_number{0});
  sort_runs(numbers.begin(), numbers.end(),
            [&](record_number a, record_number b) { return key(records[a]) < key(records[b]); });
  return numbers;
}

/// Sets the member `epoch` of all records and preprocessings, by the rules described at the class
/// run_batches. Returns the first epoch of each consumer, in ascending order. `cut_off` says
/// whether the records are only a part of a run.
std::vector<std::uint32_t> find_epochs(batch_records& records, batch_preprocessings& found,
                                       bool cut_off);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_EPOCHS_HPP
