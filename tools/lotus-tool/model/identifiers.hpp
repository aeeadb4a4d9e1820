// Defines types that identify parts of a run, such as a log or a batch. Each kind of part has a
// type of its own, so that the compiler rejects code that confuses two kinds.
#ifndef LOTUS_TOOL_MODEL_IDENTIFIERS_HPP
#define LOTUS_TOOL_MODEL_IDENTIFIERS_HPP

#include <cstdint>

#include "base/index.hpp"

namespace lotus::tool {

/// A log of a thread, as its index in run_files::files. `optional_file` is nullopt for a thread
/// without a log.
using file_id = strong_index<struct file_tag>;
using optional_file = optional_index<file_id>;

/// A batch, as its index in run_batches::all(). The number that the program gave the batch is
/// batch::index.
using batch_id = strong_index<struct batch_tag>;
using optional_batch = optional_index<batch_id>;

/// A stage, as the id of its name in run_data::names; or preprocess_stage.
using stage_id = strong_index<struct stage_tag>;
/// The stage to which the workers' preprocess spans belong. It has no name in the program.
inline constexpr stage_id preprocess_stage{UINT32_MAX};

/// The numbers of items and batches may repeat, for example in every epoch. A pass is one
/// occurrence of a number in the stages; a pass_number counts the passes of the same number from 0.
using pass_number = strong_index<struct pass_tag>;

/// A process that consumes batches; see log_file::consumer.
using consumer_id = strong_index<struct consumer_tag>;

/// A span in which a batch or an item was preprocessed, as its index in
/// run_batches::preprocessing_spans().
using span_number = std::uint32_t;
using optional_span = optional_index<span_number>;

/// A batch record, as its index in run_batches::records().
using record_number = std::uint32_t;
using optional_record = optional_index<record_number>;

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_IDENTIFIERS_HPP
