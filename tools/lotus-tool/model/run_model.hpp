// Assembles the batches of a run from its records and computes their quantities.
#ifndef LOTUS_TOOL_MODEL_RUN_MODEL_HPP
#define LOTUS_TOOL_MODEL_RUN_MODEL_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "log/log_line.hpp"
#include "model/identifiers.hpp"
#include "model/pipeline/side_data.hpp"

namespace lotus::tool {

/// A batch record as logged.
struct batch_record {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t index = 0;
  file_id file = {};
  std::uint32_t epoch = 0;  ///< set by find_epochs()
  record_kind kind = record_kind::op;
  consumer_id consumer = {};

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  bool is_marker() const noexcept { return kind == record_kind::wait && duration_ns == marker_ns; }
  /// When the consumer had the batch. The durations of markers and of SBatchConsumed records are
  /// placeholders.
  std::int64_t consumer_had_it_ns() const noexcept {
    return kind == record_kind::wait && !is_marker() ? end_ns() : start_ns;
  }
};

/// The batch records of a run, by number. A deque, because a growing vector would temporarily take
/// three times the memory.
using batch_records = std::deque<batch_record>;

/// Work on a batch: a span of a stage, or of preprocessing.
struct making_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  /// As logged: the number of the batch, or of an item that became part of it.
  std::int64_t number = 0;
  stage_id stage = preprocess_stage;
  optional_file file = {};
  consumer_id consumer = {};
  optional_batch batch = {};  ///< nullopt for an item that no batch took
  /// How often its number was preprocessed before; 0 if numbers never repeat.
  pass_number pass = {};
  bool of_item = false;  ///< the number is that of an item

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// A range of time.
struct time_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// A batch of one epoch.
struct batch {
  std::int64_t index = 0;
  std::uint32_t epoch = 0;       ///< counted from 0
  optional_record preprocessed;  ///< the last one, if there are several segments
  optional_record wait;
  optional_record consumed;
  optional_record queued;
  span_number first_span = 0;
  std::uint32_t spans = 0;
};

struct makings;

/// When one consumer received the batches of an epoch.
struct epoch_times {
  std::uint32_t epoch = 0;
  consumer_id consumer;
  std::size_t handed_over = 0;
  std::int64_t first_ns = 0;  ///< first reception of a batch
  std::int64_t last_ns = 0;
  /// The time until the next epoch's first wait, or first reception if there is no wait:
  /// validation, checkpoints, pauses, and the last step. Missing for a consumer's last epoch.
  std::optional<std::int64_t> between_ns;
};

/// The batches of a run, in order of epoch, then index, and their quantities. A quantity whose
/// records are missing is missing.
///
/// Batch numbers restart with every epoch, so the k-th preprocessing of batch i in time order
/// belongs to the k-th SBatchWait_i, SBatchConsumed_i and SBatchQueued_i. So k is the epoch, unless
/// the receptions show that an epoch lacked the number (consumer_passes). If more batches were
/// preprocessed than received, as when an epoch is left early, each reception belongs to the last
/// preprocessing before it. Processes that consume at the same time have separate batches; the
/// epochs of one are numbered after those of another.
///
/// One preprocessing of batch i is an SBatchPreprocessed_i, or a pass of i through the stages: it
/// ends when the stage with which it began begins with i again after all its spans have ended.
/// Several threads may preprocess segments of one batch. This is assumed if most receptions are
/// preceded by several such records (counting only numbers that every epoch received); then all
/// records since the previous reception of the number belong to one batch.
class run_batches {
 public:
  /// @param stages   spans of named stages. Their numbers are batches or, if `takings` say so,
  ///                 items.
  /// @param cut_off  the records are those of a part of a run: epochs count from its begin, and
  ///                 batches received before the first preprocessing ended were preprocessed before
  ///                 the part began.
  explicit run_batches(batch_records records, const std::vector<stage_span>& stages = {},
                       const std::vector<batch_taking>& takings = {}, bool cut_off = false);

