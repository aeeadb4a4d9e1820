// Joins the records of batches that the consumer received in several pieces.
#ifndef LOTUS_TOOL_MODEL_BATCHES_PIECES_HPP
#define LOTUS_TOOL_MODEL_BATCHES_PIECES_HPP

#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

/// A consumer may receive a batch in pieces, for example while it is still being built, and wait
/// for each of them. Then it has several waits or receptions with the same number in succession.
/// This function replaces those of each batch by a single wait and a single reception. The batch
/// counts as received with the piece that completes it: not before the batch was built, and not
/// while more than a little of the waiting is still to come. The wait takes as long as all waits
/// together and ends where the wait for this piece ends. So the sums of waits and steps remain; the
/// consumer's work on earlier pieces counts as part of the step before.
///
/// Equal numbers in succession are not pieces if the consumer has only one number. Neither are they
/// if the batch was built again in between, as in two epochs of which one ends and the next begins
/// with the same number, unless three batches and more than a quarter of all have them.
/// @return whether so many batches have them. Then workers may build batches in pieces too.
bool join_pieces(batch_records& records, const std::vector<stage_span>& stages);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_BATCHES_PIECES_HPP
