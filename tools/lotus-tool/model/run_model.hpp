// Batches of a run: which records belong together, and the quantities that follow.
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
  /// The durations of markers and consumptions are placeholders.
  std::int64_t consumer_had_it_ns() const noexcept {
    return kind == record_kind::wait && !is_marker() ? end_ns() : start_ns;
  }
};

/// The batch records of a run, by number. A deque, because a growing vector would for a moment
/// take three times the memory.
using batch_records = std::deque<batch_record>;

/// Work on a batch: a span of a stage, or one of preprocessing.
struct making_span {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t number = 0;  ///< as logged: of the batch, or of an item that went into it
  stage_id stage = preprocess_stage;
  optional_file file = {};
  consumer_id consumer = {};
  optional_batch batch = {};  ///< none of an item that no batch took
  pass_number pass = {};  ///< counts the makings of one number; stays 0 where it never comes again
  bool of_item = false;   ///< the number is an item's

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

/// A stretch of time.
struct time_span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// A batch of one epoch.
struct batch {
  std::int64_t index = 0;
  std::uint32_t epoch = 0;       ///< counted from 0
  optional_record preprocessed;  ///< the last one, where there are several pieces
  optional_record wait;
  optional_record consumed;
  optional_record queued;
  span_number first_span = 0;
  std::uint32_t spans = 0;
};

struct makings;

/// What an epoch of one consumer was, by its hand-overs.
struct epoch_times {
  std::uint32_t epoch = 0;
  consumer_id consumer;
  std::size_t handed_over = 0;
  std::int64_t first_ns = 0;  ///< hand-over
  std::int64_t last_ns = 0;
  /// Until the next epoch's first wait, or hand-over where it waited for none: validation,
  /// checkpoints, pauses, and the last step. Missing for a consumer's last epoch.
  std::optional<std::int64_t> between_ns;
};

/// The batches of a run, in order of epoch, then index, and their quantities. A quantity whose
/// records are missing is missing.
///
/// Passes over the data are called epochs. The k-th making of batch i in time order belongs to the
/// k-th SBatchWait_i, SBatchConsumed_i and SBatchQueued_i, because batch numbers restart with every
/// epoch. So k is the epoch, unless the receptions show that an epoch lacked the number
/// (consumer_passes). Where more were made than were consumed, as when an epoch is left early, a
/// batch goes to the last one that was made before it. Of processes that consume at the same time
/// each has its own batches, and the epochs of one are counted on behind those of another.
///
/// A making is SBatchPreprocessed_i, or a pass of i through the stages: it ends where the stage
/// that it began with begins anew, behind the end of all of it. Where for most hand-overs (of the
/// numbers that every epoch handed over) several makings are there, as one batch was preprocessed
/// in pieces on several threads, those since the hand-over of the same number before are one.
class run_batches {
 public:
  /// @param stages   spans of named stages, whose numbers are batches or, where `takings` say so,
  ///                 items.
  /// @param cut_off  the records are of a part of a run: epochs count from its beginning, and what
  ///                 was consumed before the first making had ended was made before it.
  explicit run_batches(batch_records records, const std::vector<stage_span>& stages = {},
                       const std::vector<batch_taking>& takings = {}, bool cut_off = false);