  const std::vector<batch>& all() const noexcept { return batches_; }
  const batch_records& records() const noexcept { return records_; }
  /// The number of processes that consumed at the same time, such as the ranks of a training on
  /// several GPUs.
  std::size_t consumers() const noexcept { return consumers_; }
  /// Whether the consumers' waits are known: without them, steps would contain waiting.
  bool waits_known() const noexcept { return waits_known_; }
  /// Whether there are stages, but neither workers nor a consumer. Then a batch is done when its
  /// last stage ends.
  bool pushed() const noexcept { return pushed_; }
  /// The number of batches that were at least partly built and not received, if others were
  /// received: prefetched for an epoch that was left early, or in flight at the end.
  std::size_t discarded() const noexcept;
  /// Whether batches were preprocessed in several segments, which are combined.
  bool in_pieces() const noexcept { return in_pieces_; }
  /// The share of the consumers' time, from their first wait to their last reception in each epoch,
  /// that is between the end of a wait and its SBatchConsumed; 0 with fewer than three such
  /// batches.
  double late_share() const noexcept { return late_share_; }
  /// Whether the program records SBatchConsumed after the step (late_share above 20 %). Then a
  /// batch counts as received at the end of its wait or, if it was buffered, at the SBatchConsumed
  /// before.
  bool consumed_late() const noexcept { return late_share_ > 0.2; }
  /// The mean time from a wait's end to the reception: the consumer's time, but in no step.
  double mean_late_ns() const noexcept { return consumed_late() ? 0 : mean_late_ns_; }
  const std::vector<epoch_times>& epochs() const noexcept { return epochs_; }
  /// Throughput over the whole run: batches received / length_ns(). Missing with fewer than two
  /// batches.
  std::optional<double> achieved_per_s() const noexcept;
  /// Throughput in steady state: (batches - 1) / (last - first reception), summed over epochs, so
  /// without start-up and the time between epochs. Missing with fewer than two batches.
  std::optional<double> steady_per_s() const noexcept;
  /// The length of the run, including start-up and the time between epochs: from the first
  /// dispatch, preprocessing or wait of a received batch to the end of the last step. 0 if no batch
  /// was received.
  std::int64_t length_ns() const noexcept { return length_ns_; }
  /// The duration of the step of an epoch's last batch, whose end is not recorded: assumed to be
  /// the median step, but no longer than until the consumer's next wait. 0 for consumers that never
  /// wait.
  std::int64_t last_step_ns(const epoch_times& of) const noexcept;

  /// Returns nullptr for nullopt.
  const batch_record* record(optional_record n) const noexcept {
    return n ? &records_[*n] : nullptr;
  }
  /// The epoch as its consumer counts it: each of several simultaneous consumers starts from 0.
  std::uint32_t epoch_of_consumer(const batch& b) const noexcept;
  const batch& at(batch_id id) const noexcept { return batches_[id.value()]; }
  /// The batch that a record belongs to.
  batch_id batch_of(const batch_record& r) const noexcept;

  /// All spans in which batches and items were preprocessed. The spans of a batch are adjacent and
  /// in order of start, batches in order of all(); those of items that no batch took come last.
  const std::vector<making_span>& making() const noexcept { return making_; }

  /// For a batch in segments, the time that they cover together.
  std::optional<std::int64_t> preprocess_ns(const batch& b) const;
  /// 0 for a batch that arrived out of order.
  std::optional<std::int64_t> wait_ns(const batch& b) const noexcept;
  /// From the end of its preprocessing to its reception.
  std::optional<std::int64_t> delay_ns(const batch& b) const;
  /// When the consumer received it.
  std::optional<std::int64_t> hand_over_ns(const batch& b) const noexcept;
  /// When it was done: when it was received or, if batches are pushed(), when its preprocessing
  /// ended.
  std::optional<std::int64_t> left_ns(const batch& b) const noexcept;
  /// From the reception to the same consumer's next wait or reception, whichever is first;
  /// out-of-order markers do not end a step. Missing for an epoch's last batch.
  std::optional<std::int64_t> step_ns(optional_record consumed) const noexcept;
  std::optional<time_span> step(optional_record consumed) const noexcept;
  bool out_of_order(const batch& b) const noexcept;

  /// From the start to the end of its preprocessing: its latency.
  std::optional<time_span> made(const batch& b) const;
  /// The sum of its spans, which exceeds its latency if they overlap.
  std::int64_t service_ns(const batch& b) const;
  /// The part of its latency in which none of its spans was open.
  std::int64_t queueing_ns(const batch& b) const;

 private:
  bool join_successive_consumers();
  void find_hand_overs();
  void find_steps();
  void join(makings& found);
  void find_epoch_times();
  void find_length();

  batch_records records_;
  std::vector<making_span> making_;
  std::vector<std::int64_t> hand_overs_;  // by record; -1: not an SBatchConsumed
  std::vector<std::int64_t> step_ends_;   // by record; -1: none
  std::vector<batch> batches_;
  std::vector<epoch_times> epochs_;
  std::vector<std::uint32_t> first_epochs_;  // of each consumer, ascending
  std::size_t consumers_ = 1;
  std::int64_t length_ns_ = 0;
  /// Nothing was recorded of the first batch before its reception, so its time is not in
  /// length_ns_.
  bool begins_with_reception_ = false;
  std::int64_t median_step_ns_ = 0;
  double late_share_ = 0;
  double mean_late_ns_ = 0;
  bool waits_known_ = false;
  bool pushed_ = false;
  bool in_pieces_ = false;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_RUN_MODEL_HPP
