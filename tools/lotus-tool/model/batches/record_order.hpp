// Sorts batch records by a key.
#ifndef LOTUS_TOOL_MODEL_BATCHES_RECORD_ORDER_HPP
#define LOTUS_TOOL_MODEL_BATCHES_RECORD_ORDER_HPP

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/sort_runs.hpp"
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

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_RECORD_ORDER_HPP