  const std::vector<batch>& all() const noexcept { return batches_; }
  const batch_records& records() const noexcept { return records_; }
  /// Processes that consumed at the same time, such as the ranks of a training on several GPUs.
  std::size_t consumers() const noexcept { return consumers_; }
  /// Whether the consumers' waits are known: without them a step would contain waiting.
  bool waits_known() const noexcept { return waits_known_; }
  /// Whether nobody takes the batches: there are stages, and neither workers nor a consumer. Then a
  /// batch is done where its last stage ends.
  bool pushed() const noexcept { return pushed_; }
  /// Batches that were made, or partly, and not received, where others were: prefetched for a pass
  /// that was left, or still in flight at the end.
  std::size_t discarded() const noexcept;
  /// Whether batches were preprocessed in several pieces, which are taken together.
  bool in_pieces() const noexcept { return in_pieces_; }
  /// Of the consumers' time, from their first wait to their last hand-over, epochs apart: the share
  /// between a wait's end and its SBatchConsumed; 0 below three such batches.
  double late_share() const noexcept { return late_share_; }
  /// Whether SBatchConsumed stands behind the step (late_share above 20 %): then the hand-over is
  /// the end of the wait, and for a batch that was put aside the SBatchConsumed before.
  bool consumed_late() const noexcept { return late_share_ > 0.2; }
  /// From a wait's end to the hand-over, mean: the consumer's, though in no step.
  double mean_late_ns() const noexcept { return consumed_late() ? 0 : mean_late_ns_; }
  const std::vector<epoch_times>& epochs() const noexcept { return epochs_; }
  /// Throughput over the whole run: batches received / length_ns(). Missing below two batches.
  std::optional<double> achieved_per_s() const noexcept;
  /// (batches - 1) / (last - first hand-over), epochs apart, so without start-up and what lies
  /// between epochs; missing below two batches.
  std::optional<double> steady_per_s() const noexcept;
  /// Of the run, start-up and what lies between epochs included: from the first dispatch, making or
  /// wait for a batch that was received to the end of the last step. 0 where none was received.
  std::int64_t length_ns() const noexcept { return length_ns_; }
  /// The step of an epoch's last batch, whose end no record shows: as long as the median step, but
  /// no longer than until the consumer's next wait. Consumers that never wait have none.
  std::int64_t last_step_ns(const epoch_times& of) const noexcept;

  /// nullptr where there is none.
  const batch_record* record(optional_record n) const noexcept {
    return n ? &records_[*n] : nullptr;
  }
  /// The batch's epoch as its consumer counts it: each of several at the same time from 0.
  std::uint32_t epoch_of_consumer(const batch& b) const noexcept;
  const batch& at(batch_id id) const noexcept { return batches_[id.value()]; }
  /// The batch that a record belongs to.
  batch_id batch_of(const batch_record& r) const noexcept;

  /// All spans that batches and items were made by: those of a batch beside each other, in order of
  /// start, batches in order of all(); behind them those of items that no batch took.
  const std::vector<making_span>& making() const noexcept { return making_; }

  /// For a batch in pieces, their union.
  std::optional<std::int64_t> preprocess_ns(const batch& b) const;
  /// 0 for an out-of-order arrival.
  std::optional<std::int64_t> wait_ns(const batch& b) const noexcept;
  /// From the end of its making to the hand-over.
  std::optional<std::int64_t> delay_ns(const batch& b) const;
  /// When the consumer got it.
  std::optional<std::int64_t> hand_over_ns(const batch& b) const noexcept;
  /// When it was done with: the hand-over, or where batches are pushed() the end of its making.
  std::optional<std::int64_t> left_ns(const batch& b) const noexcept;
  /// From the hand-over to the start of the same consumer's next wait or its next hand-over,
  /// whichever is first; out-of-order markers end nothing. Missing for an epoch's last one.
  std::optional<std::int64_t> step_ns(optional_record consumed) const noexcept;
  std::optional<time_span> step(optional_record consumed) const noexcept;
  bool out_of_order(const batch& b) const noexcept;

  /// From the start of its making to the end: its latency.
  std::optional<time_span> made(const batch& b) const;
  /// Sum of its spans, which may be more than its latency where they overlap.
  std::int64_t service_ns(const batch& b) const;
  /// The part of its latency in which no span of it was open.
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
  std::vector<std::int64_t> hand_overs_;  // by record, of SBatchConsumed; -1: none
  std::vector<std::int64_t> step_ends_;   // by record; -1: none
  std::vector<batch> batches_;
  std::vector<epoch_times> epochs_;
  std::vector<std::uint32_t> first_epochs_;  // of each consumer, rising
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
