// Combines the records of a run into batches and computes the quantities of each batch.
#ifndef LOTUS_TOOL_MODEL_RUN_MODEL_HPP
#define LOTUS_TOOL_MODEL_RUN_MODEL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "log/log_line.hpp"
#include "model/identifiers.hpp"
#include "model/pipeline/side_data.hpp"

namespace lotus::tool {

/// A record of one event of a batch, such as a wait, with the times and the batch number in the
/// log.
struct batch_record {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t index = 0;
  file_id file = {};
  std::uint32_t epoch = 0;  ///< epoch to which the record belongs, set by find_epochs()
  record_kind kind = record_kind::op;
  consumer_id consumer = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  bool is_marker() const noexcept { return kind == record_kind::wait && duration_ns == marker_ns; }
  /// Returns the time when the consumer had the batch: the end of a wait, otherwise the start of
  /// the record. In SBatchConsumed records, and in wait records that only mark an early arrival,
  /// the duration is a placeholder.
  std::int64_t consumer_had_it_ns() const noexcept {
    return kind == record_kind::wait && !is_marker() ? end_ns() : start_ns;
  }
};

/// The batch records of a run, indexed by record_number. This is a deque, because a growing vector
/// would temporarily take three times the memory.
using batch_records = std::deque<batch_record>;

/// A span of work on a batch or an item: either in a named stage, or the preprocess span of a
/// worker.
struct preprocessing_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  /// The number in the log: that of a batch or, if `of_item` is true, that of an item.
  std::int64_t number = 0;
  stage_id stage = preprocess_stage;
  optional_file file = {};
  consumer_id consumer = {};
  /// The batch, or the batch that contains the item; nullopt if there is none.
  optional_batch batch = {};
  /// How often work on the same number was completed before this span; 0 if numbers never repeat.
  pass_number pass = {};
  bool of_item = false;  ///< whether the number is that of an item

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

struct time_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// Sorts ranges of time.
template <class Range>
void sort_by_start(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.start_ns < b.start_ns; });
}

/// A batch of one epoch.
struct batch {
  std::int64_t index = 0;
  std::uint32_t epoch = 0;  ///< epoch of the batch, counted from 0
  /// The batch's preprocess record; the one that ended last if several threads built the batch
  /// together.
  optional_record preprocessed;
  optional_record wait;
  optional_record consumed;
  optional_record queued;
  span_number first_span = 0;
  std::uint32_t spans = 0;
};

struct batch_preprocessings;

/// The times when one consumer received the batches of an epoch.
struct epoch_times {
  std::uint32_t epoch = 0;
  consumer_id consumer;
  std::size_t delivered = 0;
  std::int64_t first_ns = 0;  ///< time of the first reception of a batch
  std::int64_t last_ns = 0;
  /// The time from the last reception to the consumer's next wait, or to its next reception if it
  /// never waits. It contains the last step, and also validation, checkpoints and pauses. Missing
  /// for a consumer's last epoch.
  std::optional<std::int64_t> between_ns;
};

/// The batches of a run and their quantities, sorted by epoch and index. A quantity is missing if
/// its records are missing.
///
/// Batch numbers restart with every epoch. Therefore the k-th preprocessing of batch number i
/// belongs to the k-th SBatchWait_i, SBatchConsumed_i and SBatchQueued_i record, and to epoch k. If
/// some epochs did not contain all numbers, this assignment is wrong; consumer_passes then corrects
/// it by the order in which batches were received. If more batches were preprocessed than received,
/// because the consumer stopped an epoch early, each reception belongs to the last preprocessing
/// before it. If several processes consume at the same time, each has its own batches, and the
/// epochs of one process are numbered after those of another.
///
/// One preprocessing of batch i is an SBatchPreprocessed_i record, or a pass of number i through
/// the stages. A new pass begins when all spans of the pass have ended and its first stage begins
/// with number i again. Several threads may also build each batch together. This class assumes so
/// if the numbers that were received in every epoch mostly have several preprocess records before
/// each reception. Then all preprocess records since the previous reception of the number belong to
/// one batch.
class run_batches {
 public:
  /// @param stages   spans of named stages. item_stages() decides whether the numbers of a stage
  /// are those of batches or of items.
  /// @param cut_off  whether the records are only a part of a run. Then epochs count from the start
  /// of the part, and a batch may have been preprocessed before that.
  explicit run_batches(batch_records records, const std::vector<stage_span>& stages = {},
                       const std::vector<batch_inclusion>& inclusions = {}, bool cut_off = false);

