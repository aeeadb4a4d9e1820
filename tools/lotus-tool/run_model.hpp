// Batches of a run: which records belong together, and the quantities that follow.
#ifndef LOTUS_TOOL_RUN_MODEL_HPP
#define LOTUS_TOOL_RUN_MODEL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"

namespace lotus::tool {

/// A batch record as logged. `file` is the index into run_files::files.
struct batch_record {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t index = 0;
  std::uint32_t file = 0;
  std::uint32_t epoch = 0;  ///< set by run_batches
  record_kind kind = record_kind::op;
  std::uint32_t consumer = 0;  ///< log_file::consumer

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  bool is_marker() const noexcept { return kind == record_kind::wait && duration_ns == marker_ns; }
};

/// The batch records of a run, by number. A deque, because a growing vector would for a moment
/// take three times the memory.
using batch_records = std::deque<batch_record>;
using record_number = std::uint32_t;
inline constexpr record_number no_record = UINT32_MAX;

/// What one reading of a run leaves in memory: its batch records and figures about the rest.
struct run_scan {
  batch_records records;  ///< those of a file stand together, in the file's order
  std::uint64_t operations = 0;
  std::int64_t first_ns = INT64_MAX;  ///< the earliest start
  std::int64_t last_ns = INT64_MIN;   ///< the latest end

  bool empty() const noexcept { return records.empty() && operations == 0; }
};

/// Reads one log into `scan`; operations are handed to `on_op(log_line)` and not kept, so memory
/// grows with the batches only. Throws input_error.
/// @param place  the log's place in its run_files::files.
template <class OnOp>
void scan_log(const log_file& file, std::size_t place, diagnostics& said, run_scan& scan,
              OnOp&& on_op) {
  std::uint64_t operations = 0;
  std::int64_t first_ns = scan.first_ns;
  std::int64_t last_ns = scan.last_ns;
  read_log(file, &said, [&](const log_line& line) {
    first_ns = std::min(first_ns, line.start_ns);
    last_ns = std::max(last_ns, line.end_ns());
    if (line.kind == record_kind::op) {
      ++operations;
      on_op(line);
    } else {
      scan.records.push_back({line.start_ns, line.duration_ns, line.batch,
                              static_cast<std::uint32_t>(place), 0, line.kind, file.consumer});
    }
  });
  scan.operations += operations;
  scan.first_ns = first_ns;
  scan.last_ns = last_ns;
}

/// Reads all logs of a run once, one after the other. Operations go to
/// `on_op(file_index, log_line)`. Throws input_error.
template <class OnOp>
run_scan scan_run(const run_files& run, diagnostics& said, OnOp&& on_op) {
  run_scan scan;
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    scan_log(run.files[f], f, said, scan, [&](const log_line& line) { on_op(f, line); });
  }
  return scan;
}

/// Reads all logs of a run once, several at a time, and keeps the batch records only. What is
/// to be said comes in the order of the files. Throws input_error.
run_scan scan_batches(const run_files& run, diagnostics& said);

/// A batch of one epoch. A record that the logs do not hold is no_record.
struct batch {
  std::int64_t index = 0;
  std::uint32_t epoch = 0;  ///< counted from 0
  record_number preprocessed = no_record;
  record_number wait = no_record;
  record_number consumed = no_record;
  record_number queued = no_record;
};

/// The batches of a run, in order of epoch, then index, and their quantities. A quantity whose
/// records are missing is missing.
///
/// The k-th SBatchPreprocessed_i in time order belongs to the k-th SBatchWait_i, SBatchConsumed_i
/// and SBatchQueued_i, because batch numbers restart with every epoch; so k is called the epoch.
/// Where more were made than were consumed, as when an epoch is left early, a batch goes to the
/// last one that was made before it. Of processes that consume at the same time each has its own
/// batches, and the epochs of one are counted on behind those of another.
class run_batches {
 public:
  explicit run_batches(batch_records records);

  const std::vector<batch>& all() const noexcept { return batches_; }
  const batch_records& records() const noexcept { return records_; }
  /// Processes that consumed at the same time, such as the ranks of a training on several GPUs.
  std::size_t consumers() const noexcept { return consumers_; }

  /// nullptr for no_record.
  const batch_record* record(record_number n) const noexcept {
    return n == no_record ? nullptr : &records_[n];
  }
  /// The batch that a record belongs to, as its place in all().
  std::size_t place_of(const batch_record& r) const noexcept;

  std::optional<std::int64_t> preprocess_ns(const batch& b) const noexcept;
  /// 0 for an out-of-order arrival.
  std::optional<std::int64_t> wait_ns(const batch& b) const noexcept;
  /// From the end of preprocessing to the hand-over.
  std::optional<std::int64_t> delay_ns(const batch& b) const noexcept;
  /// From the consumption to the same consumer's next wait span or next consumption, whichever
  /// is first; out-of-order markers end nothing. Missing only for a consumer's last consumption.
  std::optional<std::int64_t> step_ns(record_number consumed) const noexcept;
  bool out_of_order(const batch& b) const noexcept;

 private:
  void join_successive_consumers();
  void find_epochs();
  void find_steps();
  void join();

  batch_records records_;
  std::vector<std::int64_t> steps_;  // by record; -1: none
  std::vector<batch> batches_;
  std::size_t consumers_ = 1;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_RUN_MODEL_HPP