  const std::vector<batch>& all() const noexcept { return batches_; }
  const batch_records& records() const noexcept { return records_; }
  /// Returns how many processes consumed batches at the same time, such as the ranks of a training
  /// on several GPUs.
  std::size_t consumers() const noexcept { return consumers_; }
  /// Returns whether the consumers' waits are recorded. If they are not, steps cannot be measured,
  /// because they would contain waiting.
  bool waits_known() const noexcept { return waits_known_; }
  /// Returns whether the run has stages, but neither workers nor a consumer. Such a program pushes
  /// its batches through the stages, and a batch is done when its last stage ends.
  bool pushed() const noexcept { return pushed_; }
  /// Returns the number of batches that were at least partly built but not received, because the
  /// consumer stopped an epoch early or the program ended. Returns 0 if no batch was received.
  std::size_t discarded() const noexcept;
  /// Returns whether several threads build each batch together. If so, this class has combined
  /// their spans into one preprocessing.
  bool in_parts() const noexcept { return in_parts_; }
  /// Returns the share of the consumers' time that lies between the end of a wait and the
  /// SBatchConsumed record after it. The consumers' time is from the first wait to the last
  /// reception of each epoch. Returns 0 if fewer than three batches have such a time.
  double late_share() const noexcept { return late_share_; }
  /// Returns whether the program records SBatchConsumed only after the step, which is assumed if
  /// late_share() is above 20 %. Then a batch counts as received at the end of its wait or, if it
  /// was buffered, at the previous SBatchConsumed.
  bool consumed_late() const noexcept { return late_share_ > 0.2; }
  /// Returns the mean time from the end of a wait to the reception, which is not part of any step.
  double mean_late_ns() const noexcept { return consumed_late() ? 0 : mean_late_ns_; }
  const std::vector<epoch_times>& epochs() const noexcept { return epochs_; }
  /// Returns the throughput over the whole run: batches received / length_ns(). Missing with fewer
  /// than two batches.
  std::optional<double> achieved_per_s() const noexcept;
  /// Returns the throughput in steady state: (batches - 1) / (last - first reception), summed over
  /// the epochs. Start-up and the time between epochs do not count. Missing with fewer than two
  /// batches.
  std::optional<double> steady_per_s() const noexcept;
  /// Returns the length of the run, including start-up and the time between epochs: from the first
  /// dispatch, preprocessing or wait of a received batch to the end of the last step. 0 if no batch
  /// was received.
  std::int64_t length_ns() const noexcept { return length_ns_; }
  /// Returns the time at which the run begins for length_ns(): that of the first dispatch,
  /// preprocessing or wait of a received batch.
  std::int64_t start_ns() const noexcept { return start_ns_; }
  /// Estimates the step of an epoch's last batch, whose end is not recorded: the median step, but
  /// no longer than the time to the consumer's next wait. 0 for consumers that never wait.
  std::int64_t last_step_ns(const epoch_times& of) const noexcept;

  /// Returns the record with the number `n`; nullptr if `n` is nullopt.
  const batch_record* record(optional_record n) const noexcept {
    return n ? &records_[*n] : nullptr;
  }
  /// Returns the epoch of the batch. If several processes consume at the same time, the epochs of
  /// each process are counted from 0 here.
  std::uint32_t epoch_of_consumer(const batch& b) const noexcept;
  const batch& at(batch_id id) const noexcept { return batches_[id.value()]; }
  batch_id batch_of(const batch_record& r) const noexcept;

  /// Returns all spans in which batches and items were preprocessed. The spans of a batch are
  /// adjacent and sorted by start, and the batches are in the order of all(); the spans of items
  /// that became part of no batch come last.
  const std::vector<preprocessing_span>& preprocessing_spans() const noexcept {
    return preprocessing_spans_;
  }

  /// Returns the preprocess time. If several threads built the batch together, this is the time
  /// during which at least one of them worked on it.
  std::optional<std::int64_t> preprocess_ns(const batch& b) const;
  /// Returns how long the consumer waited for the batch; 0 for a batch that arrived out of order.
  std::optional<std::int64_t> wait_ns(const batch& b) const noexcept;
  /// Returns the time from the end of the batch's preprocessing to its reception.
  std::optional<std::int64_t> delay_ns(const batch& b) const;
  /// Returns the time when the consumer received the batch.
  std::optional<std::int64_t> delivery_ns(const batch& b) const noexcept;
  /// Returns the time when the batch left the loader: when it was received or, if pushed() is true,
  /// when its preprocessing ended.
  std::optional<std::int64_t> left_ns(const batch& b) const noexcept;
  /// Returns the step's duration: from the reception to the consumer's next wait or reception.
  /// LOTUS_BATCH_ARRIVED does not end a step. Missing for an epoch's last batch.
  std::optional<std::int64_t> step_ns(optional_record consumed) const noexcept;
  std::optional<time_span> step(optional_record consumed) const noexcept;
  bool out_of_order(const batch& b) const noexcept;

  /// Returns the time span from the start to the end of the batch's preprocessing. The length of
  /// this time span is the latency of the batch.
  std::optional<time_span> made(const batch& b) const;
  /// Returns the sum of the durations of the batch's spans. If spans overlap, the sum may exceed
  /// the batch's latency.
  std::int64_t service_ns(const batch& b) const;
  /// Returns the part of the batch's latency that none of its spans covers, because the batch
  /// waited between stages.
  std::int64_t queueing_ns(const batch& b) const;

 private:
  bool join_successive_consumers();
  void find_deliveries();
  void find_steps();
  void join(batch_preprocessings& found);
  void find_epoch_times();
  void find_length();

  batch_records records_;
  std::vector<preprocessing_span> preprocessing_spans_;
  // For each record: the reception time if it is an SBatchConsumed record, otherwise -1.
  std::vector<std::int64_t> deliveries_;
  // For each record: the end of the consumer's step that begins with this record; -1 if no step
  // begins with it.
  std::vector<std::int64_t> step_ends_;
  std::vector<batch> batches_;
  std::size_t first_epoch_batches_ = 0;  // number of batches in epoch 0
  std::vector<epoch_times> epochs_;
  std::vector<std::uint32_t> first_epochs_;  // first epoch of each consumer, ascending
  std::size_t consumers_ = 1;
  std::int64_t length_ns_ = 0;
  std::int64_t start_ns_ = 0;
  /// Whether the first record is the reception of a batch. If so, length_ns_ does not contain the
  /// time in which this batch was built.
  bool begins_with_reception_ = false;
  std::int64_t median_step_ns_ = 0;
  double late_share_ = 0;
  double mean_late_ns_ = 0;
  bool waits_known_ = false;
  bool pushed_ = false;
  bool in_parts_ = false;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_MODEL_HPP
